"""Describes files for the manifest of a job: those that it read, and with digests what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.files import is_data
from gaixie.jobs.corpus.reading import SPARK_ERRORS
from gaixie.udfs.command_line import say
from gaixie.udfs.spark import escape_bytes
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import InputFile, RunFile, RunInput
from gaixie.udfs.storage.published_files import THREADS
from gaixie.udfs.storage.storage import File


def data_files(folder: str) -> list[File]:
    """Lists the files of a written table: none whose name begins with "_" or "."."""
    files = storage.list_files(folder)
    return [file for file in files if is_data(file.uri.removeprefix(folder))]


def written_files(spark: SparkSession, folder: str, name: str) -> list[RunFile]:
    """Lists the files of a run's table with their digests; returns none if the table was not
    written."""
    files = data_files(storage.join(folder, name))
    sums = digests(spark, [file.uri for file in files])
    start = f"{folder.rstrip('/')}/"
    return [
        RunFile(path=file.uri.removeprefix(start), bytes=file.size, sha256=sums[file.uri])
        for file in files
    ]


def input_entry(
    path: str, kind: str, files: Sequence[File], left_out: Sequence[str] = ()
) -> RunInput:
    """Returns the manifest's entry for an input."""
    listing = [
        InputFile(path=f.uri, bytes=f.size, modified=f.modified.isoformat(timespec="milliseconds"))
        for f in files
    ]
    counts = {"files": len(files), "bytes": sum(file.size for file in files)}
    return RunInput(path=path, format=kind, left_out=[*left_out], listing=listing, **counts)


def escape_undecodable(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Writes bytes that are not UTF-8 as \\xNN in the named columns of rows for the quarantine."""
    undecodable = rows.where(F.col("reason") == "undecodable")  # only these go through Python
    for name in names:
        undecodable = undecodable.withColumn(name, escape_bytes(F.col(name).cast("binary")))
    return rows.where(F.col("reason") != "undecodable").unionByName(undecodable)


def digests(spark: SparkSession, uris: Sequence[str]) -> dict[str, str]:
    """Computes the SHA-256 of each file, by URI, in one Spark task a file.

    The files are those that udfs/storage/storage.py reads. A task gets no key: for a file in a
    store, it gets a link to that file alone, signed here. The driver computes the digests in local
    mode, and if the executors cannot reach the store.
    """
    context = spark.sparkContext
    if uris and not str(context.master).startswith("local"):
        links = [(uri, storage.link_to(storage.spark_uri(uri))) for uri in uris]
        try:
            tasks = context.parallelize(links, min(len(uris), 1000))
            return dict(tasks.map(lambda file: (file[0], storage.sha256(*file))).collect())
        except SPARK_ERRORS:
            say("executors cannot read the run's files in Python; the driver reads them")
    with ThreadPoolExecutor(THREADS) as pool:  # each has a block of 8 MB
        return dict(zip(uris, pool.map(storage.sha256, uris), strict=True))


def observed(observation: Observation) -> dict[str, Any]:
    """Returns an observation's values by name; waits until the first action has ended.

    Returns an empty dict if Spark skipped the counting, as it does for one side of a join whose
    other side has no rows: ``Observation.get`` then fails a Java assertion, since it has no row.
    """
    try:
        return observation.get
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.AssertionError":
            raise
        return {}
