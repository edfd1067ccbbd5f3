"""Does once, before the tests, what every test process would otherwise do at its start.

Compiles the metric's kernels into the cache (udfs/storage/cache.py), and archives Spark's classes,
which saves each Java process some seconds. ``make test`` starts it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

SOURCE = "据目击者描述，火势从三楼的一间厨房开始蔓延"
PARAPHRASE = "目击的人说，火是从三楼一个厨房烧起来的"
VFORK = "-Djdk.lang.Process.launchMechanism=VFORK"  # Hadoop runs chmod for each file it writes
QUICK_START = f"-XX:TieredStopAtLevel=1 {VFORK}"  # tests are too short for more compilation
SMALL_HEAP = "-XX:+UseSerialGC"  # starts faster; a job in local mode sets its own collector

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For few rows, compiling or re-planning a query takes longer than running it."""
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
"""Spark's defaults, which one test of each job uses."""


def class_archive() -> Path | None:
    """Returns the path of the archive for this Java and Spark, which all clones with the same
    environment share, also through a link; None without Java."""
    folder = Path(os.environ.get("GAIXIE_CACHE_DIR", Path.home() / ".cache/gaixie"))
    home, spark = os.environ.get("JAVA_HOME"), find_spec("pyspark")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if spark is None or java is None or not os.path.exists(java):
        return None
    java, jars = os.path.realpath(java), Path(spark.origin).resolve().parent / "jars"
    known = f"{java} {os.stat(java).st_mtime_ns} {jars} {os.stat(jars).st_mtime_ns}"
    return folder / f"spark-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def set_java_options() -> None:
    """Sets the options of every Java that a test starts: of drivers, and of a cluster's daemons
    and executors. Java ignores an archive that is missing or not its own."""
    archive, options = class_archive(), QUICK_START
    if archive is not None and " " not in str(archive):
        options += f" -Xlog:disable -XX:SharedArchiveFile={archive}"
    settings = [f"-D{name}={value}" for name, value in INTERPRETED.items()]
    os.environ["SPARK_DAEMON_JAVA_OPTS"] = f"{options} {SMALL_HEAP}"
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join([options, *settings])


def compiling() -> dict[str, str]:
    """Returns the environment of a process that must compile its queries."""
    options = os.environ["SPARK_SUBMIT_OPTS"].split()
    return {"SPARK_SUBMIT_OPTS": " ".join(o for o in options if not o.startswith("-Dspark.sql"))}


def compile_kernels() -> None:
    import pyarrow as pa

    from gaixie.udfs.spscore import SPScore
    from gaixie.udfs.text.segmenters import load_segmenter

    SPScore.load().outputs(pa.array([SOURCE]), pa.array([PARAPHRASE]), load_segmenter("jieba"))


def archive_classes(archive: Path) -> None:
    """Uses Spark for a while; Java writes the classes it has loaded when it ends."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    part = archive.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK_START} -XX:ArchiveClassesAtExit={part}"
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(50).selectExpr("id", "id % 3 AS k", "string(id) AS s")
        rows.write.partitionBy("k").parquet(f"{folder}/a")
        rows.write.csv(f"{folder}/b")
        rows.write.json(f"{folder}/c")
        table = spark.read.parquet(f"{folder}/a")
        table = table.mapInArrow(lambda batches: batches, table.schema)
        table.groupBy("k").agg(F.count("s"), F.max("id")).join(rows, "k").orderBy("id").collect()
        spark.read.schema("id long, s string").json(f"{folder}/c").dropDuplicates(["s"]).count()
        spark.read.text(f"{folder}/b").collect()
        gateway = spark.sparkContext._gateway
        spark.stop()
        gateway.proc.stdin.close()  # ends Java, which first writes the archive
        gateway.proc.wait()
    part.rename(archive)


if __name__ == "__main__":
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    made = class_archive()
    if made is None or made.exists() or "kernels" in sys.argv:
        compile_kernels()
    else:
        made.parent.mkdir(parents=True, exist_ok=True)
        beside = subprocess.Popen([sys.executable, __file__, "kernels"])
        archive_classes(made)
        sys.exit(beside.wait())
