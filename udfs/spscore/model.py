"""SPScore-zh: from a sentence pair to four judgements and one score, each in [0, 1].

    metric = SPScore.load()                        # tier core; SPScore.load("paper") is the paper's
    metric.score(sources, paraphrases)             # float32, one score a pair
    metric.judge(sources, paraphrases)             # structure, synonyms, meaning, fluency, spscore
    metric.explain(source, paraphrase)             # ["meaning: the number “3,000” is missing"]
    metric.signature()                             # print it with every score that you report

The judgements are the criteria by which the annotators of *Chinese Sentence Paraphrasing* rate a
pair: change of structure, replacement by synonyms, meaning kept, and readability. Each output has
its own head: a regression on the features that the tier sees, fitted to ratings divided by 5. Tier
``paper`` sees the eight features of the paper; ``core``, the default, also those of udfs/meaning;
``full`` also reads both sentences with a fine-tuned encoder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from gaixie.udfs.defaults import MAX_CHARACTERS, MIN_CHARACTERS
from gaixie.udfs.features import FEATURES, extract_code_points
from gaixie.udfs.meaning.core_features import CORE_FEATURES, Resources, extract_core
from gaixie.udfs.meaning.pair_encoder import SHIPPED as SHIPPED_ENCODER
from gaixie.udfs.meaning.pair_encoder import TASKS, check_folder, load_pair_encoder
from gaixie.udfs.spscore import files
from gaixie.udfs.spscore.files import Head, pack, unpack
from gaixie.udfs.spscore.trees import TreeModel
from gaixie.udfs.storage.records import whole
from gaixie.udfs.text.code_points import CodePoints, Words, to_strings
from gaixie.udfs.text.compiled import announce_compiling
from gaixie.udfs.text.normalise import HAN, NORMALISATION, NULL, UNDECODABLE, normalise_column
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter
from gaixie.udfs.text.validate import quarantine_reasons, take_rows

if TYPE_CHECKING:
    import pandas as pd

VERSION = "0.4.0"
"""Version of the metric's definition, which does not include the fitted model."""
SHIPPED = Path(__file__).parents[1] / "models" / "spscore-zh"
"""Holds a folder for each tier."""
JUDGEMENTS = ("structure", "synonyms", "meaning", "fluency")
OUTPUTS = (*JUDGEMENTS, "spscore")
"""The order of the columns, everywhere."""
CORE_OUTPUTS = tuple(f"core_{name}" for name in OUTPUTS)
ENCODER_FEATURES = tuple(f"encoder_{task}" for task in TASKS)
TIERS = {
    "paper": FEATURES,
    "core": CORE_FEATURES,
    "full": (*CORE_FEATURES, *CORE_OUTPUTS, *ENCODER_FEATURES),
}
"""The feature columns that each tier sees."""
PENALISED = ("meaning", "spscore")
"""The outputs that a lost or invented fact lowers, whatever else a pair has."""
COUNTED = 2
"""The most facts of one kind that a penalty counts."""

Texts: TypeAlias = Sequence[str | None] | pa.Array | pa.ChunkedArray


