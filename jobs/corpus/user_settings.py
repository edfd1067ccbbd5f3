"""Reads settings in Spark's own format, including the user's."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from gaixie.udfs.command_line import UserError

OPTIONS = {"--conf": "", "-c": "", "--master": "spark.master="}
"""Options of spark-submit to read, and the prefix of their values."""


def spark_home() -> Path:
    """Returns the folder of this host's Spark: the user's, or PySpark's own."""
    pyspark = find_spec("pyspark")
    origin = str(pyspark and pyspark.origin)
    return Path(os.environ.get("SPARK_HOME") or Path(origin).parent)


def user_settings() -> dict[str, str]:
    """Reads the user's settings for a process that spark-submit has not started.

    Sources by falling priority: PYSPARK_SUBMIT_ARGS (--conf, --master), spark-defaults.conf, -D of
    SPARK_SUBMIT_OPTS. Raises UserError for a variable that a shell could not parse.
    """
    set_there = re.findall(r"-D(spark\.[^\s=]+)=(\S*)", os.environ.get("SPARK_SUBMIT_OPTS", ""))
    settings = dict(set_there)
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")
    with suppress(OSError, ValueError):
        settings |= read_settings(folder / "spark-defaults.conf")
    try:
        words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    except ValueError as error:
        raise UserError(f"PYSPARK_SUBMIT_ARGS: {error}") from None
    for option, value in pairwise(words):
        if option in OPTIONS:
            name, _, text = (OPTIONS[option] + value).partition("=")
            settings[name] = text
    return {name: text for name, text in settings.items() if name.startswith("spark.")}


def read_settings(path: Path) -> dict[str, str]:
    """Reads a file in Spark's format: one name and value a line, separated by blanks, = or :; a
    backslash joins lines."""
    lines = path.read_text("utf-8").splitlines()
    kept = [line for line in lines if not line.lstrip().startswith(("#", "!"))]
    text = re.sub(r"\\\n\s*", "", "\n".join(kept))
    return dict(re.findall(r"(?m)^\s*([^\s=:]+)(?:[ \t]*[=:][ \t]*|[ \t]+)(.*?)\s*$", text))
