"""Fetches jars of Maven repositories as spark-submit resolves them, above all those for s3a://."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyspark

from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import say
from gaixie.udfs.storage.cache import cache_folder

JARS = Path(__file__).parents[2] / "conf/spark/s3a-jars.conf"


class Jars(NamedTuple):
    """Names jars, and what to say about them."""

    title: str
    arguments: tuple[str, ...]
    """Options of spark-submit that name them."""
    remedy: str
    """What to do where no repository gives them."""


S3A = Jars(
    "the jars for s3a://",
    ("--properties-file", str(JARS)),
    "on a host that reaches a Maven repository run 'python jobs/fetch_jars.py FOLDER', copy FOLDER"
    " here and set GAIXIE_JARS=FOLDER",
)


def spark_home() -> Path:
    """Returns the folder of this host's Spark: the user's, or the one that came with PySpark."""
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def jar_folder() -> Path:
    """Returns where this host keeps the jars: GAIXIE_JARS, or a folder of the cache."""
    if given := os.environ.get("GAIXIE_JARS"):
        return Path(given)
    return cache_folder() / f"s3a-jars-{hashlib.sha256(JARS.read_bytes()).hexdigest()[:10]}"


def fetch_jars(folder: Path, *settings: str, jars: Jars = S3A) -> list[Path]:
    """Fetches the jars into the folder, all or none of them.

    settings: further arguments of spark-submit. Raises JobError where no repository gives them.
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
