"""An archive of Spark's classes (class data sharing), with which Java starts sooner.

The first small run on a host that comes to its end leaves it in the cache; Java 17 writes it as it ends.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from pyspark import SparkContext

from gaixie.jobs.corpus.jars import spark_home
from gaixie.udfs.command_line import say
from gaixie.udfs.storage.cache import cache_folder

OPTIONS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""Where users set options of every Java: theirs may name an archive of their own."""

FOLDERS = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""What puts folders on Java's class path: then it archives nothing."""

UNUSED_DAYS = 30


def archive_options(write: bool) -> list[str]:
    """Options with which Java reads the archive; with write, those to write it where there is none."""
    archive = _archive()
    given = " ".join(os.environ.get(name, "") for name in OPTIONS)
    if archive is None or " " in str(archive) or "Archive" in given:
        return []
    if (spark_home() / "conf").exists() or any(name in os.environ for name in FOLDERS):
        return []
    if archive.exists():
        with suppress(OSError):  # of another user
            os.utime(archive)
        return ["-Xlog:disable", f"-XX:SharedArchiveFile={archive}"]
    return ["-Xlog:disable", f"-XX:ArchiveClassesAtExit={_part(archive)}"] if write else []


def keep_archive() -> None:
    """Ends the session and its Java, and keeps what this then writes, if it was started to do so."""
    archive, context = _archive(), SparkContext._active_spark_context
    if archive is None or archive.exists() or context is None or context._gateway is None:
        return
    options = context.getConf().get("spark.driver.defaultJavaOptions") or ""
    process = context._gateway.proc
    if f"ArchiveClassesAtExit={_part(archive)}" not in options or process is None:
        return
    say(f"keeping Spark's classes, once, for a quicker start: {archive}")
    context.stop()
    process.stdin.close()
    process.wait()
    if _part(archive).exists():
        _part(archive).replace(archive)
        _prune(archive.parent)
        # Those of runs that failed, or were killed.
        for part in archive.parent.glob(f"{archive.stem}.[0-9]*"):
            part.unlink(missing_ok=True)


def _archive() -> Path | None:
    """Where the archive of this Java and this Spark lies, or will; None where Java is not found."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return None
    parts = [os.path.realpath(java), str(spark_home() / "jars")]
    known = " ".join(f"{part} {os.stat(part).st_mtime_ns}" for part in parts)
    return cache_folder() / f"spark-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def _prune(folder: Path) -> None:
    """Deletes the archives that no run has read for UNUSED_DAYS: of Sparks that are gone."""
    for archive in folder.glob("spark-*.jsa"):
        if time.time() - archive.stat().st_mtime > UNUSED_DAYS * 86400:
            archive.unlink(missing_ok=True)


def _part(archive: Path) -> Path:
    """What this process's Java writes."""
    return archive.with_suffix(f".{os.getpid()}")
