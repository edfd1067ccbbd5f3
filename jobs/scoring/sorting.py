"""Sorts the scored rows of a run: of the rows of a pair one stays, and cut points decide its stage.

The rule of a stage is in gaixie.udfs.spscore.stages. Its cut points are the scores that the
settings give, or quantiles of the origin's pairs in this run: of its distinct scored pairs whose
judged meaning is at least min_meaning. They come from counts in bins of a ten-thousandth, so they
do not depend on units, machines or order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from gaixie.jobs.corpus.reading import column as column_of
from gaixie.jobs.scoring.settings import Cuts
from gaixie.udfs.spark import held_back, score_bin_column
from gaixie.udfs.spscore.stages import SCORE_BINS, quantile

MAX_BROADCAST = 2_000_000
"""Maximum rows whose keys are sent to every executor; the keys take 16 MB and more."""

FEW = 250_000
"""Rows up to which all are compared: a narrow pass would not pay off."""

KEPT = ("row_key", "origin", "spscore", "meaning")

Cells = Counter[tuple[str, int, bool]]
"""Counts pairs by origin, score bin, and whether their meaning keeps them in stage 1."""

FEW_SHARE = 0.01
"""A stage with a smaller share of its origin's pairs gets a warning."""


# Duplicates


def find_duplicates(pairs: DataFrame, count: int, extra: Iterable[StructField]) -> DataFrame | None:
    """Finds the rows to leave out, with the columns KEPT; returns None if there are certainly none.

    pairs: columns pair_id, KEPT and extra. count: their number, or more. Of the rows of a pair, it
    keeps the one whose extra columns hash lowest, and among equals the one with the lowest row_key,
    whatever order they were read in.

    If there are more than FEW rows, a narrow pass first finds the hashes of pair_id that occur
    twice, 8 bytes a row. Only rows with one of these hashes are then compared: true duplicates, and
    a collision in 10^12 pairs of rows. No row is sent twice for this: if the hashes are too many
    for every executor, a row's hash decides the task in which it meets its like.
    """
    alike, key = pairs.select("pair_id", *KEPT, _tie(extra).alias("tie")), "pair_id"
    if count > FEW:
        hashed = F.xxhash64("pair_id").alias("hash")
        hashes = pairs.groupBy(hashed).count().where("count > 1").select("hash").persist()
        if not (twice := hashes.count()):
            return None
        hashes = F.broadcast(hashes) if twice <= MAX_BROADCAST else hashes
        alike = alike.withColumn("hash", hashed).join(hashes, "hash", "left_semi")
        key = "hash, pair_id"
    rank = F.expr(f"row_number() OVER (PARTITION BY {key} ORDER BY tie, row_key)")
    return alike.withColumn("rank", rank).where("rank > 1").select(*KEPT).persist()


def _tie(extra: Iterable[StructField]) -> Column:
    """Returns a hash of the extra columns, which decides between rows of one pair."""
    parts = []
    for field in sorted(extra, key=lambda field: field.name):
        column = column_of(field.name)
        if isinstance(field.dataType, ArrayType | MapType | StructType):
            column = F.to_json(column)  # maps cannot be hashed
        parts += [column.isNull(), column]  # a hash skips nulls
    return F.xxhash64(*parts) if parts else F.lit(0)


def leave_out(pairs: DataFrame, left_out: DataFrame, count: int) -> DataFrame:
    """Returns pairs without the rows whose row_key is in left_out; the rest stays where it is read.

    count: rows of left_out. Every executor gets their keys; if there are more than MAX_BROADCAST,
    it gets one bit for each row of pairs instead, 0.13 GB for a billion, in bitmaps of 4 kB.
    """
    if count <= MAX_BROADCAST:
        return pairs.join(F.broadcast(left_out.select("row_key")), "row_key", "left_anti")
    bucket, bit = F.bitmap_bucket_number("row_key"), F.bitmap_bit_position("row_key")
    bitmaps = left_out.groupBy(bucket.alias("bucket")).agg(
        F.bitmap_construct_agg(bit).alias("bits")
    )
    byte = F.substring("bits", F.shiftright(bit.cast("int"), 3) + 1, F.lit(1))
    is_set = F.getbit(F.ascii(F.decode(byte, "ISO-8859-1")), bit.cast("int") % 8) == 1
    found = pairs.withColumn("bucket", bucket).join(F.broadcast(bitmaps), "bucket", "left")
    return found.where(F.col("bits").isNull() | ~is_set).drop("bucket", "bits")


