"""Counts the contents of a release, for its manifest, card and plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from gaixie.jobs.corpus.reporting import BARS
from gaixie.jobs.releases.rows import COLUMNS, LINEAGE, RUN, read_release
from gaixie.udfs.spark import score_bin_column
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import STAGES
from gaixie.udfs.storage.manifest import ReleaseLineage

LENGTH_BINS = 10
"""Width of a bin of lengths, in characters."""

LINEAGES = 1_000
"""Maximum lineages that a manifest lists, those with the most pairs: a licence may be any text."""

OTHERS = "(others)"
"""Stands for method, model and licence of the pairs of all other lineages."""

CELL = {"kind": "string", "split": "string", "subset": "string", "stage": "int"}
CELL |= {"origin": "string", "name": "string", "bin": "int", "value": "double"}
"""Columns of a cell and their types; each pair counts in several cells."""


class Counts(NamedTuple):
    """Tables of counts (column pairs)."""

    scores: pd.DataFrame
    """Pairs by split, stage, origin and score bin."""
    lengths: pd.DataFrame
    """Sentences by origin, stage, side and bin, of LENGTH_BINS characters."""
    judgements: pd.DataFrame
    """Pairs by stage, output and bin, of BARS from 0 to 1; sum is that of the values."""


def count_written(rows: DataFrame) -> Counts:
    """Counts the rows of read_release, reading them once.

    Raises RuntimeError if a row is in the wrong folder.
    """
    stage, origin = F.col("stage"), F.col("origin")
    place = {"split": F.col("split"), "subset": F.col("subset")}
    cells = [_cell("score", **place, stage=stage, origin=origin, bin=score_bin_column())]
    for side, length in {"source": F.col("sl"), "paraphrase": F.col("sl") * F.col("lr")}.items():
        number = F.floor(F.round(length) / LENGTH_BINS)
        cells += [_cell("length", stage=stage, origin=origin, name=F.lit(side), bin=number)]
    for output in OUTPUTS:
        value = F.col(output).cast("double")
        bar = F.least(F.floor(value * BARS), F.lit(BARS - 1))
        cells += [_cell("judgement", stage=stage, name=F.lit(output), bin=bar, value=value)]
    *keys, _ = CELL
    cells_of_all = rows.select(F.inline(F.array(*cells))).groupBy(*keys)
    table = cells_of_all.agg(
        F.count(F.lit(1)).alias("pairs"), F.sum("value").alias("sum")
    ).toPandas()

    def of(kind: str, *columns: str, **renamed: str) -> pd.DataFrame:
        part = table.loc[table["kind"] == kind, [*columns, *renamed, "bin", "pairs", "sum"]]
        exact = part.astype({"bin": int}) if part["bin"].notna().all() else part
        return exact.rename(columns=renamed)

    scores = _in_place(of("score", "split", "subset", "stage", "origin").drop(columns="sum"))
    lengths = of("length", "origin", "stage", name="side").drop(columns="sum")
    return Counts(scores, lengths, of("judgement", "stage", name="output"))


def _cell(kind: str, **given: Column) -> Column:
    """Returns a struct CELL; columns that are not given are null."""
    values = {name: given.get(name, F.lit(None)) for name in CELL} | {"kind": F.lit(kind)}
    return F.struct(*[values[name].cast(how).alias(name) for name, how in CELL.items()])


def count_scores(rows: DataFrame) -> pd.DataFrame:
    """Counts rows of read_release as Counts.scores. Raises as count_written does."""
    keys = "split", "subset", "stage", "origin", score_bin_column().alias("bin")
    return _in_place(rows.groupBy(*keys).agg(F.count(F.lit(1)).alias("pairs")).toPandas())


def _in_place(table: pd.DataFrame) -> pd.DataFrame:
    wrong = table[table["subset"] != "stage-" + table["stage"].astype(str)]
    for row in wrong.itertuples():
        raise RuntimeError(f"data/split={row.split}/subset={row.subset}: rows of stage {row.stage}")
    return table.drop(columns="subset")


def pairs_by(counts: pd.DataFrame, *keys: str) -> Counter[Any]:
    """Sums the pairs of a table of counts by one or more keys."""
    by: Any = [*keys] if len(keys) > 1 else keys[0]
    return Counter(counts.groupby(by)["pairs"].sum().to_dict())


def count_lineage(
    spark: SparkSession, folder: str, columns: Mapping[str, str]
) -> list[ReleaseLineage]:
    """Counts a build folder's pairs by run, origin, method, model and licence.

    Combinations beyond LINEAGES are counted as OTHERS by run and origin.
    """
    known = [name for name in LINEAGE if columns.get(name) == "string"]
    fields = [StructField(name, StringType()) for name in (*known, RUN)]
    rows = read_release(spark, folder, StructType([*COLUMNS, *fields]))
    nulls = {name: F.lit(None).cast("string") for name in LINEAGE if name not in known}
    keys = (RUN, "origin", "method", "model", "license")
    rows = rows.withColumns(nulls)
    stages = F.array(*[F.count_if(F.col("stage") == stage) for stage in STAGES]).alias("pairs")
    ways = rows.groupBy(*keys).agg(stages, F.count(F.lit(1)).alias("all"))
    most = ways.orderBy(F.desc("all"), *keys).limit(LINEAGES + 1).drop("all").collect()
    found = {tuple(key): _by_stage(counts) for *key, counts in most[:LINEAGES]}
    if len(most) > LINEAGES:
        for run, origin, counts in rows.groupBy(*keys[:2]).agg(stages).collect():
            listed = (pairs for key, pairs in found.items() if key[:2] == (run, origin))
            others = _by_stage(counts) - sum(listed, Counter())
            if others:
                found[run, origin, OTHERS, OTHERS, OTHERS] = others
    names = ("run_id", *keys[1:])
    return [
        ReleaseLineage(**dict(zip(names, key, strict=True)), pairs=pairs)
        for key, pairs in sorted(found.items(), key=lambda way: [str(value) for value in way[0]])
    ]


def _by_stage(counts: Sequence[int]) -> Counter[int]:
    return +Counter(dict(zip(STAGES, counts, strict=True)))