class SPScore:
    """A fitted metric. Get one from :meth:`load`; research/fit_spscore.py fits one."""

    def __init__(
        self,
        tier: str,
        heads: Mapping[str, Head],
        segmenter: str = "",
        resources: Mapping[str, str] | None = None,
        summary: dict[str, Any] | None = None,
        penalties: Mapping[str, float] | None = None,
        core: str = "core",
        calibration: Sequence[Sequence[float]] = (),
    ):
        """Makes a metric from its heads: one for each of OUTPUTS, in that order.

        segmenter: name and version used to fit. resources: digests of the tables that the features
        came from (Resources.digests). summary: how it was fitted (anything that JSON holds).
        penalties: by column that counts lost or invented facts, the factor on PENALISED for each.
        core: name or folder of the model of tier core that tier full reads. calibration: points
        (what the head of spscore says, what the score is), rising; see calibrated.

        Raises ValueError for an unknown tier, a missing head, or a head that reads a column which
        neither the tier nor an earlier head gives.
        """
        if tier not in TIERS:
            raise ValueError(f"tier {tier!r}: expected one of {', '.join(TIERS)}")
        if tuple(heads) != OUTPUTS:
            raise ValueError(f"heads {','.join(heads)}: expected {','.join(OUTPUTS)}")
        self.tier = tier
        self.columns = TIERS[tier]
        self.heads = dict(heads)
        self.segmenter = segmenter
        self.resources = dict(resources or {})
        self.summary = summary or {}
        self.penalties = dict(penalties or {})
        self.core = core
        self.calibration = [[*point] for point in calibration]
        self.read_from = 0.0
        """Tier full reads pairs with at least this core score; the others keep core's outputs."""
        for name, factor in self.penalties.items():
            if name not in self.columns or not 0 < factor <= 1:
                raise ValueError(f"penalty {name!r} {factor!r}: expected a column, and 0 to 1")
        self._places: list[np.ndarray] = []
        """The rows of ``predict``'s values that each head reads."""
        given = [*self.columns]
        for name, head in self.heads.items():
            if unknown := [column for column in head.columns if column not in given]:
                raise ValueError(f"head {name}: the tier {tier} has no column {unknown[0]!r}")
            self._places.append(np.array([given.index(c) for c in head.columns], np.int64))
            given.append(name)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Returns the outputs: float32 in [0, 1], shape (rows, 5), columns as in OUTPUTS.

        features: float, shape (rows, len(self.columns)). NaN means missing; any other value, even
        an infinite one, gives a score. Raises ValueError for another shape.
        """
        features = np.asarray(features, np.float32)
        width = len(self.columns)
        if features.ndim != 2 or features.shape[1] != width:
            raise ValueError(f"features of shape {features.shape}: expected (rows, {width})")
        if self.tier == "full":
            read, first = ~np.isnan(features[:, -1]), len(CORE_FEATURES)
            if not read.all():
                outputs = features[:, first : first + len(OUTPUTS)].copy()
                outputs[read] = self.predict(features[read])
                return outputs
        # Column-major: heads read many rows of one column at a time.
        values = np.empty((width + len(OUTPUTS), len(features)), np.float32)
        values[:width] = features.T
        penalties = penalty(features, self.columns, self.penalties)
        heads = zip(self.heads.items(), self._places, strict=True)
        for row, ((name, head), places) in enumerate(heads, width):
            values[row] = np.clip(head.model.predict(values[places].T), 0, 1)
            if self.penalties and name in PENALISED:
                values[row] *= penalties
        values[-1] = self.calibrated(values[-1])
        return values[width:].T

    def calibrated(self, scores: np.ndarray) -> np.ndarray:
        """Maps what the head of spscore says to the score, by straight lines between the points of
        the calibration: of real pairs with a score x, the mean rating is then 5x."""
        if not self.calibration:
            return scores
        return np.interp(scores, *np.array(self.calibration).T)

    def features(self, a: CodePoints, b: CodePoints, words_a: Words, words_b: Words) -> np.ndarray:
        """Returns the tier's features of normalised, segmented pairs: float32, (rows, columns).

        The first eight columns are FEATURES. Raises ValueError for a sentence that the kernels
        reject (udfs.features.extract_code_points), and what Resources.load raises.
        """
        if self.tier == "paper":
            return extract_code_points(a, b, words_a, words_b)
        core = extract_core(a, b, words_a, words_b, Resources.load())
        if self.tier == "core":
            return core
        outputs = _load_core(self.core).predict(core)
        encoded = np.full((len(core), len(ENCODER_FEATURES)), np.nan, np.float32)
        read = outputs[:, -1] >= self.read_from
        if read.any():
            texts = to_strings(take_rows(a, read)), to_strings(take_rows(b, read))
            encoded[read] = load_pair_encoder().predict(*texts)
        return np.hstack([core, outputs, encoded])

    def extract(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns (features of raw pairs, the udfs.text.normalise flags that both sides have).

        A null or undecodable sentence makes its row of features NaN. segmenter: by default jieba.
        Raises ValueError if the lengths differ.
        """
        source, paraphrase = _strings(source), _strings(paraphrase)
        if len(source) != len(paraphrase):
            raise ValueError(f"{len(source)} sources, but {len(paraphrase)} paraphrases")
        segmenter = segmenter or load_segmenter()
        (a, flags_a), (b, flags_b) = normalise_column(source), normalise_column(paraphrase)
        features = self.features(a, b, segmenter.word_ends(a), segmenter.word_ends(b))
        features[((flags_a | flags_b) & (NULL | UNDECODABLE)) != 0] = np.nan
        return features, flags_a & flags_b

    def validated(
        self,
        source: pa.Array,
        paraphrase: pa.Array,
        segmenter: Segmenter,
        min_characters: int = MIN_CHARACTERS,
        max_characters: int = MAX_CHARACTERS,
        read_short: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (codes of quarantine_reasons, which pairs are read, the features of those).

        Shapes (rows,) uint8, (rows,) bool, (pairs read, columns). read_short: also read pairs whose
        only fault is a short sentence; their code still says too_short.
        """
        a, flags_a = normalise_column(source)
        b, flags_b = normalise_column(paraphrase)
        codes = quarantine_reasons(a, flags_a, b, flags_b, min_characters, max_characters)
        read = codes == 0
        if read_short:
            others = quarantine_reasons(a, flags_a, b, flags_b, 1, max_characters)
            read = others == 0
            codes = np.where(read, codes, others)  # too_short is only for pairs that are read
        a, b = take_rows(a, read), take_rows(b, read)
        return codes, read, self.features(a, b, segmenter.word_ends(a), segmenter.word_ends(b))

    def outputs(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> np.ndarray:
        """Returns the outputs of raw pairs (see predict), NaN for a null or undecodable sentence.

        The outputs are 0 if a sentence has no Han character: it is not Chinese.
        """
        features, of_both = self.extract(source, paraphrase, segmenter)
        outputs = self.predict(features)
        outputs[(of_both & HAN) == 0] = 0
        outputs[np.isnan(features[:, FEATURES.index("sl")])] = np.nan
        return outputs

    def score(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> np.ndarray:
        """Returns the scores, the last column of ``outputs``: float32, shape (rows,)."""
        return self.outputs(source, paraphrase, segmenter)[:, -1]

    def judge(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> pd.DataFrame:
        """Returns a row for each pair: four judgements and the score, columns as in OUTPUTS.

        The rows have the index of the sources, if those are a pandas Series. Raises ValueError if
        the paraphrases are one with another index.
        """
        import pandas as pd

        index = source.index if isinstance(source, pd.Series) else None
        if index is not None and isinstance(paraphrase, pd.Series):
            if not index.equals(paraphrase.index):
                raise ValueError("source and paraphrase have different indexes")
        return pd.DataFrame(self.outputs(source, paraphrase, segmenter), index, list(OUTPUTS))

    def explain(
        self,
        source: str,
        paraphrase: str,
        segmenter: Segmenter | None = None,
        language: str = "en",
    ) -> list[str]:
        """Returns sentences that say why some judgements of a pair are low.

        Each begins with its judgement and quotes the texts as written. language: ``en`` or ``zh``.
        Tier ``paper`` returns none, because it sees too little.
        """
        for text in (source, paraphrase):
            if not isinstance(text, str):
                raise TypeError(f"{text!r:.40}: expected a sentence")
        if self.tier == "paper":
            return []
        from gaixie.udfs.meaning.explain import explain_pairs

        segmenter = segmenter or load_segmenter()
        outputs = self.outputs([source], [paraphrase], segmenter)[0].tolist()
        judgements = dict(zip(OUTPUTS, outputs, strict=True))
        pairs, resources = [(whole(source), whole(paraphrase))], Resources.load()
        return explain_pairs(pairs, segmenter, resources, [judgements], language)[0]

    @cached_property
    def digest(self) -> str:
        """Returns ten hexadecimal digits of SHA-256 over the heads' columns and files."""
        return self._packed()[0]["digest"]

    def signature(self, segmenter: Segmenter | None = None) -> str:
        """Returns all that decides a score, as sacrebleu does. Compare scores under one signature
        only."""
        segmenter = segmenter or load_segmenter()
        read = f">={self.read_from:g}" if self.read_from else ""
        parts = ["SPScore-zh", f"v:{VERSION}", f"tier:{self.tier}{read}", f"norm:{NORMALISATION}"]
        parts += [f"seg:{segmenter.name}-{segmenter.version}", f"feat:{_named(self.columns)}"]
        parts += [f"{name}:{digest}" for name, digest in self.resources.items()]
        return "|".join([*parts, f"model:{TreeModel.backend}-{self.digest}"])

    def bind(self, core: str | Path = "core") -> None:
        """Sets the core model that a model of tier full reads beside the shipped encoder."""
        self.core = str(core)
        self.resources |= _read_beside(self.core)

    def save(self, folder: str | Path) -> None:
        """Writes ``spscore.json`` and, for each head, a folder of plain text files."""
        files.write(Path(folder), *self._packed())

    @classmethod
    def load(cls, folder: str | Path | None = None) -> SPScore:
        """Loads a model from a folder, or the shipped one of a tier; by default ``core``.

        Raises FileNotFoundError if the folder or one of its files is missing. Raises ValueError for
        an unknown format or feature list, a model of version 0.1, a file that changed since it was
        saved, or vector tables or a language model that are damaged or not those used to fit. Each
        error names the file.
        """
        announce_compiling()
        folder = "core" if folder is None else folder
        if isinstance(folder, str) and folder not in TIERS and not Path(folder).exists():
            raise FileNotFoundError(f"{folder}: no such folder; tiers are {', '.join(TIERS)}")
        folder = SHIPPED / folder if folder in TIERS else Path(folder)
        path = folder / files.DESCRIPTION
        description, contents = files.read(folder)
        try:
            model = cls._unpacked(description, contents)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error
        if model.tier != "paper":
            here = Resources.load().digests()
            if model.tier == "full":
                if folder.parent != SHIPPED and (beside := folder.parent / "core").is_dir():
                    model.core = str(beside)
                here |= _read_beside(model.core)
            if model.resources != here:
                fault = f"fitted with the tables {model.resources}, but those here are {here}"
                raise ValueError(f"{path}: {fault}; fit it again, or use those tables")
        return model

    def _packed(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Returns (description, contents) as in udfs.spscore.files."""
        heads, contents = pack(self.heads)
        description = {
            "format": files.FORMAT_VERSION,
            "version": VERSION,
            "tier": self.tier,
            "columns": list(self.columns),
            "normalisation": NORMALISATION,
            "segmenter": self.segmenter,
            "resources": self.resources,
            "penalties": self.penalties,
            "calibration": self.calibration,
            "summary": self.summary,
            "heads": heads,
        }
        return description | {"digest": files.digest(description, contents)}, contents

    @classmethod
    def _unpacked(cls, description: dict[str, Any], contents: dict[str, bytes]) -> SPScore:
        """Restores a model from _packed. Raises ValueError for what this version cannot read."""
        tier = description["tier"]
        if tier not in TIERS:
            raise ValueError(f"tier {tier!r}, expected one of {', '.join(TIERS)}")
        if description["normalisation"] != NORMALISATION:
            raise ValueError(f"expected the normalisation {NORMALISATION!r}")
        for column, known in zip_longest(description["columns"], TIERS[tier]):
            if column != known:
                raise ValueError(f"column {column!r} where the tier {tier} has {known!r}")
        heads = unpack(description["heads"], contents)
        names = ("segmenter", "resources", "summary", "penalties")
        told = {name: description[name] for name in names}
        return cls(tier, heads, **told, calibration=description.get("calibration", ()))

    def __reduce__(self) -> tuple[Any, ...]:
        return files.reduce(self)


@cache
def _load_core(folder: str) -> SPScore:
    """Loads the core model that tier full reads, once in a process."""
    model = SPScore.load(folder)
    if model.tier != "core":
        raise ValueError(f"{folder}: a model of tier {model.tier}, expected core")
    return model


def _read_beside(core: str) -> dict[str, str]:
    """Returns digests of what tier full reads beside the features: the encoder, the core model."""
    return {"enc": check_folder(SHIPPED_ENCODER), "core": _load_core(core).digest}


def _strings(column: Texts) -> pa.Array:
    if isinstance(column, str):
        raise TypeError(f"{column!r:.40}: expected a list of sentences, not one sentence")
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    if isinstance(column, pa.Array):
        return column
    try:
        return pa.array(list(column), pa.string(), from_pandas=True)
    except UnicodeEncodeError:  # half a surrogate pair: its row has no judgements
        return pa.array([whole(text) if isinstance(text, str) else None for text in column])


def penalty(
    features: np.ndarray, columns: Sequence[str], factors: Mapping[str, float]
) -> np.ndarray:
    """Returns the product of factor ** count over the counted columns: float32, shape (rows,).

    The product is in [0, 1]. features: shape (rows, len(columns)). NaN counts as 0, and more than
    COUNTED as COUNTED.
    """
    total = np.ones(len(features), np.float32)
    for name, factor in factors.items():
        count = np.nan_to_num(features[:, columns.index(name)])
        total *= np.float32(factor) ** np.clip(count, 0, COUNTED).astype(np.float32)
    return total


def _named(columns: tuple[str, ...]) -> str:
    """Returns the columns as a signature states them: by name if they are few."""
    if columns == FEATURES:
        return ",".join(columns)
    return f"{len(columns)}-{hashlib.sha256(','.join(columns).encode()).hexdigest()[:8]}"
