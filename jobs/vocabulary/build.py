"""Counts words by part of speech in Spark, and writes the vocabulary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.files import find_files, shown
from gaixie.jobs.corpus.progress import progress
from gaixie.jobs.corpus.publish import now
from gaixie.jobs.corpus.reading import PART_BYTES, blaming, numbers, parts_of, tasks, text_pieces
from gaixie.udfs.command_line import UserError
from gaixie.udfs.reports import render
from gaixie.udfs.spark import worker_segmenter
from gaixie.udfs.storage import storage, tables
from gaixie.udfs.storage.tables import Form, Part, TableError
from gaixie.udfs.text.gold import parse_paragraph
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.parts_of_speech import tag_set_of
from gaixie.udfs.text.segmenters import Segmenter
from gaixie.udfs.text.vocabulary import class_counts, words_of

TEMPLATE = Path(__file__).with_name("table.txt.j2")

WORD_TAG = pa.schema([("word", pa.string()), ("tag", pa.string()), ("count", pa.int64())])


def check_output(output: str, overwrite: bool) -> None:
    """Raises UserError if a vocabulary exists already, unless it may be overwritten."""
    if storage.exists(f"{output}/manifest.json"):
        if not overwrite:
            raise UserError(f"{output}: already has a vocabulary; --overwrite replaces it")
        storage.delete(f"{output}/manifest.json")


def find_sentences(path: str, columns: list[str], gold: bool) -> tuple[Form, list[list[Part]]]:
    """Finds the files of a corpus: (their form, their parts in groups, each for a task).

    gold: whether they are lines of word/tag. Raises UserError for a missing file, an unknown
    format, or columns that are missing or no text.
    """
    files, _ = find_files(path)
    if not files:
        raise UserError(f"{path}: no words, expected at least one sentence")
    kinds = {"txt" if gold else tables.kind_of(file.uri) for file in files}
    if len(kinds) > 1 or None in kinds:
        names = ", ".join(sorted(kind or "unknown" for kind in kinds))
        raise UserError(f"{path}: expected files of one format, not {names}")
    form = Form(str(kinds.pop()))
    pieces = text_pieces(files, form) if form.kind != "csv" else {file.uri: 1 for file in files}
    for file in files:
        try:
            found = tables.header_of(file.uri, form)
            if form.kind == "parquet":
                footer = tables.read_footer(file.uri)
                pieces[file.uri] = footer.row_groups
                for name in columns:
                    if name in found and not pa.types.is_string(footer.schema.field(name).type):
                        kind = footer.schema.field(name).type
                        raise UserError(f"{file.uri}: column '{name}' is {kind}, expected string")
        except tables.TableError as error:
            raise UserError(str(error)) from None
        for name in columns if form.kind != "txt" else ():
            if name not in found:
                there = ", ".join(found)
                raise UserError(f"{shown(file.uri)}: no column '{name}', it has: {there}")
    return form, parts_of(files, pieces, 1 if form.kind == "parquet" else PART_BYTES)


def sentences_of(parts: Iterable[Part], form: Form, columns: list[str]) -> Iterator[list[str]]:
    """Yields the sentences of each row; a malformed row has none. Raises TableError."""
    names = ["line"] if form.kind == "txt" else columns
    for part in parts:
        for batch in tables.read(part, names, form):
            for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                yield [text for text in row if text]


def tag_counts(
    spark: SparkSession,
    groups: list[list[Part]],
    form: Form,
    columns: list[str],
    segmenter: str | None,
    limit: int | None,
) -> DataFrame:
    """Counts word and tag; without a segmenter, the sentences are lines of word/tag.

    limit: maximum rows, which one task reads.
    """
    if limit is not None:
        groups = [[part for group in groups for part in group]]

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            rows = islice(sentences_of(groups[number], form, columns), limit)
            texts = (text for row in rows for text in row)
            counts = _counts(texts, segmenter, groups[number][0].uri)
            found = [(*key, n) for key, n in counts.items() if not key[0].isspace()]
            held = [*zip(*found, strict=True)] or [(), (), ()]
            arrays = [pa.array(part, kind) for part, kind in zip(held, WORD_TAG.types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=WORD_TAG)

    counted = tasks(spark, len(groups)).mapInArrow(count, "word string, tag string, count long")
    return counted.groupBy("word", "tag").agg(F.sum("count").alias("count"))


def _counts(texts: Iterator[str], segmenter: str | None, path: str) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    if segmenter is None:
        for text in texts:
            try:
                paragraph = parse_paragraph(text.split())
            except ValueError as error:
                raise TableError(f"{path}: {error}") from None
            counts.update(zip(paragraph.words, paragraph.tags, strict=True))
        return counts
    words = worker_segmenter(segmenter)
    while some := [normalise(text) for text in islice(texts, tables.BATCH)]:
        for row in words.tag(some):
            counts.update(row)
    return counts


def build_vocabulary(
    counted: DataFrame, path: str, output: str, segmenter: Segmenter | None, spec: str
) -> None:
    """Counts, chooses and publishes.

    counted: of tag_counts. segmenter: None if the sentences are lines of word/tag; spec: its name
    for load_segmenter.
    """
    started = time.monotonic()
    shown_as = "segmenting and tagging"
    with progress(counted.sparkSession, shown_as, None), blaming([], Form("txt")):
        tagged = pd.DataFrame(counted.collect(), columns=counted.columns)
    if tagged.empty:
        raise UserError(f"{path}: no words, expected at least one sentence")
    tag_set = tag_set_of(spec if segmenter else "gold", tagged["tag"].unique())
    words = words_of(tagged, tag_set)
    kept, classes = words[words["kept"]], class_counts(words)
    write = partial(_write, output)
    lines = ["\t".join(map(str, row)) for row in kept[["word", "class", "count"]].to_numpy()]
    write("vocabulary.tsv", "\n".join(["word\tclass\tcount", *lines]) + "\n")
    write("table.txt", text := table(classes))
    storage.write_table(
        f"{output}/counts.parquet", pa.Table.from_pandas(words, preserve_index=False)
    )
    manifest = {
        "created": now(),
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


def _write(output: str, name: str, text: str) -> None:
    storage.write(f"{output}/{name}", text)


def table(counts: dict[str, dict[str, int]]) -> str:
    """Formats the paper's Table 5, and the shares of its Figure 2. counts: of class_counts."""
    frame = pd.DataFrame(counts).T
    frame.loc["total"] = frame.sum()
    all_kept = max(frame["kept"]["total"], 1)
    rows = [_cells(str(name), own, all_kept) for name, own in frame.iterrows()]
    return render(TEMPLATE, rows=rows[:-1], total=rows[-1])


def _cells(name: str, own: Any, all_kept: int) -> tuple[str, ...]:
    share = f"{own['kept'] / own['distinct']:.2f}" if own["distinct"] else "–"
    running = f"{own['running_kept'] / own['running']:.3f}" if own["running"] else "–"
    of_kept = f"{100 * own['kept'] / all_kept:.1f} %"
    return name, f"{own['distinct']:,}", f"{own['kept']:,}", share, of_kept, running
