"""What every metric of this package gives: a score for each pair, one for a corpus, a signature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Pairs:
    """Columns of sentences, all of one length: Arrow string arrays.

    references: no column, one, or several (the k-th reference of every row; null where a row has
    fewer). A row with a null source or paraphrase scores NaN, as does one without any reference
    where the metric needs one.
    """

    source: pa.Array
    paraphrase: pa.Array
    references: tuple[pa.Array, ...] = ()

    @classmethod
    def of(
        cls,
        source: Sequence[str | None] | pa.Array,
        paraphrase: Sequence[str | None] | pa.Array,
        *references: Sequence[str | None] | pa.Array,
    ) -> Pairs:
        """Pairs of lists or arrays. Raises ValueError where the lengths differ."""
        columns = [
            c if isinstance(c, pa.Array) else pa.array(c, pa.string())
            for c in (source, paraphrase, *references)
        ]
        return cls(columns[0], columns[1], tuple(columns[2:]))

    def __post_init__(self) -> None:
        names = ["sources", "paraphrases", *["references"] * len(self.references)]
        lengths = [len(column) for column in (self.source, self.paraphrase, *self.references)]
        if len(set(lengths)) > 1:
            counts = zip(lengths, names, strict=True)
            raise ValueError(", ".join(f"{length:,} {name}" for length, name in counts))

    def __len__(self) -> int:
        return len(self.source)


class Metric(ABC):
    """A metric with its settings, which subclasses state as fields of a frozen dataclass."""

    name: ClassVar[str]
    """The name on the command line: lower case, words joined by hyphens."""
    title: ClassVar[str]
    """The name in tables: Self-iBLEU."""
    summary: ClassVar[str]
    """One sentence that says what a score means."""
    range: ClassVar[tuple[float, float]]
    higher_is_better: ClassVar[bool]
    """Whether a higher score means a better paraphrase, as the metric sees it."""
    needs_source: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False
    uses_reference: ClassVar[bool] = False
    """Looks at references where there are some, and does without where there are none."""

    @abstractmethod
    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        """Scores: float64, shape (rows,), NaN where a side that the metric needs is null.

        Raises ValueError where the metric needs a reference and ``pairs`` has no such column.
        """

    def corpus_score(self, pairs: Pairs) -> float:
        """One score for all pairs: their mean, unless the metric defines a score of a corpus.

        NaN where no pair has a score.
        """
        return float(self.score_of_sums(self.row_sums(pairs).sum(axis=0)))

    def row_sums(self, pairs: Pairs) -> np.ndarray:
        """What a corpus score is made of: float64, shape (rows, sums), 0 where a row has no score.

        The sum over any rows is what ``score_of_sums`` takes, so that a bootstrap scores many
        resamples of a corpus at the price of one.
        """
        scores = self.sentence_scores(pairs)
        there = ~np.isnan(scores)
        return np.column_stack([np.where(there, scores, 0.0), there])

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Corpus scores of added ``row_sums``: shape (..., sums) to (...,), NaN without a row.

        They equal ``corpus_score`` except for chrF and TER, where they are means of sentences.
        """
        return ratio(sums[..., 0], sums[..., 1])

    @abstractmethod
    def signature(self) -> str:
        """What decides a score, in sacrebleu's manner: ``name|key:value|…|v:version``."""

    def check(self, pairs: Pairs) -> None:
        """Raises ValueError where the metric needs a reference that ``pairs`` does not have."""
        if self.needs_reference and not pairs.references:
            raise ValueError(f"{self.name} needs a reference, and none is given")

    def check_setting(self, name: str, known: Collection[str]) -> None:
        """Raises ValueError where a setting has none of the known values."""
        if (value := getattr(self, name)) not in known:
            raise ValueError(f"{name} {value!r}: expected one of {', '.join(known)}")

    def describe(self, **attributes: object) -> None:
        """Sets those of the attributes above that depend on the settings."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class ReferenceMetric(Metric):
    """A metric that compares the paraphrase with references, and with nothing else."""

    needs_source = False
    needs_reference = True


def ratio(part: np.ndarray, whole: np.ndarray, otherwise: float = np.nan) -> np.ndarray:
    """part / whole, element by element; ``otherwise`` where the whole is 0."""
    return np.divide(part, whole, out=np.full(np.shape(part), otherwise), where=whole > 0)


def complete(*columns: pa.Array) -> tuple[np.ndarray, list[list[str]]]:
    """The rows in which no column is null, and each column's texts in these rows."""
    there = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns])
    return np.flatnonzero(there), [column.filter(pa.array(there)).to_pylist() for column in columns]


def signature(title: str, *settings: tuple[str, object]) -> str:
    """``title|key:value|…|v:VERSION``, VERSION that of this package."""
    parts = [f"{key}:{value}" for key, value in settings]
    return "|".join([title, *parts, f"v:{version('gaixie')}"])


def settings_of(signature: str) -> list[tuple[str, str]]:
    """The settings of another metric's signature, for that of a metric that is made of it."""
    parts = (part.partition(":") for part in signature.split("|")[1:-1])
    return [(key, value) for key, _, value in parts]
