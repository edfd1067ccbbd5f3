"""Finds pairs of sentences: near duplicates to remove, and sentences that say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.pairs.clusters.minhash import overlaps
from gaixie.udfs.command_line import UserError
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.spscore import SPScoreZh

EDGES = "a bigint, b bigint, score float"


@dataclass(frozen=True)
class Identifier:
    """Decides whether two sentences say the same: SPScore-zh's `meaning`, by a tier.

    Spark sends it to its workers, each of which loads the model once.
    """

    tier: str
    least: float
    """Minimum score at which two sentences say the same."""

    @property
    def _metric(self) -> SPScoreZh:
        return SPScoreZh("meaning", self.tier)

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns float32, shape (pairs,), in [0, 1]."""
        if not len(sources):
            return np.empty(0, np.float32)
        scores = self._metric.sentence_scores(Pairs.of(sources, paraphrases))
        return np.nan_to_num(scores, nan=0.0).astype(np.float32)

    def describe(self) -> str:
        """Returns the metric's signature. Raises UserError if it cannot be loaded."""
        try:
            model, segmenter = self._metric.loaded()
        except (OSError, ValueError, ImportError) as error:
            raise UserError(str(error)) from error
        return model.signature(segmenter)


def with_texts(pairs: DataFrame, sentences: DataFrame) -> DataFrame:
    """Adds the texts of both sentences to pairs (a, b), as text_a and text_b."""
    for side in ("a", "b"):
        texts = sentences.select(F.col("node").alias(side), F.col("text").alias(f"text_{side}"))
        pairs = pairs.join(texts, side)
    return pairs


def near_duplicates(pairs: DataFrame, least: float) -> DataFrame:
    """Returns column node: the distinct sentences that overlap too much with an earlier one.

    pairs: see with_texts. The earlier one may itself be left out: the first of a chain stays.
    """

    def later(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            same = overlaps(batch["text_a"], batch["text_b"]) >= least
            yield pa.RecordBatch.from_arrays([batch["b"].filter(pa.array(same))], ["node"])

    return pairs.mapInArrow(later, "node bigint").distinct()


def identified(pairs: DataFrame, identifier: Identifier, least: float, copies: float) -> DataFrame:
    """Returns columns EDGES: those candidate pairs that say the same.

    pairs: see with_texts. Candidates overlap by least or more, but by less than copies. The
    sentence with the smaller number is the source, since the score may depend on the order.
    """

    def say_the_same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            overlap = overlaps(batch["text_a"], batch["text_b"])
            chosen = batch.filter(pa.array((overlap >= least) & (overlap < copies)))
            a, b = chosen["a"].to_numpy(), chosen["b"].to_numpy()
            texts = np.array([chosen["text_a"].to_pylist(), chosen["text_b"].to_pylist()], object)
            first, rows = (a > b).astype(int), np.arange(len(a))
            scores = identifier.scores(texts[first, rows].tolist(), texts[1 - first, rows].tolist())
            same = scores >= identifier.least
            columns = [pa.array(a[same]), pa.array(b[same]), pa.array(scores[same])]
            yield pa.RecordBatch.from_arrays(columns, ["a", "b", "score"])

    return pairs.mapInArrow(say_the_same, EDGES)
