"""SHA-256 of many files, computed on the executors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from gaixie.udfs.command_line import say
from gaixie.udfs.storage import storage

FOR_EXECUTORS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"),
)
"""Variables of the driver that S3A hands to executors too; there they go with the task."""


def digests(spark: SparkSession, uris: Sequence[str]) -> dict[str, str]:
    """SHA-256 by URI, of files that udfs/storage/storage.py reads; a task a file, read in blocks.

    In local mode the driver is the executor. It also steps in where the Python of executors does not
    reach the store.
    """
    context = spark.sparkContext
    if uris and not str(context.master).startswith("local"):
        given = {name: os.environ[name] for name in FOR_EXECUTORS if name in os.environ}

        def digest(uri: str) -> str:
            for name, value in given.items():
                os.environ.setdefault(name, value)
            return storage.sha256(uri)

        try:
            found = context.parallelize(uris, min(len(uris), 1000)).map(digest).collect()
            return dict(zip(uris, found, strict=True))
        except (PySparkException, Py4JJavaError):
            say("executors cannot read the run's files in Python: the driver does")
    with ThreadPoolExecutor(context.defaultParallelism) as pool:
        return dict(zip(uris, pool.map(storage.sha256, uris), strict=True))
