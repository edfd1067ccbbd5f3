"""SHA-256 of many files, computed on the executors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from gaixie.udfs.io import storage

FOR_EXECUTORS = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"),
)
"""Variables of the driver that S3A hands to executors too; there they go with the task."""


def digests(spark: SparkSession, uris: Sequence[str]) -> dict[str, str]:
    """SHA-256 by URI, of files that udfs/io/storage.py reads; a task a file, read in blocks.

    Where the executors' Python does not reach the store, the driver reads the files.
    """
    if not uris:
        return {}
    given = {name: os.environ[name] for name in FOR_EXECUTORS if name in os.environ}

    def digest(uri: str) -> str:
        for name, value in given.items():
            os.environ.setdefault(name, value)
        return storage.sha256(uri)

    context = spark.sparkContext
    try:
        found = context.parallelize(uris, min(len(uris), 1000)).map(digest).collect()
    except (PySparkException, Py4JJavaError):
        print(
            "the executors cannot read the files that were written; the driver does",
            file=sys.stderr,
        )
        with ThreadPoolExecutor(8) as pool:
            found = [*pool.map(storage.sha256, uris)]
    return dict(zip(uris, found, strict=True))
