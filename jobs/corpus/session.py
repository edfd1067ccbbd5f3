"""Starts the Spark session of a job, with conf/spark as defaults under the user's settings."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from gaixie.jobs.corpus import jars, s3a
from gaixie.jobs.corpus.user_settings import read_settings, user_settings
from gaixie.jobs.errors import JobError
from gaixie.udfs.command_line import cause, log_file, print_traces

FOLDER = Path(__file__).parents[2] / "conf/spark"
LOG4J = FOLDER / "log4j2.properties"

SMALL = {
    "spark.sql.adaptive.enabled": "false",  # replans each query after each of its stages
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.openCostInBytes": "64k",
    # As for RDDs; otherwise they and SQL would use different daemons.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
"""Settings for work of seconds, most of which would go into planning and starting tasks."""

MASTERS = {"local": "local", "spark": "standalone", "yarn": "yarn", "k8s": "kubernetes"}
"""Maps how a master's address begins to its settings file."""

NO_LIMIT = 2**31 - 1
"""Spark's value for no limit on executors."""

_own: list[Any] = []
"""The gateway to the Java that this process started, if it did."""


def start_session(name: str, uris: Iterable[str] = (), table: bool = False) -> SparkSession:
    """Starts the session of a job that reads and writes uris, and waits for it; see
    begin_session."""
    with begin_session(name, uris, table=table) as wait:
        return wait()


@contextmanager
def begin_session(
    name: str, uris: Iterable[str] = (), small: bool = False, table: bool = False
) -> Iterator[Callable[[], SparkSession]]:
    """Starts a session in a thread, and yields the function that waits for it.

    small: the work takes seconds, so Java skips what pays off only later. table: the session needs
    Iceberg. Settings of spark-submit or spark-defaults.conf win over conf/spark. Raises JobError if
    there is no Java, no session can start, or s3a:// would not work correctly. If the block fails,
    Java ends.
    """
    _silence_py4j()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted:  # spark-submit has read its settings
        SparkContext._ensure_initialized()
    else:
        _check_environment()
    conf = SparkConf().setAll([] if submitted else [*user_settings().items()])
    kind = re.split(r"[^a-z0-9]", conf.get("spark.master", "local[*]"), maxsplit=1)[0]
    hosted = _is_hosted(conf)
    defaults = read_settings(FOLDER / "jobs.conf")
    defaults |= read_settings(FOLDER / f"{MASTERS.get(kind, 'standalone')}.conf")
    if kind == "local":
        defaults |= _local(conf, defaults, small)
    on_s3 = [uri for uri in uris if uri.startswith("s3a:")]
    if on_s3:
        defaults |= read_settings(FOLDER / "s3a.conf") | s3a.environment_settings()
        s3a.check_settings(conf, defaults)
    if hosted:
        print_traces()
    if hosted or (submitted and _has_own_log4j()):
        del defaults["spark.log.level"]
    for key, value in defaults.items():
        conf.setIfMissing(key, value)
    if on_s3:
        jars.add_jars(conf, jars.S3A)
    if table:
        jars.add_jars(conf, jars.ICEBERG)
    conf.setIfMissing("spark.app.name", name)
    if submitted and not hosted:
        _silence_java()
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(_create, conf)

        def wait() -> SparkSession:
            try:
                spark = starting.result()
            except Exception as error:
                raise _no_session(error) from error
            jvm: Any = SparkContext._jvm
            jvm.SparkSession.setActiveSession(spark._jsparkSession)  # for this thread too
            if on_s3:
                s3a.check_session(spark, on_s3)
            return spark

        try:
            yield wait
        except BaseException:
            starting.exception()  # waits: the process is known only then
            end_java()
            raise


