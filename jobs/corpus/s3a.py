"""Prepares s3a:// for a job: jars, committer, server."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark import SparkConf
from pyspark.sql import SparkSession

from gaixie.jobs.corpus.user_settings import read_settings, spark_home
from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.storage.cache import cache_folder

FOLDER = Path(__file__).parents[2] / "conf/spark"
JARS = FOLDER / "s3a-jars.conf"
"""Lists the jars, in Spark's format."""

COMMITTER = (
    "spark.hadoop.fs.s3a.committer.name",
    "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a",
    "spark.sql.sources.commitProtocolClass",
    "spark.sql.parquet.output.committer.class",
)
"""Settings that s3a.conf alone decides. Another committer, such as a platform's own for s3://, may
rename files: on an object store that is a copy, slow, not atomic, and unsafe if a task is lost."""


def environment_settings() -> dict[str, str]:
    """Returns the server's address and region from the environment variables of the AWS tools."""
    settings = {}
    get = os.environ.get
    if endpoint := get("AWS_ENDPOINT_URL_S3") or get("AWS_ENDPOINT_URL"):
        encrypted = str(endpoint.startswith("https:")).lower()
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] = encrypted
    region = get("AWS_REGION") or get("AWS_DEFAULT_REGION")
    if region or endpoint:  # a private server has no region, but the signature needs one
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region or "us-east-1"
    return settings


def prepare(conf: SparkConf) -> None:
    """Sets the committer, and puts the jars on the class path if this process starts Java.

    The jars are in the folder that GAIXIE_JARS names, or are fetched once. Under spark-submit Java
    already runs, with the jars that it was given.
    """
    for key, value in read_settings(FOLDER / "s3a.conf").items():
        if key in COMMITTER:
            conf.set(key, value)
    if "PYSPARK_GATEWAY_PORT" in os.environ or conf.contains("spark.jars.packages"):
        return
    if SparkSession.getActiveSession() is None:
        found = map(str, jars())
        given = conf.get("spark.jars", "").split(",")
        conf.set("spark.jars", ",".join(dict.fromkeys(filter(None, [*given, *found]))))


def jars() -> list[Path]:
    """Returns the jars for s3a://, which it fetches once. Raises UserError if it cannot."""
    digest = hashlib.sha256(JARS.read_bytes()).hexdigest()[:10]
    given = os.environ.get("GAIXIE_JARS")
    folder = Path(given) if given else cache_folder() / f"{JARS.stem}-{digest}"
    return sorted(folder.glob("*.jar")) or fetch_jars(folder, "--properties-file", str(JARS))


def fetch_jars(folder: Path, *options: str) -> list[Path]:
    """Fetches jars from Maven repositories into a folder, all of them or none.

    options: those of spark-submit that name the jars. Raises UserError if no repository has them.
    """
    say(f"fetching jars into {folder}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".jars-") as work:
        nothing = Path(work) / "nothing.py"
        nothing.touch()
        line = [str(spark_home() / "bin/spark-submit"), *options, "--master", "local[1]"]
        line += ["--conf", f"spark.jars.ivy={work}/ivy", str(nothing)]
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(
            line, env=os.environ | own, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        fetched = sorted((Path(work) / "ivy/jars").glob("*.jar"))
        if done.returncode or not fetched:
            missing = [line for line in done.stderr.splitlines() if "unresolved dependency" in line]
            reason = missing[0].strip(": ") if missing else "spark-submit failed"
            raise UserError(
                f"jars could not be fetched ({reason}): run 'python jobs/fetch_jars.py FOLDER' on "
                "a host that reaches a Maven repository, copy FOLDER here and set GAIXIE_JARS"
            )
        folder.mkdir(exist_ok=True)
        for jar in fetched:
            jar.replace(folder / jar.name)
    return sorted(folder.glob("*.jar"))


def check_session(spark: SparkSession) -> None:
    """Raises UserError if Java has no S3A, the committer is not bound, or no server answers."""
    jvm: Any = spark._jvm
    for name in (
        "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    ):
        try:
            jvm.org.apache.spark.util.Utils.classForName(name, False, False)
        except Exception as error:
            raise UserError(
                "s3a:// needs jars that this Spark does not have: give spark-submit "
                f"--load-spark-defaults --properties-file {JARS}, or --jars with those that "
                "'python jobs/fetch_jars.py FOLDER' fetches"
            ) from error
    conf = spark._jsc.hadoopConfiguration()
    factory = conf.get(COMMITTER[1].removeprefix("spark.hadoop."))
    if factory is None or spark.conf.get(COMMITTER[2], None) is None:
        raise UserError("this Spark session was started for local files: it has no S3A committer")
    if endpoint := conf.get("fs.s3a.endpoint"):
        _check_answers(endpoint)


def _check_answers(endpoint: str) -> None:
    """Raises UserError if no server answers; Hadoop itself would retry for minutes."""
    address = urlsplit(endpoint if "//" in endpoint else f"https://{endpoint}")
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname, port), timeout=10).close()
    except OSError as error:
        raise UserError(f"{endpoint}: no object store answers: {error}") from error
