"""The interface of every metric: a score for each pair, one for a corpus, and a signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import ClassVar

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Pairs:
    """Columns of sentences, as Arrow string arrays of equal length.

    references: none or more columns (column k holds the k-th reference of every row; null if a row
    has fewer). A row with a null source or paraphrase scores NaN, and so does a row without any
    reference if the metric needs one.
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
        """Makes Pairs from lists or arrays. Raises ValueError if the lengths differ."""
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

    def part(self, start: int, rows: int) -> Pairs:
        """Returns some of the rows."""
        columns = (self.source, self.paraphrase, *self.references)
        return Pairs.of(*(column.slice(start, rows) for column in columns))


class Metric:
    """A metric with its settings, which subclasses declare as fields of a frozen dataclass."""

    name: ClassVar[str]
    """The name on the command line: lower case, words joined by hyphens."""
    title: ClassVar[str]
    """The name in tables: Self-BLEU."""
    summary: ClassVar[str]
    """One sentence that says what a score means."""
    range: ClassVar[tuple[float, float]]
    higher_is_better: ClassVar[bool | None] = True
    """Whether a higher score means a better paraphrase, as the metric sees it; None if neither
    direction is better."""
    needs_reference: ClassVar[bool] = False
    uses_reference: ClassVar[bool] = False
    """Whether the metric uses references if there are any, and works without them."""

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        """Returns scores: float64, shape (rows,), NaN if a sentence that the metric needs is null.

        Raises ValueError if the metric needs references and ``pairs`` has none.
        """
        rows, sides = complete(pairs.source, pairs.paraphrase)
        scores = np.full(len(pairs), np.nan)
        scores[rows] = self.scores_of(*sides)
        return scores

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns the score of each paraphrase beside a text, its source or a reference.

        A metric defines this, or ``sentence_scores``.
        """
        raise NotImplementedError

    def corpus_score(self, pairs: Pairs, scores: np.ndarray | None = None) -> float:
        """Returns one score for all pairs: their mean, unless the metric defines a corpus score.

        scores: their sentence scores, if they are known. NaN if no pair has a score.
        """
        return float(self.score_of_sums(self.row_sums(pairs, scores).sum(axis=0)))

    def row_sums(self, pairs: Pairs, scores: np.ndarray | None = None) -> np.ndarray:
        """Returns a row's part of a corpus score: float64, (rows, sums), 0 for rows without score.

        ``score_of_sums`` takes the sum over any rows, so a bootstrap scores many resamples of a
        corpus for the price of one.
        """
        return sums_of(self.sentence_scores(pairs) if scores is None else scores)

    def score_of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Returns corpus scores of summed ``row_sums``: (..., sums) to (...,), NaN without a row.

        They equal ``corpus_score`` except for chrF and TER, where they are means of sentences.
        """
        return ratio(sums[..., 0], sums[..., 1])

    def signature(self) -> str:
        """Returns all that decides a score, as sacrebleu does: ``name|key:value|…|v:version``."""
        return signature(self.title, *self.settings())

    def settings(self) -> Sequence[tuple[str, object]]:
        """Returns the settings in the signature."""
        return ()

    def check(self, pairs: Pairs) -> None:
        """Raises ValueError if the metric needs references and ``pairs`` has none."""
        if self.needs_reference and not pairs.references:
            raise ValueError(f"{self.name} needs a reference, but none is given")

    def describe(self, **attributes: object) -> None:
        """Sets those attributes above that depend on the settings."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


class ReferenceMetric(Metric):
    """A metric that compares the paraphrase only with references."""

    needs_reference = True

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        """Returns the best of the scores against each reference, as Metric says."""
        self.check(pairs)
        scores = np.full(len(pairs), np.nan)
        for column in pairs.references:
            rows, sides = complete(column, pairs.paraphrase)
            scores[rows] = np.fmax(scores[rows], self.scores_of(*sides))
        return scores


@dataclass(frozen=True)
class Free(Metric):
    """The reference-free form of a metric: X.Free(S, P) = X(S, P, reference = S).

    It ignores any references. Source: Shen et al. 2022, *On the Evaluation Metrics for Paraphrase
    Generation* (ParaScore), section 2.1.
    """

    metric: Metric

    def __post_init__(self) -> None:
        of = self.metric
        summary = f"{of.summary.rstrip('.')}, with the source as the reference."
        self.describe(name=f"{of.name}-free", title=f"{of.title}.Free", summary=summary)
        self.describe(range=of.range, higher_is_better=of.higher_is_better)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        return self.metric.sentence_scores(free(pairs))

    def corpus_score(self, pairs: Pairs, scores: np.ndarray | None = None) -> float:
        return self.metric.corpus_score(free(pairs), scores)

    def signature(self) -> str:
        return f"{self.metric.signature()}|ref:source"


def sums_of(scores: np.ndarray) -> np.ndarray:
    """Returns (score or 0, whether there is one) of each row: float64, (rows, 2)."""
    there = ~np.isnan(scores)
    return np.column_stack([np.where(there, scores, 0.0), there])


def free(pairs: Pairs) -> Pairs:
    """Returns the pairs with the source as their only reference."""
    return replace(pairs, references=(pairs.source,))


def ratio(part: np.ndarray, whole: np.ndarray, otherwise: float = np.nan) -> np.ndarray:
    """Returns part / whole, element by element; ``otherwise`` where the whole is 0."""
    return np.divide(part, whole, out=np.full(np.shape(part), otherwise), where=whole > 0)


def complete(*columns: pa.Array) -> tuple[np.ndarray, list[list[str]]]:
    """Returns the rows in which no column is null, and each column's texts in these rows."""
    there = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns])
    return np.flatnonzero(there), [column.filter(pa.array(there)).to_pylist() for column in columns]


def signature(title: str, *settings: tuple[str, object]) -> str:
    """Returns ``title|key:value|…|v:VERSION`` with the version of this package."""
    parts = [f"{key}:{value}" for key, value in settings]
    return "|".join([title, *parts, f"v:{version('gaixie')}"])
