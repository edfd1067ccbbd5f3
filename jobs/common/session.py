"""The Spark session of a job: defaults that suit it, under whatever its user has set."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from jobs.common.errors import JobError

LOG4J = (Path(__file__).parents[2] / "conf/spark/log4j2.properties").as_uri()

DEFAULTS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # A task of about 100,000 pairs: seconds of work, so that a lost one costs little.
    "spark.sql.files.maxPartitionBytes": "16m",
    "spark.sql.files.openCostInBytes": "1m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # Row groups that a writer can hold in a small heap, and a loader can shuffle.
    "spark.hadoop.parquet.block.size": str(32 * 2**20),
    "spark.sql.parquet.filterPushdown": "true",
    # One writer for each partition value, instead of sorting all rows by it first.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.sql.ansi.enabled": "true",
    "spark.python.worker.reuse": "true",
}
LOCAL_DEFAULTS = {
    # One process holds driver and executor. A fixed heap: what a larger corpus needs is disk.
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def start_session(name: str) -> SparkSession:
    """The session: what spark-submit or spark-defaults.conf set wins over DEFAULTS.

    Raises JobError where there is no Java, or no session can be had.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under spark-submit, which has read its settings
        SparkContext._ensure_initialized()
    elif not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise JobError(
            "Java 17 or 21 is needed and no 'java' was found; "
            "on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )
    conf = SparkConf()
    defaults = dict(DEFAULTS)
    if conf.get("spark.master", "local[*]").startswith("local"):
        defaults |= LOCAL_DEFAULTS
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf.setIfMissing("spark.master", "local[*]")
        # Java takes the whole heap at once and native memory from few arenas: memory stays flat.
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")
        heap = conf.get("spark.driver.memory", LOCAL_DEFAULTS["spark.driver.memory"])
        defaults["spark.driver.defaultJavaOptions"] = (
            f"-XX:+UseParallelGC -Xms{heap} -XX:+AlwaysPreTouch -Dlog4j2.configurationFile={LOG4J}"
        )
    for key, value in defaults.items():
        conf.setIfMissing(key, value)
    conf.setIfMissing("spark.app.name", name)
    try:
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        raise JobError(f"no Spark session: {str(error).splitlines()[0]}") from error
