"""Counts words by part of speech, and keeps the frequent ones."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.reporting import png_of
from gaixie.jobs.corpus.session import cores
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.corpus.unreadable import SPARK_ERRORS
from gaixie.jobs.errors import JobError
from gaixie.udfs.reports import render
from gaixie.udfs.spark import worker_segmenter
from gaixie.udfs.text.gold import parse_paragraph
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.parts_of_speech import CLASSES, TAG_SETS, class_of, tag_set_of
from gaixie.udfs.text.segmenters import Segmenter
from gaixie.udfs.text.vocabulary import Cut, Rule, find_cut

TEMPLATE = Path(__file__).with_name("table.txt.j2")
FORMATS = {"parquet": "parquet", "jsonl": "json", "json": "json", "txt": "text", "csv": "csv"}
TASKS_PER_CORE = 8
NOT_GOLD = re.compile(r"('.*' is not word/tag)")
COUNTS = ("distinct", "kept", "running", "running_kept")
"""Counts of each class: distinct words and running words, all of them and the kept ones."""


def check_output(storage: Storage, output: str, overwrite: bool) -> None:
    """Raises JobError if a vocabulary exists already, unless it may be overwritten."""
    if storage.exists(f"{output}/manifest.json"):
        if not overwrite:
            raise JobError(f"{output}: already has a vocabulary; --overwrite replaces it")
        storage.delete(f"{output}/manifest.json")


def read_sentences(
    spark: SparkSession, storage: Storage, path: str, columns: list[str] | None, limit: int | None
) -> DataFrame:
    """Reads sentences into one column: from columns of a table, or (columns None) lines of
    word/tag."""
    first = storage.list_files(path)[0].uri
    kind = FORMATS.get(first.removesuffix(".gz").rpartition(".")[2].lower())
    if columns is None or kind == "text":
        kind, columns = "text", ["value"]
    if kind is None:
        raise JobError(f"{first}: unknown format, expected one of {', '.join(FORMATS)}")
    csv: dict[str, Any] = {"header": True, "escape": '"'} if kind == "csv" else {}
    try:
        rows = spark.read.load(path, format=kind, **csv)
    except SPARK_ERRORS as error:
        raise JobError(f"{first}: not a readable {kind} file") from error
    for name in columns:
        if name not in rows.columns:
            raise JobError(f"{first}: no column '{name}', it has: {', '.join(rows.columns)}")
        if (found := dict(rows.dtypes)[name]) != "string":
            raise JobError(f"{first}: column '{name}' is {found}, expected string")
    if limit is not None:
        rows = rows.limit(limit)
    texts = rows.select(F.explode(F.array(*[F.col(f"`{name}`") for name in columns])))
    texts = texts.toDF("sentence").where("sentence IS NOT NULL")
    tasks = TASKS_PER_CORE * cores(spark)
    # A row group is one task; a few large ones leave cores idle, and hide progress.
    return texts.repartition(tasks) if texts.rdd.getNumPartitions() < tasks else texts


class BuildVocabulary:
    """The steps of the job, in the order in which build calls them."""

    def __init__(
        self, spark: SparkSession, storage: Storage, path: str, output: str, rules: dict[str, Rule]
    ):
        self.spark, self.storage, self.rules = spark, storage, rules
        self.path, self.output = path, output

    def build(self, sentences: DataFrame, segmenter: Segmenter | None, spec: str) -> None:
        """Counts, chooses and publishes. segmenter: None if the sentences are lines of word/tag;
        spec: its name for load_segmenter."""
        started = time.monotonic()
        work = f"{self.output}/_work"
        with progress(self.spark, "segmenting and tagging", None):
            tagged = self._write(tag_counts(sentences, spec if segmenter else None), work)
        tags = [row.tag for row in tagged.select("tag").distinct().collect()]
        if not tags:
            self.storage.delete(work)
            raise JobError(f"{self.path}: no words, expected at least one sentence")
        tag_set = tag_set_of(spec if segmenter else "gold", tags)
        with progress(self.spark, "choosing words", None):
            words = self._write(words_of(tagged, tag_set), f"{self.output}/counts")
            self.storage.delete(work)
            by_count: dict[str, dict[int, int]] = {name: {} for name in CLASSES}
            for name, count, number in words.groupBy("class", "count").agg(F.count("*")).collect():
                by_count[name][count] = number
            cuts = {name: find_cut(by_count[name], self.rules[name]) for name in CLASSES}
            frequent = words.withColumn("kept", is_kept(cuts)).where("kept")
            frequent = frequent.select("word", "class", "count")
            kept = interruptible(frequent.toArrow).to_pandas()
        kept = kept.sort_values(["count", "word"], ascending=[False, True])
        manifest = {
            "created": now(),
            "gaixie": version("gaixie"),
            "input": self.path,
            "segmenter": f"{segmenter.name}-{segmenter.version}" if segmenter else "gold",
            "tag_set": tag_set,
            "rules": {
                name: {k: v for k, v in asdict(rule).items() if v is not None}
                for name, rule in self.rules.items()
            },
            "classes": class_counts(by_count, kept),
            "words": len(kept),
        }
        self._publish(manifest, kept, time.monotonic() - started)

    def _write(self, table: DataFrame, path: str) -> DataFrame:
        """Writes a table, and reads it back. Raises JobError if the input proves invalid."""
        try:
            table.write.mode("overwrite").parquet(path)
        except SPARK_ERRORS as error:
            self.storage.delete(path)
            if match := NOT_GOLD.search(str(error)):
                raise JobError(f"{self.path}: {match[1]}") from error
            if "FAILED_READ_FILE" in str(error):
                raise JobError(f"{self.path}: a file cannot be read to its end: corrupt") from error
            raise
        return self.spark.read.schema(table.schema).parquet(path)

    def _publish(self, manifest: dict, kept: pd.DataFrame, seconds: float) -> None:
        text = table(manifest["classes"])
        lines = ["\t".join(map(str, row)) for row in kept.itertuples(index=False)]
        words = "\n".join(["word\tclass\tcount", *lines]) + "\n"
        self.storage.write(f"{self.output}/vocabulary.tsv", words)
        self.storage.write(f"{self.output}/table.txt", text)
        picture = png_of(distribution(manifest["classes"]))
        self.storage.write(f"{self.output}/distribution.png", picture)
        manifest["seconds"] = round(seconds, 1)
        self.storage.write_json(f"{self.output}/manifest.json", manifest)
        print(text, end="")
        print(f"{len(kept):,} words: {self.output}/vocabulary.tsv ({seconds:.0f} s)")


def tag_counts(sentences: DataFrame, segmenter: str | None) -> DataFrame:
    """Counts word and tag; without a segmenter, the sentences are lines of word/tag."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        words = worker_segmenter(segmenter) if segmenter else None
        for batch in batches:
            texts = batch.column(0).to_pylist()
            counts: Counter[tuple[str, str]] = Counter()
            if words is None:
                for text in texts:
                    paragraph = parse_paragraph(text.split())
                    counts.update(zip(paragraph.words, paragraph.tags, strict=True))
            else:
                for row in words.tag([normalise(text) for text in texts]):
                    counts.update(row)
            rows = [(*key, n) for key, n in counts.items() if not key[0].isspace()]
            columns = zip(*rows, strict=True) if rows else ([], [], [])
            types = (pa.string(), pa.string(), pa.int64())
            arrays = [pa.array(part, kind) for part, kind in zip(columns, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, ["word", "tag", "count"])

    counted = sentences.mapInArrow(count, "word string, tag string, count long")
    return counted.groupBy("word", "tag").agg(F.sum("count").alias("count"))


def words_of(tagged: DataFrame, tag_set: str) -> DataFrame:
    """Returns word, class, count, and the counts by class, for every word.

    tagged: columns word, tag, count. A word belongs to the class in which it is most frequent.
    """
    name = F.coalesce(_lookup(TAG_SETS[tag_set], "tag"), F.lit(class_of("", tag_set)))
    order = _lookup({name: place for place, name in enumerate(CLASSES)}, "class")
    by_class = tagged.groupBy("word", name.alias("class")).agg(F.sum("count").alias("n"))
    main = F.expr("min_by(class, struct(-n, rank))").alias("class")
    counts = F.map_from_entries(F.sort_array(F.collect_list(F.struct("class", "n"))))
    return (
        by_class.withColumn("rank", order)
        .groupBy("word")
        .agg(main, F.sum("n").alias("count"), counts.alias("classes"))
    )


def is_kept(cuts: Mapping[str, Cut]) -> Column:
    """Computes Cut.keeps of gaixie.udfs.text.vocabulary as a column; ranks break ties."""
    above = _lookup({name: cut.above for name, cut in cuts.items()}, "class")
    ties = _lookup({name: cut.ties for name, cut in cuts.items()}, "class")
    order = Window.partitionBy("class", F.col("count") == above).orderBy("word")
    rank = F.row_number().over(order) - 1
    return (F.col("count") > above) | ((F.col("count") == above) & (rank < ties))


def _lookup(values: Mapping[str, int | str], column: str) -> Column:
    literals = [F.lit(part) for item in values.items() for part in item]
    return F.create_map(*literals)[F.col(column)]


# The paper's Table 5 and Figure 2


def class_counts(
    by_count: Mapping[str, Mapping[int, int]], kept: pd.DataFrame
) -> dict[str, dict[str, int]]:
    """Returns COUNTS of each class. by_count: the number of its words with each count."""
    counts = {}
    for name, words in by_count.items():
        of_class = kept.loc[kept["class"] == name, "count"]
        running = sum(count * number for count, number in words.items())
        values = (sum(words.values()), len(of_class), running, int(of_class.sum()))
        counts[name] = dict(zip(COUNTS, values, strict=True))
    return counts


def table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Formats the paper's Table 5. counts: COUNTS of each class."""
    total = {key: sum(row[key] for row in counts.values()) for key in COUNTS}
    *rows, last = [
        (
            name,
            f"{row['distinct']:,}",
            f"{row['kept']:,}",
            f"{row['kept'] / row['distinct']:.2f}" if row["distinct"] else "–",
            f"{row['running_kept'] / row['running']:.3f}" if row["running"] else "–",
        )
        for name, row in [*counts.items(), ("total", total)]
    ]
    return render(TEMPLATE, rows=rows, total=last)


def distribution(counts: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draws a bar for each part of speech: its percentage of the kept words. counts: see table."""
    kept = sorted((row["kept"], name) for name, row in counts.items() if row["kept"])
    total = sum(number for number, _ in kept)
    figure = Figure(figsize=(8, 0.9 + 0.3 * max(len(kept), 1)), dpi=140, layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh([name for _, name in kept], [100 * number / total for number, _ in kept])
    labels = [f"{100 * number / total:.1f} % ({number:,})" for number, _ in kept]
    axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.margins(x=0.2)
    axes.set_xlabel(f"% of the {total:,} words kept")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
