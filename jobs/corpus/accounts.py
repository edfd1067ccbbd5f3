"""The accounts of a run: what was read is what was written, quarantined or a duplicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.digests import digests
from gaixie.jobs.corpus.inputs import InputFiles
from gaixie.jobs.corpus.storage import LITERAL, Storage
from gaixie.udfs.spark import escape_bytes
from gaixie.udfs.storage.manifest import RunFile, RunInput
from gaixie.udfs.storage.published_files import THREADS


def written_counts(
    spark: SparkSession, path: str, schema: StructType, keys: tuple[str, str]
) -> Counter[tuple[Any, ...]]:
    """Rows by keys, as the written files have them."""
    counts = spark.read.options(**LITERAL).schema(schema).parquet(path).groupBy(*keys).count()
    return Counter({tuple(row)[:2]: row["count"] for row in counts.collect()})


def close_accounts(
    read: Counter[str],
    scored: Counter[tuple[Any, ...]],
    quarantined: Counter[tuple[Any, ...]],
    duplicates: dict[str, int],
) -> None:
    """Raises RuntimeError unless read = scored + quarantined + duplicates for every origin."""
    for origin in read:
        parts = (
            sum(n for (name, _), n in scored.items() if name == origin),
            sum(n for (name, _), n in quarantined.items() if name == origin),
            duplicates.get(origin, 0),
        )
        if read[origin] != sum(parts):
            raise RuntimeError(
                f"origin {origin}: {read[origin]} rows read, but {parts[0]} scored + "
                f"{parts[1]} quarantined + {parts[2]} duplicates; nothing was published"
            )


def written_files(spark: SparkSession, storage: Storage, folder: str, name: str) -> list[RunFile]:
    """The files of a run's table, with their digests; none where the table was not written."""
    if not storage.exists(f"{folder}/{name}"):
        return []
    files = storage.list_files(f"{folder}/{name}")
    uris = [file.uri for file in files]
    if all(uri.startswith(("file:", "s3a:")) for uri in uris):
        sums = digests(spark, uris)
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            sums = dict(zip(uris, pool.map(storage.sha256, uris), strict=True))
    return [
        RunFile(
            path=f"{name}/" + file.uri.rpartition(f"/{name}/")[2],
            bytes=file.size,
            sha256=sums[file.uri],
        )
        for file in files
    ]


def input_entry(source: InputFiles) -> RunInput:
    """What a manifest says of an input."""
    return RunInput(
        path=source.settings.path,
        format=source.format,
        files=len(source.read),
        bytes=sum(file.size for file in source.read),
        corrupt_files=source.corrupt,
        corrupt_rows={uri: source.rows[uri] for uri in source.corrupt if uri in source.rows},
    )


def escape_undecodable(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Rows for the quarantine, with bytes that are not UTF-8 written as \\xNN in some columns."""
    undecodable = rows.where(F.col("reason") == "undecodable")  # these alone go through Python
    for name in names:
        undecodable = undecodable.withColumn(name, escape_bytes(F.col(name).cast("binary")))
    return rows.where(F.col("reason") != "undecodable").unionByName(undecodable)
