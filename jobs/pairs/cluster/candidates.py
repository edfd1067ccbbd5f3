"""Finds pairs of sentences: near duplicates to remove, and sentences that say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from gaixie.jobs.pairs.cluster.minhash import mixed, overlaps
from gaixie.udfs.metrics import identification
from gaixie.udfs.metrics.encoder import load_encoder
from gaixie.udfs.metrics.identification import Identification
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.spscore import SPScoreZh

TIERS = ("core", "full")

EDGES = "a bigint, b bigint, score float"


@dataclass(frozen=True)
class Identifier:
    """Decides whether two sentences say the same. Spark sends it to its workers, each of which
    loads the model once.

    metric: SPScore-zh's `meaning`, or `identification` by a classifier, whose folder must have the
    same path on every host.
    """

    metric: SPScoreZh | Identification
    least: float
    """Minimum score at which two sentences say the same."""

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns float32, shape (pairs,), in [0, 1]."""
        if not len(sources):
            return np.empty(0, np.float32)
        scores = self.metric.sentence_scores(Pairs.of(sources, paraphrases))
        return np.nan_to_num(scores, nan=0.0).astype(np.float32)

    def describe(self) -> str:
        """Returns the model's name and whatever distinguishes its versions."""
        if isinstance(self.metric, Identification):
            return self.metric.signature()
        model, segmenter = self.metric.loaded()
        return model.signature(segmenter)


def load_identifier(identify: str, min_meaning: float, min_probability: float) -> Identifier:
    """Loads the identifier that a tier's name or a classifier's folder names.

    Raises OSError or ValueError of one line if it cannot be loaded.
    """
    if identify in TIERS:
        metric = SPScoreZh("meaning", identify)
        metric.loaded()
        return Identifier(metric, min_meaning)
    identification.load_identifier(identify)
    return Identifier(Identification(identify), min_probability)


def with_texts(pairs: DataFrame, sentences: DataFrame, columns: list[str]) -> DataFrame:
    """Adds the columns of both sentences to pairs (a, b), as NAME_a and NAME_b."""
    for side in ("a", "b"):
        names = [F.col(name).alias(f"{name}_{side}") for name in columns]
        pairs = pairs.join(sentences.select(F.col("node").alias(side), *names), side)
    return pairs


def near_duplicates(pairs: DataFrame, ngram: int, least: float) -> DataFrame:
    """Returns column node: the distinct sentences that overlap too much with an earlier one.

    pairs: see with_texts. The earlier one may itself be left out: the first of a chain stays.
    """

    def later(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            same = overlaps(batch["text_a"], batch["text_b"], ngram) >= least
            yield pa.RecordBatch.from_arrays([batch["b"].filter(pa.array(same))], ["node"])

    return pairs.mapInArrow(later, "node bigint").distinct()


@dataclass(frozen=True)
class Candidates:
    """Selects pairs that may say the same: their n-grams or embeddings are similar, but they are
    not copies.

    overlap: the minimum and the exclusive maximum. cosine: the minimum, if there are embeddings.
    """

    ngram: int
    overlap: tuple[float, float]
    cosine: float | None

    def __call__(self, pairs: pa.RecordBatch) -> np.ndarray:
        least, most = self.overlap
        overlap = overlaps(pairs["text_a"], pairs["text_b"], self.ngram)
        may_be = (overlap >= least) & (overlap < most)
        if self.cosine is None:
            return may_be
        a, b = (vectors_of(pairs[f"vector_{side}"]) for side in ("a", "b"))
        return may_be & (np.einsum("ij,ij->i", a, b) >= self.cosine)


def identified(pairs: DataFrame, identifier: Identifier, may_be: Candidates) -> DataFrame:
    """Returns columns EDGES: those candidate pairs that say the same.

    pairs: see with_texts. The sentence with the smaller number is the source, since the score may
    depend on the order.
    """

    def say_the_same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chosen = batch.filter(pa.array(may_be(batch)))
            a, b = (chosen[name].to_numpy() for name in ("a", "b"))
            texts = np.array([chosen["text_a"].to_pylist(), chosen["text_b"].to_pylist()], object)
            first, rows = (a > b).astype(int), np.arange(len(a))
            scores = identifier.scores(texts[first, rows].tolist(), texts[1 - first, rows].tolist())
            same = scores >= identifier.least
            columns = [pa.array(a[same]), pa.array(b[same]), pa.array(scores[same])]
            yield pa.RecordBatch.from_arrays(columns, ["a", "b", "score"])

    return pairs.mapInArrow(say_the_same, EDGES)


@dataclass(frozen=True)
class Hyperplanes:
    """Hashes an embedding into bands of bits, each the side of a random hyperplane on which it
    lies.

    Source: Charikar, "Similarity estimation techniques from rounding algorithms" (2002).
    """

    bands: int
    rows: int
    seed: int

    def __call__(self, sentences: pa.RecordBatch) -> np.ndarray:
        vectors = vectors_of(sentences["vector"])
        random = np.random.Generator(np.random.PCG64(self.seed))
        planes = random.standard_normal((vectors.shape[1], self.bands * self.rows), np.float32)
        bits = (vectors @ planes > 0).reshape(len(vectors), self.bands, self.rows)
        values = bits.astype(np.uint64) @ (np.uint64(1) << np.arange(self.rows, dtype=np.uint64))
        return mixed(values ^ mixed(np.arange(self.bands, dtype=np.uint64)))


def with_vectors(sentences: DataFrame, encoder: str) -> DataFrame:
    """Adds each sentence's embedding by an encoder: binary, float16, of length 1."""
    schema = StructType([*sentences.schema.fields, StructField("vector", BinaryType())])

    def embed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        loaded: Any = load_encoder(encoder)
        for batch in batches:
            vectors = loaded.sentence_vectors(batch["text"].to_pylist()).astype(np.float16)
            rows = pa.array([row.tobytes() for row in vectors], pa.binary())
            yield batch.append_column("vector", rows)

    return sentences.mapInArrow(embed, schema)


def vectors_of(column: pa.Array) -> np.ndarray:
    """Returns a column of with_vectors as float32, shape (rows, width)."""
    rows = [np.frombuffer(row, np.float16) for row in column.to_pylist()]
    return np.stack(rows).astype(np.float32) if rows else np.empty((0, 0), np.float32)
