"""Starts the Spark session of a job, with conf/spark as defaults under the user's settings."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from gaixie.jobs.corpus import s3a
from gaixie.jobs.corpus.user_settings import read_settings, user_settings
from gaixie.udfs.command_line import UserError, cause, log_file, print_traces

FOLDER = Path(__file__).parents[2] / "conf/spark"
MASTERS = {"local": "local", "spark": "standalone", "yarn": "yarn", "k8s": "kubernetes"}
"""Maps how a master's address begins to its settings file."""


def start_session(name: str, uris: Iterable[str] = ()) -> SparkSession:
    """Starts the session of a job that reads and writes uris, and waits for it; see
    begin_session."""
    with begin_session(name, uris) as wait:
        return wait()


@contextmanager
def begin_session(
    name: str, uris: Iterable[str] = (), small: bool = False
) -> Iterator[Callable[[], SparkSession]]:
    """Starts a session in a thread, and yields the function that waits for it.

    small: the work takes seconds, so Java skips what pays off only later. Settings of spark-submit
    or spark-defaults.conf win over conf/spark. Raises UserError if there is no Java, no session can
    start, or s3a:// would not work.
    """
    _silence_py4j()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted:  # spark-submit has read its settings
        SparkContext._ensure_initialized()
    else:
        check_java()
    conf = SparkConf().setAll([] if submitted else [*user_settings().items()])
    on_s3 = [uri for uri in uris if uri.startswith("s3a:")]
    for key, value in _defaults(conf, small, bool(on_s3)).items():
        conf.setIfMissing(key, value)
    if on_s3:
        s3a.prepare(conf)
    conf.setIfMissing("spark.app.name", name)
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
                s3a.check_session(spark)
            return spark

        yield wait


def check_java() -> None:
    """Raises UserError if there is no Java to start."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(f"{home}/bin/java", os.X_OK):
        raise UserError(f"JAVA_HOME={home}: no bin/java there; unset or correct it")
    if not home and not shutil.which("java"):
        raise UserError(
            "Java 17 or 21 is needed, but no 'java' was found; "
            "on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )


def _defaults(conf: SparkConf, small: bool, on_s3: bool) -> dict[str, str]:
    """Returns what conf/spark sets for this master. In a container of YARN or Kubernetes, which
    keeps a driver's output but none of its files, traces are printed."""
    kind = re.split(r"[^a-z0-9]", conf.get("spark.master", "local[*]"), maxsplit=1)[0]
    defaults = read_settings(FOLDER / "jobs.conf")
    defaults |= read_settings(FOLDER / f"{MASTERS.get(kind, 'standalone')}.conf")
    if kind == "local":
        defaults |= _local(conf, small)
    if on_s3:
        defaults |= read_settings(FOLDER / "s3a.conf") | s3a.environment_settings()
    in_pod = conf.get("spark.kubernetes.submitInDriver", "false") == "true"
    if in_pod or conf.get("spark.submit.deployMode", "client") == "cluster":
        print_traces()
        del defaults["spark.log.level"]
    return defaults


def _local(conf: SparkConf, small: bool) -> dict[str, str]:
    """Returns the settings of a session on this host, and sets the environment of its Java and of
    its Python workers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # so that native memory stays flat
    # A task gets four tries, as on a cluster: a worker may be killed for its memory.
    master = conf.get("spark.master", "local[*]")
    conf.set("spark.master", re.sub(r"^local\[([^],]+)\]$", r"local[\1, 4]", master))
    defaults = read_settings(FOLDER / "small.conf") if small else {}
    heap = conf.get("spark.driver.memory", "1g")
    # Java ends before its best compiler pays off; otherwise, it takes the whole heap at once.
    options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    options = options if small else "-XX:+UseParallelGC -XX:+AlwaysPreTouch"
    log4j = f"-Dlog4j2.configurationFile={(FOLDER / 'log4j2.properties').as_uri()}"
    return defaults | {"spark.driver.defaultJavaOptions": f"{options} -Xms{heap} {log4j}"}


def _create(conf: SparkConf) -> SparkSession:
    if SparkContext._gateway is None:
        if os.environ.get("LC_ALL") in ("C", "POSIX"):  # Java could open no Chinese file name
            os.environ["LC_ALL"] = "C.UTF-8"
        with open(log_file(), "ab") as log:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    # If Java is killed, this server would print a trace; the main thread notices it anyway.
    AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _no_session(error: Exception) -> UserError:
    """Returns an error that says why no session could start."""
    if SparkContext._gateway is not None:
        return UserError(f"no Spark session: {cause(error)}")
    lines = log_file().read_text("utf-8", "replace").splitlines()
    said = [line for line in lines if line] or [str(error)]
    return UserError(f"Java did not start: {said[-1]}")


def _silence_py4j() -> None:
    """Silences py4j, which logs traces of an interrupt, partly to the root logger."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def cores(spark: SparkSession) -> int:
    """Returns the cores that the session's tasks can have. With dynamic allocation, these are the
    most that it may ask for, not the few that it starts with."""
    get = spark.sparkContext.getConf().get
    now = spark.sparkContext.defaultParallelism
    most = int(get("spark.dynamicAllocation.maxExecutors", None) or 0)
    if get("spark.dynamicAllocation.enabled", "false") != "true" or not 0 < most < 2**31 - 1:
        return now
    return max(now, most * int(get("spark.executor.cores", None) or 1))


def set_shuffle_partitions(spark: SparkSession, least: int) -> None:
    """Sets two shuffle partitions a core, or more, unless the user has set a number."""
    if not spark.sparkContext.getConf().contains("spark.sql.shuffle.partitions"):
        spark.conf.set("spark.sql.shuffle.partitions", max(2 * cores(spark), least))
