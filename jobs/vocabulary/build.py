"""Counts words by part of speech, and keeps the frequent ones."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.reporting import png_of, render
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
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


class BuildVocabulary:
    """The steps of the job, in the order in which build calls them."""

    def __init__(
        self, spark: SparkSession, storage: Storage, path: str, output: str, rules: dict[str, Rule]
    ):
        self.spark, self.storage, self.rules = spark, storage, rules
        self.path, self.output = path, output.rstrip("/")

    def check_output(self, overwrite: bool) -> None:
        """Raises JobError where there is a vocabulary already."""
        if self.storage.exists(f"{self.output}/manifest.json"):
            if not overwrite:
                raise JobError(f"{self.output}: a vocabulary is there; --overwrite replaces it")
            self.storage.delete(f"{self.output}/manifest.json")

    def read(self, columns: list[str] | None, limit: int | None) -> DataFrame:
        """Reads one column, sentence: of a text table, or (columns None) lines of word/tag."""
        first = self.storage.list_files(self.path)[0].uri
        kind = FORMATS.get(first.removesuffix(".gz").rpartition(".")[2].lower())
        if columns is None:
            kind, columns = "text", ["value"]
        if kind is None:
            raise JobError(
                f"{first}: its name tells no format, expected one of {', '.join(FORMATS)}"
            )
        reader = self.spark.read
        if kind == "csv":
            reader = reader.option("header", True).option("escape", '"')
        try:
            rows = reader.load(self.path, format=kind)
        except (PySparkException, Py4JJavaError) as error:
            raise JobError(f"{first}: not a readable {kind} file") from error
        columns = ["value"] if kind == "text" else columns
        for name in columns:
            if name not in rows.columns:
                raise JobError(f"{first}: no column '{name}', it has: {', '.join(rows.columns)}")
            if (kind_of_column := dict(rows.dtypes)[name]) != "string":
                raise JobError(f"{first}: column '{name}' is {kind_of_column}, expected string")
        if limit is not None:
            rows = rows.limit(limit)
        texts = rows.select(F.explode(F.array(*[F.col(f"`{name}`") for name in columns])))
        texts = texts.toDF("sentence").where("sentence IS NOT NULL")
        tasks = TASKS_PER_CORE * self.spark.sparkContext.defaultParallelism
        # A row group is one task; a few large ones leave cores idle, and progress unseen.
        return texts.repartition(tasks) if texts.rdd.getNumPartitions() < tasks else texts

    def build(self, sentences: DataFrame, segmenter: Segmenter | None, spec: str) -> None:
        started = time.monotonic()
        tagged = tag_counts(sentences, spec if segmenter else None)
        work, counts = f"{self.output}/_work", f"{self.output}/counts"
        with progress(self.spark, "segmenting and tagging", None):
            self._write(tagged, work)
        tagged = self.spark.read.schema(tagged.schema).parquet(work)
        tags = [row.tag for row in tagged.select("tag").distinct().collect()]
        if not tags:
            self.storage.delete(work)
            raise JobError(f"{self.path}: no words, expected at least one sentence")
        tag_set = tag_set_of(spec if segmenter else "gold", tags)

        words = self._words(tagged, tag_set)
        with progress(self.spark, "choosing words", None):
            self._write(words, counts)
            self.storage.delete(work)
            words = self.spark.read.schema(words.schema).parquet(counts)
            by_count: dict[str, Counter[int]] = defaultdict(Counter)
            for row in words.groupBy("class", "count").agg(F.count("*").alias("n")).collect():
                by_count[row["class"]][row["count"]] = row.n
            cuts = {name: find_cut(by_count[name], self.rules[name]) for name in CLASSES}
            frequent = words.withColumn("kept", _is_kept(cuts)).where("kept")
            kept = interruptible(frequent.select("word", "class", "count").toArrow).to_pandas()
        kept = kept.sort_values(["count", "word"], ascending=[False, True])
        self._publish(by_count, kept, tag_set, segmenter, time.monotonic() - started)

    def _write(self, table: DataFrame, path: str) -> None:
        """Writes a table. Raises JobError if the input turns out to be wrong."""
        try:
            table.write.mode("overwrite").parquet(path)
        except (PySparkException, Py4JJavaError) as error:
            self.storage.delete(path)
            if match := NOT_GOLD.search(str(error)):
                raise JobError(f"{self.path}: {match[1]}") from error
            if "FAILED_READ_FILE" in str(error):
                raise JobError(f"{self.path}: a file cannot be read to its end: corrupt") from error
            raise

    def _words(self, tagged: DataFrame, tag_set: str) -> DataFrame:
        """Returns word, class, count, and the counts by class, of every word."""
        tags = TAG_SETS[tag_set]
        literal = F.create_map(*[F.lit(part) for item in tags.items() for part in item])
        name = F.coalesce(literal[F.col("tag")], F.lit(class_of("", tag_set)))
        order = F.create_map(*[F.lit(p) for k, c in enumerate(CLASSES) for p in (c, k)])
        by_class = tagged.groupBy("word", name.alias("class")).agg(F.sum("count").alias("n"))
        main = F.expr("min_by(class, struct(-n, rank))").alias("class")
        counts = F.map_from_entries(F.sort_array(F.collect_list(F.struct("class", "n"))))
        return (
            by_class.withColumn("rank", order[F.col("class")])
            .groupBy("word")
            .agg(main, F.sum("n").alias("count"), counts.alias("classes"))
        )

    def _publish(
        self,
        by_count: dict[str, Counter[int]],
        kept: pd.DataFrame,
        tag_set: str,
        segmenter: Segmenter | None,
        seconds: float,
    ) -> None:
        counts = {
            name: {
                "distinct": sum(by_count[name].values()),
                "kept": int((kept["class"] == name).sum()),
                "running": sum(count * words for count, words in by_count[name].items()),
                "running_kept": int(kept.loc[kept["class"] == name, "count"].sum()),
            }
            for name in CLASSES
        }
        text = table(counts)
        lines = ["\t".join(map(str, row)) for row in kept.itertuples(index=False)]
        self.storage.write(
            f"{self.output}/vocabulary.tsv", "\n".join(["word\tclass\tcount", *lines]) + "\n"
        )
        self.storage.write(f"{self.output}/table.txt", text)
        self.storage.write(f"{self.output}/distribution.png", draw_distribution(counts))
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
            "classes": counts,
            "words": len(kept),
            "seconds": round(seconds, 1),
        }
        self.storage.write_json(f"{self.output}/manifest.json", manifest)
        print(text, end="")
        print(f"{len(kept):,} words: {self.output}/vocabulary.tsv ({seconds:.0f} s)")


def tag_counts(sentences: DataFrame, segmenter: str | None) -> DataFrame:
    """Counts word and tag; with no segmenter the sentences are lines of word/tag."""
    schema = "word string, tag string, count long"
    types = pa.schema({"word": pa.string(), "tag": pa.string(), "count": pa.int64()})

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
            named = [dict(zip(types.names, row, strict=True)) for row in rows]
            yield pa.RecordBatch.from_pylist(named, types)

    counted = sentences.mapInArrow(count, schema)
    return counted.groupBy("word", "tag").agg(F.sum("count").alias("count"))


def _is_kept(cuts: dict[str, Cut]) -> Column:
    """Returns Cut.keeps of gaixie.udfs.text.vocabulary as a column: ties go by rank."""
    above = F.create_map(*[F.lit(p) for name, cut in cuts.items() for p in (name, cut.above)])
    ties = F.create_map(*[F.lit(p) for name, cut in cuts.items() for p in (name, cut.ties)])
    edge = F.col("count") == above[F.col("class")]
    order = Window.partitionBy("class", edge).orderBy("word")
    rank = F.when(edge, F.row_number().over(order) - 1)
    return (F.col("count") > above[F.col("class")]) | (edge & (rank < ties[F.col("class")]))


# The paper's Table 5 and Figure 2


def table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Formats Table 5. counts: distinct, kept, running, running_kept of each class."""
    keys = ("distinct", "kept", "running", "running_kept")
    total = {key: sum(row[key] for row in counts.values()) for key in keys}
    rows = [_row(name, row) for name, row in counts.items()]
    return render(TEMPLATE, rows=rows, total=_row("total", total))


def _row(name: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    distinct, kept, running = counts["distinct"], counts["kept"], counts["running"]
    ratio = f"{kept / distinct:.2f}" if distinct else "–"
    share = f"{counts['running_kept'] / running:.3f}" if running else "–"
    return name, f"{distinct:,}", f"{kept:,}", ratio, share


def draw_distribution(counts: Mapping[str, Mapping[str, int]]) -> bytes:
    """Draws the parts of speech of the words that were kept. counts: as for ``table``."""
    return png_of(distribution(counts))


def distribution(counts: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draws a bar for each part of speech: its per cent of the kept words."""
    kept = sorted((row["kept"], name) for name, row in counts.items() if row["kept"])
    total = sum(number for number, _ in kept)
    figure = Figure(figsize=(8, 0.9 + 0.3 * max(len(kept), 1)), dpi=140, layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh([name for _, name in kept], [100 * number / total for number, _ in kept])
    labels = [f"{100 * number / total:.1f} % ({number:,})" for number, _ in kept]
    axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.margins(x=0.2)
    axes.set_xlabel(f"% of the {total:,} words kept")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
