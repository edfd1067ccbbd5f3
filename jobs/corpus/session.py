"""The Spark session of a job: the settings of conf/spark, under whatever its user has set."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from gaixie.jobs.corpus import s3a
from gaixie.jobs.corpus.class_archive import archive_options
from gaixie.jobs.corpus.java import Starting, end_java, silence_java
from gaixie.jobs.errors import JobError, Terminated, cause, terminate

FOLDER = Path(__file__).parents[2] / "conf/spark"
LOG4J = FOLDER / "log4j2.properties"

SMALL = {
    "spark.sql.adaptive.enabled": "false",  # which plans each query again after each of its stages
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.openCostInBytes": "64k",
    # As for RDDs, else their daemon would not be the one of SQL.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
"""For work of seconds, of which planning and starting tasks would be the most."""

_interrupted = threading.Event()

MASTERS = {"local": "local", "spark": "standalone", "yarn": "yarn", "k8s": "kubernetes"}
"""How a master's address begins, and the file of settings for it."""


def start_session(name: str, uris: Iterable[str] = ()) -> SparkSession:
    """The session of a job that reads and writes uris: begin_session, and then wait for it."""
    with begin_session(name, uris) as wait:
        return wait()


@contextmanager
def begin_session(
    name: str, uris: Iterable[str] = (), small: bool = False
) -> Iterator[Callable[[], SparkSession]]:
    """Starts a session, and gives what waits for it; Java takes seconds that can be used meanwhile.

    small: the work takes seconds, of which Java is to spend none on what pays only in the long run.
    What spark-submit or spark-defaults.conf set wins over conf/spark. Raises JobError where there is no
    Java, no session can be had, or s3a:// would not work as it should. Where the block fails before the
    session was waited for, Java ends.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted:  # by spark-submit, which has read its settings
        SparkContext._ensure_initialized()
    elif not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise JobError(
            "Java 17 or 21 is needed and no 'java' was found; "
            "on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )
    conf = SparkConf()
    kind = re.split(r"[^a-z0-9]", conf.get("spark.master", "local[*]"), maxsplit=1)[0]
    defaults = read_settings(FOLDER / "jobs.conf")
    defaults |= read_settings(FOLDER / f"{MASTERS.get(kind, 'standalone')}.conf")
    if kind == "local":
        defaults |= _local(conf, defaults, small)
    on_s3 = [uri for uri in uris if uri.startswith("s3a:")]
    if on_s3:
        defaults |= read_settings(FOLDER / "s3a.conf") | s3a.environment_settings()
        s3a.check_settings(conf, defaults)
    for key, value in defaults.items():
        conf.setIfMissing(key, value)
    if on_s3:
        s3a.add_jars(conf)
    conf.setIfMissing("spark.app.name", name)
    if submitted:
        silence_java(LOG4J)
    starting = Starting(conf)
    waited = False

    def wait() -> SparkSession:
        nonlocal waited
        waited = True
        try:
            spark = starting.wait()
        except JobError:
            raise
        except Exception as error:
            raise JobError(f"no Spark session: {cause(error)}") from error
        _own_signals()
        if small and starting.is_own:
            _start_worker(spark)
        if on_s3:
            s3a.check_session(spark, on_s3)
        return spark

    try:
        yield wait
    finally:
        if not waited:
            starting.end()


def stop_interrupted() -> None:
    """Stops the session that Ctrl-C broke off, if it did."""
    context = SparkContext._active_spark_context
    if context is not None and _interrupted.is_set():
        with suppress(Exception):  # Java may be gone already
            context.stop()
        end_java()


def _own_signals() -> None:
    """Ctrl-C and SIGTERM break off the work of Java too, where nobody else has a handler for them."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.default_int_handler, terminate):
                signal.signal(number, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, or Terminated for SIGTERM, once Java is silent: all that it logs from now
    on is that work was broken off."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a second one would break off the first
    _interrupted.set()
    context = SparkContext._active_spark_context
    if context is not None:
        # A thread has a connection of its own to Java; this one's may be in use.
        silence = threading.Thread(target=_silence, args=(context,), daemon=True)
        silence.start()
        silence.join(timeout=10)
    raise Terminated if signum == signal.SIGTERM else KeyboardInterrupt


def _silence(context: SparkContext) -> None:
    with suppress(Exception):  # Java may be gone already
        context.setLogLevel("OFF")


def read_settings(path: Path) -> dict[str, str]:
    """Settings of a file in Spark's format: a name and a value a line; a backslash joins lines."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return dict(line.split(None, 1) for line in text.splitlines() if line.strip())


def _start_worker(spark: SparkSession) -> None:
    """Starts the daemon of Python workers, in the background: what it loads will be wanted in seconds."""

    def start() -> None:
        with suppress(Exception):  # then it starts when it is wanted
            spark.sparkContext.parallelize([0], 1).foreach(lambda _: None)

    threading.Thread(target=start, daemon=True).start()


def _local(conf: SparkConf, defaults: dict[str, str], small: bool) -> dict[str, str]:
    """Settings that depend on this host, and the environment of Python workers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Java takes the whole heap at once and native memory from few arenas: memory stays flat.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    heap = conf.get("spark.driver.memory", defaults["spark.driver.memory"])
    options = ["-XX:+UseParallelGC", f"-Xms{heap}", "-XX:+AlwaysPreTouch"]
    if small:  # Java ends before its best compiler has paid
        options = ["-XX:+UseSerialGC", f"-Xms{heap}", "-XX:TieredStopAtLevel=1"]
    options += [*archive_options(write=small), f"-Dlog4j2.configurationFile={LOG4J.as_uri()}"]
    # A task is tried four times, as on a cluster: a worker may be killed for its memory.
    master = conf.get("spark.master", "local[*]")
    conf.set("spark.master", re.sub(r"^local\[([^],]+)\]$", r"local[\1, 4]", master))
    return {"spark.driver.defaultJavaOptions": " ".join(options)} | (SMALL if small else {})