# Stages


@dataclass(frozen=True)
class CutPoints:
    """Cut points, and counts of the pairs before they are written."""

    cuts: dict[str, list[float]]
    """Scores at which stages 1, 2 and 3 begin, by origin; NaN if a quantile had no pairs."""
    min_meaning: dict[str, float]
    cells: Cells
    """Distinct pairs."""

    def counts(self) -> dict[tuple[str, int], int]:
        """Counts the pairs by origin and stage, exact to one score bin at each cut point."""
        counts: Counter[tuple[str, int]] = Counter()
        for (origin, index, held), pairs in self.cells.items():
            number = sum(index / SCORE_BINS >= cut for cut in self.cuts[origin])
            counts[origin, min(number, 1) if held else number] += pairs
        return dict(sorted((+counts).items()))


def count_cells(pairs: DataFrame, cuts: Mapping[str, Cuts]) -> Cells:
    """Counts pairs, which have the columns origin, spscore and meaning."""
    held = held_back("origin", "meaning", min_meaning_of(cuts))
    columns = [F.col("origin"), score_bin_column(), held]
    counted = pairs.groupBy(*columns).count().collect()
    return Counter({(origin, index, held): pairs for origin, index, held, pairs in counted})


def cut_stages(cells: Cells, cuts: Mapping[str, Cuts]) -> CutPoints:
    """Returns where the stages begin. cells: of the distinct pairs; cuts: the settings."""
    kept = bins_of(Counter({key: pairs for key, pairs in cells.items() if not key[2]}))
    points = {
        origin: [*rule.scores]
        if rule.scores
        else [quantile(kept.get(origin, {}), share) for share in rule.quantiles or ()]
        for origin, rule in cuts.items()
    }
    return CutPoints(points, min_meaning_of(cuts), cells)


def min_meaning_of(cuts: Mapping[str, Cuts]) -> dict[str, float]:
    return {origin: rule.min_meaning for origin, rule in cuts.items()}


def bins_of(cells: Cells) -> dict[str, Counter[int]]:
    """Counts pairs by origin and score bin."""
    bins: dict[str, Counter[int]] = {}
    for (origin, index, _), pairs in cells.items():
        if pairs:
            bins.setdefault(origin, Counter())[index] += pairs
    return bins


def warnings_of(
    stages: Mapping[str, Mapping[int, int]], quarantine: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    """Yields a line for each origin of which most rows are in quarantine, and for each stage of
    training that holds almost nothing.

    stages: pairs by origin and stage. quarantine: rows by origin and reason.
    """
    for origin, reasons in quarantine.items():
        rows, scored = sum(reasons.values()), sum(stages.get(origin, {}).values())
        if rows > scored:
            most = max(reasons, key=reasons.__getitem__)
            hint = {"too_short": "; --min-characters", "too_long": "; --max-characters"}
            yield (
                f"{rows:,} rows of {origin} are in quarantine, and {scored:,} pairs are scored; "
                f"{reasons[most]:,} are {most}{hint.get(most, '')}"
            )
    for origin, counts in stages.items():
        total = sum(counts.values())
        for number in (1, 2, 3):
            pairs = counts.get(number, 0)
            if pairs < max(1, FEW_SHARE * total) and total:
                yield (
                    f"stage {number} of {origin} holds {pairs:,} of {total:,} pairs: "
                    f"cuts.{origin} (scores, quantiles, min_meaning) decides"
                )
