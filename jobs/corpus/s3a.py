"""Prepares s3a:// for a job, and checks the committer and the server."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from pyspark import SparkConf
from pyspark.sql import SparkSession

from gaixie.jobs.corpus.jars import JARS
from gaixie.jobs.errors import JobError

COMMIT_PROTOCOL = "spark.sql.sources.commitProtocolClass"
FACTORY = "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a"
COMMITTER = "spark.hadoop.fs.s3a.committer.name"
PARQUET_COMMITTER = "spark.sql.parquet.output.committer.class"

EMR = re.compile(r"\.(SQL)?EmrOptimized\w+")
"""Committer classes that EMR sets for s3:// on its own file system. They rename nothing there, but
not every release of them serves s3a://."""

SECRETS = re.compile(
    r"spark\.hadoop\.fs\.s3a\.(bucket\..+\.)?(access\.key|secret\.key|session\.token)"
)


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


def check_settings(conf: SparkConf, defaults: dict[str, str]) -> None:
    """Raises JobError if the user's settings would not write as s3a.conf does, or hold a secret.

    A rename on an object store is a copy: slow, not atomic, and unsafe if a task is lost. EMR's
    settings for its own file system give way to s3a.conf.
    """
    for key, _ in conf.getAll():
        if SECRETS.fullmatch(key):
            raise JobError(
                f"{key} is set: a secret in the settings shows up in plans and logs; use the "
                "environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or the machine's role"
            )
    for key in (COMMIT_PROTOCOL, FACTORY, COMMITTER, PARQUET_COMMITTER):
        setting = conf.get(key, defaults[key])
        if EMR.search(setting):
            conf.set(key, defaults[key])
        elif setting != defaults[key]:
            raise JobError(
                f"{key}={setting}: this committer may rename files on s3a://, which can lose or "
                f"double rows; remove the setting, or set --conf {key}={defaults[key]}"
            )


def check_session(spark: SparkSession, uris: Iterable[str]) -> None:
    """Raises JobError if Java has no S3A, the committer is not bound, or no server answers."""
    jvm: Any = spark._jvm
    for name in (
        "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    ):
        try:
            jvm.org.apache.spark.util.Utils.classForName(name, False, False)
        except Exception as error:
            raise JobError(
                "s3a:// needs jars that this Spark does not have: start the job with "
                f"spark-submit --load-spark-defaults --properties-file {JARS}; if this host cannot "
                "reach a Maven repository, run 'python jobs/fetch_jars.py FOLDER' on one that can, "
                "copy FOLDER here and give "
                "--jars \"$(echo FOLDER/*.jar | tr ' ' ,)\""
            ) from error
    conf = spark._jsc.hadoopConfiguration()
    factory = conf.get(FACTORY.removeprefix("spark.hadoop."))
    if factory is None or spark.conf.get(COMMIT_PROTOCOL, None) is None:
        raise JobError("this Spark session was started for local files: it has no S3A committer")
    endpoint = conf.get("fs.s3a.endpoint") or ""
    if endpoint:
        _check_answers(endpoint)


def _check_answers(endpoint: str) -> None:
    """Raises JobError if no server answers; Hadoop itself would retry for minutes."""
    address = urlsplit(endpoint if "//" in endpoint else f"https://{endpoint}")
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname, port), timeout=10).close()
    except OSError as error:
        raise JobError(f"{endpoint}: no object store answers: {error}") from error
