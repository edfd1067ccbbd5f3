"""Fetches jars from Maven repositories, as spark-submit resolves them, for s3a:// and --table."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from pyspark import SparkConf
from pyspark.sql import SparkSession

from gaixie.jobs.corpus.user_settings import spark_home
from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import say
from gaixie.udfs.storage.cache import cache_folder

FOLDER = Path(__file__).parents[2] / "conf/spark"
JARS = FOLDER / "s3a-jars.conf"


class Jars(NamedTuple):
    """A set of jars and how messages name it."""

    title: str
    arguments: tuple[str, ...]
    """Options of spark-submit that name the jars."""
    remedy: str
    """Advice if no repository provides them."""


S3A = Jars(
    "the jars for s3a://",
    ("--properties-file", str(JARS)),
    "on a host that reaches a Maven repository run 'python jobs/fetch_jars.py FOLDER', copy FOLDER"
    " here and set GAIXIE_JARS=FOLDER",
)
ICEBERG = Jars(
    "the jar for --table",
    ("--properties-file", str(FOLDER / "iceberg-jars.conf")),
    S3A.remedy.replace("FOLDER'", "FOLDER --table'"),
)


def jar_folder(jars: Jars = S3A) -> Path:
    """Returns this host's folder of S3A or ICEBERG jars: GAIXIE_JARS, or a folder of the cache."""
    if given := os.environ.get("GAIXIE_JARS"):
        return Path(given)
    listed = Path(jars.arguments[-1])
    return cache_folder() / f"{listed.stem}-{hashlib.sha256(listed.read_bytes()).hexdigest()[:10]}"


def add_jars(conf: SparkConf, jars: Jars) -> None:
    """Puts S3A or ICEBERG on the class path if this process starts Java.

    The jars are in the folder that GAIXIE_JARS names, or are fetched once. Under spark-submit Java
    already runs; the code that needs the jars says what to do if they are missing.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ or conf.contains("spark.jars.packages"):
        return
    if SparkSession.getActiveSession() is not None:
        return
    folder = jar_folder(jars)
    if not any(folder.glob("*.jar")):
        fetch_jars(folder, jars=jars)
    given = conf.get("spark.jars", "").split(",")
    found = map(str, sorted(folder.glob("*.jar")))
    conf.set("spark.jars", ",".join(dict.fromkeys(filter(None, [*given, *found]))))


def fetch_jars(folder: Path, *settings: str, jars: Jars = S3A) -> list[Path]:
    """Fetches the jars into the folder, all of them or none.

    settings: more arguments of spark-submit. Raises JobError if no repository provides the jars.
    """
    say(f"fetching {jars.title} into {folder}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".jars-") as work:
        nothing = Path(work) / "nothing.py"
        nothing.touch()
        line = [str(spark_home() / "bin/spark-submit"), *jars.arguments, "--master", "local[1]"]
        line += ["--conf", f"spark.jars.ivy={work}/ivy", *settings, str(nothing)]
        environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(
            line,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        fetched = sorted((Path(work) / "ivy/jars").glob("*.jar"))
        if done.returncode or not fetched:
            missing = [line for line in done.stderr.splitlines() if "unresolved dependency" in line]
            reason = missing[0].strip(": ") if missing else "spark-submit failed"
            raise JobError(f"{jars.title} could not be fetched ({reason}); {jars.remedy}")
        folder.mkdir(exist_ok=True)
        for jar in fetched:
            jar.replace(folder / jar.name)
    return sorted(folder.glob("*.jar"))
