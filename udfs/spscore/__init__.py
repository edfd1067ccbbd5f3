"""SPScore-zh: from the eight features of a sentence pair to one score in [0, 1].

    metric = SPScore.load()                           # the model that ships with Gaixie
    metric.score(sources, paraphrases, segmenter)     # float32, one score a pair
    metric.signature(segmenter)                       # print it with every score that you report

A score is what a regression over the features learned from human judgements (*Chinese Sentence
Paraphrasing*, the metric SPScore-zh). Two back-ends: ``lightgbm`` (boosted trees, the default) and
``neural`` (small networks). Neither pyspark nor torch is imported, nor LightGBM or scikit-learn
unless a model is fitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from udfs.features import FEATURES, extract
from udfs.spscore.network import NetworkModel
from udfs.spscore.trees import TreeModel
from udfs.text.segment import Segmenter

VERSION = "0.1.0"
"""Version of the metric's definition: what is computed, apart from the fitted model."""
NORMALISATION = "nfkc+ws"
DEFAULT_FOLDER = Path(__file__).parents[1] / "models" / "spscore-zh"
FORMAT_VERSION = 1

_DESCRIPTION = "spscore.json"
_BACKENDS = {model.backend: model for model in (TreeModel, NetworkModel)}


class SPScore:
    """A fitted metric. Get one from :meth:`load` or :meth:`fit`."""

    def __init__(
        self,
        model: TreeModel | NetworkModel,
        features: Sequence[str] = FEATURES,
        segmenter: str = "",
        summary: dict | None = None,
    ):
        """features: names of the columns, in order. segmenter: name and version used to fit.
        summary: how it was fitted (anything that JSON holds)."""
        self.model = model
        self.features = tuple(features)
        self.segmenter = segmenter
        self.summary = summary or {}

    @classmethod
    def fit(
        cls,
        features: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None = None,
        backend: str = "lightgbm",
        seeds: int = 3,
        names: Sequence[str] = FEATURES,
        segmenter: str = "",
        summary: dict | None = None,
        parameters: dict | None = None,
    ) -> SPScore:
        """The mean of ``seeds`` regressions of target on features. Deterministic.

        features: float, shape (rows, len(names)), NaN for missing.
        target: shape (rows,), in [0, 1].
        weight: shape (rows,), not negative (default: 1 each).
        backend: ``lightgbm`` or ``neural``. parameters: what differs from the back-end's defaults
        (``LIGHTGBM`` and ``NEURAL`` in ``udfs/spscore/fit.py``).

        Raises ValueError where shapes disagree, a target lies outside [0, 1], a weight is
        negative or not finite, there are no rows, or the back-end is unknown.
        """
        from udfs.spscore import fit  # LightGBM and scikit-learn take seconds to import

        if backend not in _BACKENDS:
            raise ValueError(f"backend {backend!r}: expected {' or '.join(map(repr, _BACKENDS))}")
        features = np.asarray(features, np.float32)
        target = np.asarray(target, np.float64)
        weight = np.ones(len(target)) if weight is None else np.asarray(weight, np.float64)
        if features.shape != (len(target), len(names)) or weight.shape != target.shape:
            raise ValueError(
                f"features {features.shape}, target {target.shape}, weight {weight.shape}: "
                f"expected (rows, {len(names)}), (rows,), (rows,)"
            )
        if not len(target) or seeds < 1:
            raise ValueError(f"{len(target)} rows and {seeds} seeds: expected at least one of each")
        if not np.all((target >= 0) & (target <= 1)):
            raise ValueError("target: expected values in [0, 1]")
        if not np.all(np.isfinite(weight) & (weight >= 0)) or not weight.any():
            raise ValueError("weight: expected finite values, none negative and not all zero")
        train = fit.fit_trees if backend == "lightgbm" else fit.fit_network
        model = train(features, target, weight, seeds, list(names), parameters or {})
        return cls(model, names, segmenter, summary)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Scores: float32 in [0, 1], shape (rows,).

        features: float, shape (rows, len(self.features)); NaN is a missing value, and any other
        value, infinite ones too, gives a score. Raises ValueError for another shape.
        """
        features = np.asarray(features, np.float32)
        if features.ndim != 2 or features.shape[1] != len(self.features):
            raise ValueError(
                f"features of shape {features.shape}: expected (rows, {len(self.features)})"
            )
        return np.clip(self.model.predict(features), 0, 1).astype(np.float32)

    def score(
        self,
        source: Sequence[str | None] | pa.Array | pa.ChunkedArray,
        paraphrase: Sequence[str | None] | pa.Array | pa.ChunkedArray,
        segmenter: Segmenter,
    ) -> np.ndarray:
        """Scores of sentence pairs: float32 in [0, 1], shape (rows,), NaN where a side is null.

        Raises what ``udfs.features.extract`` raises (ValueError where the lengths differ).
        """
        features = extract(_strings(source), _strings(paraphrase), segmenter)
        scores = self.predict(features)
        scores[np.isnan(features).all(axis=1)] = np.nan
        return scores

    def digest(self) -> str:
        """Ten hexadecimal digits of SHA-256 over the model's files."""
        return _digest(self.model.files())

    def signature(self, segmenter: Segmenter) -> str:
        """What decides a score, in sacrebleu's manner. Scores compare only under one signature."""
        return "|".join(
            (
                "SPScore-zh",
                f"v:{VERSION}",
                f"norm:{NORMALISATION}",
                f"seg:{segmenter.name}-{segmenter.version}",
                f"feat:{','.join(self.features)}",
                f"model:{self.model.backend}-{self.digest()}",
            )
        )

    def save(self, folder: str | Path) -> None:
        """Writes the model: plain text or .npz, and ``spscore.json``, which describes it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = self.model.files()
        for stale in [*folder.glob("lightgbm-*.txt"), *folder.glob("network.npz")]:
            if stale.name not in files:
                stale.unlink()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        description = {
            "format": FORMAT_VERSION,
            "version": VERSION,
            "backend": self.model.backend,
            "features": list(self.features),
            "normalisation": NORMALISATION,
            "segmenter": self.segmenter,
            "files": sorted(files),
            "digest": _digest(files),
            "summary": self.summary,
        }
        text = json.dumps(description, ensure_ascii=False, indent=2)
        (folder / _DESCRIPTION).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path | None = None) -> SPScore:
        """The model of a folder; without one, the model that ships with Gaixie.

        Raises FileNotFoundError where the folder or one of its files is missing, and ValueError
        for a format or a feature list that this version does not know, or a file that is not the
        one that was saved. Each names the file.
        """
        folder = DEFAULT_FOLDER if folder is None else Path(folder)
        path = folder / _DESCRIPTION
        try:
            description = json.loads(_read(path))
            known = {"format", "backend", "features", "normalisation", "files", "digest"}
            missing = sorted(known - set(description))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: expected JSON ({error})") from None
        if missing:
            raise ValueError(f"{path}: expected the key {missing[0]!r}")
        if description["format"] != FORMAT_VERSION:
            raise ValueError(
                f"{path}: format {description['format']!r}, but this version reads {FORMAT_VERSION}"
            )
        if tuple(description["features"]) != FEATURES:
            found = ",".join(map(str, description["features"]))
            raise ValueError(f"{path}: features {found}, expected {','.join(FEATURES)}")
        if description["normalisation"] != NORMALISATION:
            found = description["normalisation"]
            raise ValueError(f"{path}: normalisation {found!r}, expected {NORMALISATION!r}")
        if description["backend"] not in _BACKENDS:
            raise ValueError(f"{path}: unknown back-end {description['backend']!r}")
        files = {name: _read(folder / name) for name in description["files"]}
        if _digest(files) != description["digest"]:
            raise ValueError(
                f"{path}: digest {description['digest']}, but {', '.join(files)} has "
                f"{_digest(files)}; the model files are not those that were saved"
            )
        model = _BACKENDS[description["backend"]].from_files(files)
        summary = description.get("summary")
        return cls(model, FEATURES, description.get("segmenter", ""), summary)


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:10]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; expected a saved SPScore model") from None


def _strings(column) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    return column if isinstance(column, pa.Array) else pa.array(list(column), pa.string())
