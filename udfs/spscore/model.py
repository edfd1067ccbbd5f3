"""SPScore-zh: from a sentence pair to four judgements and one score, each in [0, 1].

    metric = SPScore.load()                        # tier core; SPScore.load("paper") is the paper's
    metric.score(sources, paraphrases)             # float32, one score a pair
    metric.judge(sources, paraphrases)             # structure, synonyms, meaning, fluency, spscore
    metric.explain(source, paraphrase)             # ["meaning: the number “3,000” is missing"]
    metric.signature()                             # print it with every score that you report

The judgements are the criteria by which *Chinese Sentence Paraphrasing* has its annotators rate a
pair: change of structure, replacement by synonyms, meaning kept, and readability. Each output has a
head of its own: a regression on the features that the tier sees, fitted to ratings from 0 to 5
divided by 5.

Tiers: ``paper`` sees the eight features of the paper; ``core`` (the default) sees the families of
udfs/meaning too; ``full`` also reads both sentences with a fine-tuned encoder. Neither pyspark nor
torch is imported, nor LightGBM or scikit-learn unless a model is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from gaixie.udfs.features import FEATURES, extract_code_points
from gaixie.udfs.meaning.extract import CORE_FEATURES, Resources, extract_core
from gaixie.udfs.meaning.pair_encoder import SHIPPED as SHIPPED_ENCODER
from gaixie.udfs.meaning.pair_encoder import check_folder, load_pair_encoder
from gaixie.udfs.spscore import files, pickled
from gaixie.udfs.spscore.columns import ENCODER_FEATURES, JUDGEMENTS, OUTPUTS, TIERS, named
from gaixie.udfs.spscore.files import Head, pack, unpack
from gaixie.udfs.spscore.penalties import PENALISED, penalty
from gaixie.udfs.spscore.trees import TreeModel
from gaixie.udfs.text.code_points import CodePoints, Words, to_strings
from gaixie.udfs.text.compiled import announce_compiling
from gaixie.udfs.text.normalise import HAN, NORMALISATION, NULL, UNDECODABLE, normalise_column
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGEMENTS", "OUTPUTS", "SHIPPED", "TIERS", "VERSION", "Head", "SPScore"]

VERSION = "0.3.1"
"""Version of the metric's definition: what is computed, apart from the fitted model."""
SHIPPED = Path(__file__).parents[1] / "models" / "spscore-zh"
"""Holds a folder for each tier."""

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
    ):
        """core: folder of the model of tier core that tier full reads beside it, or its name.
        penalties: for columns that count facts lost or invented, what each multiplies PENALISED by.
        heads: one for each of OUTPUTS, in their order. segmenter: name and version used to fit.
        resources: digests of the tables that the features came from (Resources.digests).
        summary: how it was fitted (anything that JSON holds).

        Raises ValueError for an unknown tier, a head that is missing, and one that reads a column
        which neither the tier nor an earlier head gives.
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
        self.read_from = 0.0
        """Tier full reads pairs from this score of tier core up; others keep the core's outputs."""
        self.gpu: str | None = None
        """The number of the GPU on which tier full reads, if it can."""
        for name, factor in self.penalties.items():
            if name not in self.columns or not 0 < factor <= 1:
                raise ValueError(
                    f"penalty {name!r} {factor!r}: expected a column of the tier {tier} and "
                    "a factor above 0, at most 1"
                )
        known = [*self.columns, *OUTPUTS]
        self._places: list[np.ndarray] = []
        for index, (name, head) in enumerate(self.heads.items()):
            given = known[: len(self.columns) + index]
            unknown = [column for column in head.columns if column not in given]
            if unknown:
                raise ValueError(f"head {name}: the tier {tier} has no column {unknown[0]!r}")
            self._places.append(np.array([given.index(c) for c in head.columns], np.int64))

    def predict(self, features: np.ndarray) -> np.ndarray:
        """The outputs: float32 in [0, 1], shape (rows, 5), columns as in OUTPUTS.

        features: float, shape (rows, len(self.columns)); NaN is a missing value, and any other
        value, infinite ones too, gives a score. Raises ValueError for another shape.
        """
        features = np.asarray(features, np.float32)
        width = len(self.columns)
        if features.ndim != 2 or features.shape[1] != width:
            raise ValueError(f"features of shape {features.shape}: expected (rows, {width})")
        if self.tier == "full":
            unread = np.isnan(features[:, -1])
            if unread.any():
                first = len(CORE_FEATURES)
                outputs = features[:, first : first + len(OUTPUTS)].copy()
                if not unread.all():
                    outputs[~unread] = self.predict(features[~unread])
                return outputs
        # A column after the other: heads read many rows of one at a time.
        values = np.empty((width + len(OUTPUTS), len(features)), np.float32)
        values[:width] = features.T
        penalties = penalty(features, self.columns, self.penalties)
        for row, (name, head) in enumerate(self.heads.items(), width):
            predicted = head.model.predict(values[self._places[row - width]].T)
            values[row] = np.clip(predicted, 0, 1)
            if self.penalties and name in PENALISED:
                values[row] *= penalties
        return values[width:].T

    def features(self, a: CodePoints, b: CodePoints, words_a: Words, words_b: Words) -> np.ndarray:
        """What the tier sees of normalised, segmented pairs: float32, shape (rows, columns).

        The first eight columns are FEATURES. Raises ValueError for a sentence that the kernels do
        not take (udfs.features.extract_code_points), and what Resources.load raises.
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
            encoder = load_pair_encoder(gpu=self.gpu)
            sources, paraphrases = (
                [text for text, wanted in zip(to_strings(side), read, strict=True) if wanted]
                for side in (a, b)
            )
            encoded[read] = encoder.predict(sources, paraphrases)
        return np.hstack([core, outputs, encoded])

    def extract(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(features of pairs as they come, flags of udfs.text.normalise that both sides have).

        A null or undecodable side makes a row of features NaN. segmenter: by default jieba. Raises
        ValueError where the lengths differ.
        """
        source, paraphrase = _strings(source), _strings(paraphrase)
        if len(source) != len(paraphrase):
            raise ValueError(f"{len(source)} sources, but {len(paraphrase)} paraphrases")
        segmenter = segmenter or load_segmenter()
        (a, flags_a), (b, flags_b) = normalise_column(source), normalise_column(paraphrase)
        features = self.features(a, b, segmenter.word_ends(a), segmenter.word_ends(b))
        features[((flags_a | flags_b) & (NULL | UNDECODABLE)) != 0] = np.nan
        return features, flags_a & flags_b

    def outputs(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> np.ndarray:
        """The outputs of pairs as they come: see predict. NaN where a side is null or undecodable.

        0 where a side has no Han character: there is no Chinese sentence to judge.
        """
        features, of_both = self.extract(source, paraphrase, segmenter)
        outputs = self.predict(features)
        outputs[(of_both & HAN) == 0] = 0
        outputs[np.isnan(features[:, FEATURES.index("sl")])] = np.nan
        return outputs

    def score(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> np.ndarray:
        """Scores of sentence pairs: float32 in [0, 1], shape (rows,), NaN where a side is null.

        segmenter: by default jieba. Raises ValueError where the lengths differ.
        """
        return self.outputs(source, paraphrase, segmenter)[:, -1]

    def judge(
        self, source: Texts, paraphrase: Texts, segmenter: Segmenter | None = None
    ) -> pd.DataFrame:
        """The four judgements and the score of each pair: a row each, columns as in OUTPUTS."""
        import pandas as pd

        return pd.DataFrame(self.outputs(source, paraphrase, segmenter), columns=list(OUTPUTS))

    def explain(
        self,
        source: str,
        paraphrase: str,
        segmenter: Segmenter | None = None,
        language: str = "en",
    ) -> list[str]:
        """Returns sentences that say what pulls the low ones of a pair's judgements down.

        Each begins with its judgement and quotes the texts as they were written; language: ``en``
        or ``zh``. Nothing for the tier ``paper``, which sees too little.
        """
        if self.tier == "paper":
            return []
        from gaixie.udfs.meaning.explain import explain

        segmenter = segmenter or load_segmenter()
        outputs = self.outputs([source], [paraphrase], segmenter)[0].tolist()
        judgements = dict(zip(OUTPUTS, outputs, strict=True))
        return explain(source, paraphrase, segmenter, Resources.load(), judgements, language)

    @cached_property
    def digest(self) -> str:
        """Ten hexadecimal digits of SHA-256 over the heads: what they read, and their files."""
        return self._packed()[0]["digest"]

    def signature(self, segmenter: Segmenter | None = None) -> str:
        """What decides a score, in sacrebleu's manner. Scores compare only under one signature."""
        segmenter = segmenter or load_segmenter()
        return "|".join(
            (
                "SPScore-zh",
                f"v:{VERSION}",
                f"tier:{self.tier}" + (f">={self.read_from:g}" if self.read_from else ""),
                f"norm:{NORMALISATION}",
                f"seg:{segmenter.name}-{segmenter.version}",
                f"feat:{named(self.columns)}",
                *(f"{name}:{digest}" for name, digest in self.resources.items()),
                f"model:{TreeModel.backend}-{self.digest}",
            )
        )

    def bind(self, core: str | Path = "core") -> None:
        """Sets the model of tier core that a model of tier full reads beside the shipped
        encoder."""
        self.core = str(core)
        self.resources |= _read_beside(self.core)

    def save(self, folder: str | Path) -> None:
        """Writes the model: a folder of plain text or .npz a head, and ``spscore.json``."""
        files.write(Path(folder), *self._packed())

    @classmethod
    def load(cls, folder: str | Path | None = None) -> SPScore:
        """The model of a folder, or of a tier by its name: by default ``core``, which ships.

        Raises FileNotFoundError where the folder or one of its files is missing, and ValueError
        for a format or a feature list that this version does not know, a model of version 0.1, a
        file that is not the one that was saved, or tables of vectors or the language model that are
        damaged or not those that it was fitted with. Each names the file.
        """
        announce_compiling()
        folder = "core" if folder is None else folder
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
                raise ValueError(
                    f"{path}: fitted with {_joined(model.resources)}, but the tables here are "
                    f"{_joined(here)}; fit it again, or take those tables"
                )
        return model

    def _packed(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """(description, contents) of udfs.spscore.files."""
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
            "digest": files.digest({"heads": heads, "penalties": self.penalties}, contents),
            "summary": self.summary,
            "heads": heads,
        }
        return description, contents

    @classmethod
    def _unpacked(cls, description: dict[str, Any], contents: dict[str, bytes]) -> SPScore:
        """The model of what _packed gives. Raises ValueError for what this version cannot read."""
        tier = description["tier"]
        if tier not in TIERS:
            raise ValueError(f"tier {tier!r}, expected one of {', '.join(TIERS)}")
        if description["normalisation"] != NORMALISATION:
            raise ValueError(
                f"normalisation {description['normalisation']!r}, expected {NORMALISATION!r}"
            )
        for column, known in zip_longest(description["columns"], TIERS[tier]):
            if column != known:
                raise ValueError(f"column {column!r} where the tier {tier} has {known!r}")
        heads = unpack(description["heads"], contents)
        names = ("segmenter", "resources", "summary", "penalties")
        return cls(tier, heads, *(description[name] for name in names))

    def __reduce__(self) -> tuple[Any, ...]:
        return pickled.reduce(self)


@cache
def _load_core(folder: str) -> SPScore:
    """The model of tier core that tier full reads, once in a process."""
    model = SPScore.load(folder)
    if model.tier != "core":
        raise ValueError(f"{folder}: a model of tier {model.tier}, expected core")
    return model


def _read_beside(core: str) -> dict[str, str]:
    """Digests of what tier full reads beside the features: the encoder, the model of tier core."""
    return {"enc": check_folder(SHIPPED_ENCODER), "core": _load_core(core).digest}


def _joined(digests: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {digest}" for name, digest in digests.items()) or "none"


def _strings(column: Texts) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    return column if isinstance(column, pa.Array) else pa.array(list(column), pa.string())