def _silence_py4j() -> None:
    """Silences py4j, which logs traces of an interrupt, partly to the root logger."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _check_environment() -> None:
    """Raises JobError for an environment variable that would keep Java or Spark from starting."""
    get = os.environ.get
    for name, program in (("JAVA_HOME", "bin/java"), ("SPARK_HOME", "bin/spark-submit")):
        if (home := get(name)) and not os.access(f"{home}/{program}", os.X_OK):
            raise JobError(f"{name}={home}: no {program} there; unset or correct it")
    if not get("JAVA_HOME") and not shutil.which("java"):
        raise JobError(
            "Java 17 or 21 is needed, but no 'java' was found; "
            "on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if (python := get(name)) and not shutil.which(python):
            raise JobError(f"{name}={python}: no such program")
    for folder in filter(None, get("SPARK_LOCAL_DIRS", "").split(",")):
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise JobError(
                f"SPARK_LOCAL_DIRS={folder}: cannot create the folder: {error.strerror}"
            ) from error
        if not os.access(folder, os.W_OK):
            raise JobError(f"SPARK_LOCAL_DIRS={folder}: the folder is not writable")


def _create(conf: SparkConf) -> SparkSession:
    if SparkContext._gateway is None:
        with open(log_file(), "ab") as log:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})
        _own.append(gateway)
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    # If Java is killed, this server would print a trace; the main thread notices it anyway.
    AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    return SparkSession.builder.config(conf=conf).getOrCreate()


def cores(spark: SparkSession) -> int:
    """Returns the cores that the session's tasks can have. With dynamic allocation, these are the
    most that it may ask for, not the few that it starts with."""
    get = spark.sparkContext.getConf().get
    now = spark.sparkContext.defaultParallelism
    most = int(get("spark.dynamicAllocation.maxExecutors", None) or 0)
    if get("spark.dynamicAllocation.enabled", "false") != "true" or not 0 < most < NO_LIMIT:
        return now
    return max(now, most * int(get("spark.executor.cores", None) or 1))


def set_shuffle_partitions(spark: SparkSession, least: int) -> None:
    """Sets two shuffle partitions a core, or more, unless the user has set a number."""
    if not spark.sparkContext.getConf().contains("spark.sql.shuffle.partitions"):
        spark.conf.set("spark.sql.shuffle.partitions", max(2 * cores(spark), least))


def _no_session(error: Exception) -> JobError:
    """Returns an error that says why no session could start."""
    if SparkContext._gateway is not None:
        return JobError(f"no Spark session: {cause(error)}")
    lines = log_file().read_text("utf-8", "replace").splitlines()
    said = [line for line in lines if line] or [str(error)]
    return JobError(f"Java did not start: {said[-1]}")


def end_java() -> None:
    """Ends the Java that this process started, if any; Java deletes its temporary files."""
    if not _own:
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError):  # outside the main thread
            signal.signal(number, signal.SIG_IGN)  # a second signal would interrupt this
    process = _own.pop().proc
    SparkContext._gateway = SparkContext._jvm = None
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


def _is_hosted(conf: SparkConf) -> bool:
    """Returns whether the driver runs in a container of YARN or Kubernetes (cluster mode), which
    keeps its output but none of its files."""
    in_pod = conf.get("spark.kubernetes.submitInDriver", "false") == "true"
    return in_pod or conf.get("spark.submit.deployMode", "client") == "cluster"


def _has_own_log4j() -> bool:
    """Returns whether the Java of spark-submit has Log4j settings other than Spark's own."""
    jvm: Any = SparkContext._jvm
    source = jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration()
    where = source.getConfigurationSource().getLocation() or ""
    return bool(where) and "org/apache/spark/log4j2" not in where


def _silence_java() -> None:
    """Makes the Java of spark-submit, which already runs, write to the job's log; Log4j too, unless
    its settings are the platform's."""
    jvm: Any = SparkContext._jvm
    log = jvm.java.io.PrintStream(jvm.java.io.FileOutputStream(str(log_file()), True), True)
    jvm.java.lang.System.setErr(log)
    if _has_own_log4j():
        return
    # Spark's Log4j is set up again, since its appender takes the new stream only then.
    uri = jvm.java.net.URI.create(LOG4J.as_uri())
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(uri)


def _local(conf: SparkConf, defaults: dict[str, str], small: bool) -> dict[str, str]:
    """Returns the settings that depend on this host, and sets the environment of Python workers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Java takes the whole heap at once, and native memory from few arenas, so memory stays flat.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    heap = conf.get("spark.driver.memory", defaults["spark.driver.memory"])
    options = ["-XX:+UseParallelGC", f"-Xms{heap}", "-XX:+AlwaysPreTouch"]
    if small:  # Java ends before its best compiler pays off
        options = ["-XX:+UseSerialGC", f"-Xms{heap}", "-XX:TieredStopAtLevel=1"]
    options += [f"-Dlog4j2.configurationFile={LOG4J.as_uri()}"]
    # A task gets four tries, as on a cluster: a worker may be killed for its memory.
    master = conf.get("spark.master", "local[*]")
    conf.set("spark.master", re.sub(r"^local\[([^],]+)\]$", r"local[\1, 4]", master))
    return {"spark.driver.defaultJavaOptions": " ".join(options)} | (SMALL if small else {})
