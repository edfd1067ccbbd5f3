"""Counts words by part of speech in Spark, and writes the vocabulary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus import inspection, parquet, reading, runs
from gaixie.jobs.corpus.files import FoundFiles, find_files, find_input
from gaixie.jobs.corpus.input import Input
from gaixie.jobs.corpus.progress import progress
from gaixie.udfs.command_line import UserError
from gaixie.udfs.reports import render
from gaixie.udfs.spark import worker_segmenter
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.storage import File, spark_uri
from gaixie.udfs.storage.tables import Form, TableError, kind_of
from gaixie.udfs.text.gold import parse_paragraph
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.parts_of_speech import tag_set_of
from gaixie.udfs.text.segmenters import Segmenter
from gaixie.udfs.text.vocabulary import class_counts, words_of

TEMPLATE = Path(__file__).with_name("table.txt.j2")

WORD_TAG = pa.schema([("word", pa.string()), ("tag", pa.string()), ("count", pa.int64())])


class Sentences(Input):
    """A table with columns of sentences."""

    columns: list[str]

    @property
    def text_columns(self) -> list[str]:
        return self.columns

    @property
    def carried(self) -> dict[str, str]:
        return {}


Lines = list[File]
"""Files with a sentence a line, or word/tag pairs."""


def find_sentences(path: str, columns: list[str], gold: bool) -> FoundFiles | Lines:
    """Finds the files of a corpus. Raises UserError for a missing file, or what cannot be read."""
    files, _ = find_files(path)
    if files and (gold or {kind_of(file.uri) for file in files} == {"txt"}):
        return files
    return find_input(Sentences(path=path, origin="human", columns=columns))


def sentences_of(spark: SparkSession, found: FoundFiles | Lines, columns: list[str]) -> DataFrame:
    """Returns the sentences, in the column text. Raises UserError as inspect_inputs does."""
    if isinstance(found, FoundFiles):
        [source] = inspection.inspect_inputs(spark, [found])
        texts = F.array(*[reading.column(name).cast("string") for name in columns])
        rows = reading.rows_of(spark, source, source.files).select(F.explode(texts).alias("text"))
        return rows.where("text IS NOT NULL")
    reader = spark.read.options(**parquet.CHECKED)
    return reader.text([spark_uri(file.uri) for file in found]).toDF("text")


def tag_counts(sentences: DataFrame, segmenter: str | None, path: str) -> DataFrame:
    """Counts word and tag; without a segmenter, the sentences are lines of word/tag of a path."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts: Counter[tuple[str, str]] = Counter()
        for batch in batches:
            texts = batch.column(0).to_pylist()
            if segmenter is None:
                for text in texts:
                    try:
                        paragraph = parse_paragraph(text.split())
                    except ValueError as error:
                        raise TableError(f"{path}: {error}") from None
                    counts.update(zip(paragraph.words, paragraph.tags, strict=True))
                continue
            for row in worker_segmenter(segmenter).tag([normalise(text) for text in texts]):
                counts.update(row)
        found = [(*key, n) for key, n in counts.items() if not key[0].isspace()]
        rows = [dict(zip(WORD_TAG.names, row, strict=True)) for row in found]
        yield pa.RecordBatch.from_pylist(rows, WORD_TAG)

    counted = sentences.mapInArrow(count, "word string, tag string, count long")
    return counted.groupBy("word", "tag").agg(F.sum("count").alias("count"))


def build_vocabulary(
    counted: DataFrame, path: str, output: str, segmenter: Segmenter | None, spec: str
) -> None:
    """Counts, chooses and publishes.

    counted: of tag_counts. segmenter: None if the sentences are lines of word/tag; spec: its name
    for load_segmenter.
    """
    started = time.monotonic()
    with (
        progress(counted.sparkSession, "segmenting and tagging", None),
        reading.errors_name_the_file([], Form("txt")),
    ):
        tagged = pd.DataFrame(counted.collect(), columns=counted.columns)
    if tagged.empty:
        raise UserError(f"{path}: no words, expected at least one sentence")
    tag_set = tag_set_of(spec if segmenter else "gold", tagged["tag"].unique())
    words = words_of(tagged, tag_set)
    kept, classes = words[words["kept"]], class_counts(words)
    lines = ["\t".join(map(str, row)) for row in kept[["word", "class", "count"]].to_numpy()]
    vocabulary = "\n".join(["word\tclass\tcount", *lines]) + "\n"
    storage.write(f"{output}/vocabulary.tsv", vocabulary)
    storage.write(f"{output}/table.txt", text := table(classes))
    counts = pa.Table.from_pandas(words, preserve_index=False)
    storage.write_table(f"{output}/counts.parquet", counts)
    manifest = {
        "created": runs.now(),
        "gaixie": version("gaixie"),
        "input": path,
        "segmenter": f"{segmenter.name}-{segmenter.version}" if segmenter else "gold",
        "tag_set": tag_set,
        "classes": classes,
        "words": len(kept),
        "seconds": round(time.monotonic() - started, 1),
    }
    storage.write_json(f"{output}/manifest.json", manifest)
    print(text, end="")
    print(f"{len(kept):,} words: {output}/vocabulary.tsv ({manifest['seconds']:.0f} s)")


def table(counts: dict[str, dict[str, int]]) -> str:
    """Formats the paper's Table 5, and the shares of its Figure 2. counts: of class_counts."""
    total = {str(name): int(count) for name, count in pd.DataFrame(counts).sum(axis=1).items()}
    rows = []
    for name, own in (*counts.items(), ("total", total)):
        share = f"{own['kept'] / own['distinct']:.2f}" if own["distinct"] else "–"
        running = f"{own['running_kept'] / own['running']:.3f}" if own["running"] else "–"
        of_kept = f"{100 * own['kept'] / max(total['kept'], 1):.1f} %"
        rows.append((name, f"{own['distinct']:,}", f"{own['kept']:,}", share, of_kept, running))
    return render(TEMPLATE, rows=rows[:-1], total=rows[-1])
