"""Starts the Spark session of a job, with conf/spark as defaults under the user's settings."""

from __future__ import annotations

import locale
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from gaixie.udfs.command_line import PRINT_TRACES, UserError, cause, log_file

FOLDER = Path(__file__).parents[2] / "conf/spark"
MASTERS = {"local": "local", "spark": "standalone", "yarn": "yarn", "k8s": "kubernetes"}
"""Maps how a master's address begins to its settings file."""

COMMITTER = (
    "spark.hadoop.fs.s3a.committer.name",
    "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a",
    "spark.sql.sources.commitProtocolClass",
    "spark.sql.parquet.output.committer.class",
)
"""Settings that s3a.conf alone decides. Another committer, such as a platform's own for s3://, may
rename files: on an object store that is a copy, slow, not atomic, and unsafe if a task is lost."""

S3A_CLASSES = (
    "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
)


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
    start, or Java lacks the jars of s3a://.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs traces of an interrupt
    on_s3 = any(uri.startswith("s3a:") for uri in uris)
    conf = settings(name, on_s3, small)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(_create, conf)

        def wait() -> SparkSession:
            try:
                spark = starting.result()
            except Exception as error:
                raise _no_session(error) from error
            jvm: Any = SparkContext._jvm
            jvm.SparkSession.setActiveSession(spark._jsparkSession)  # for this thread too
            try:
                for one in S3A_CLASSES if on_s3 else ():
                    jvm.org.apache.spark.util.Utils.classForName(one, False, False)
            except Exception as error:
                raise UserError(
                    "s3a:// needs jars that this Spark does not have: give spark-submit "
                    f"--load-spark-defaults --properties-file {FOLDER}/s3a-jars.conf"
                ) from error
            return spark

        yield wait


def settings(name: str, on_s3: bool, small: bool) -> SparkConf:
    """Returns the settings of a session: the user's, and those of conf/spark for its master.

    Sets the environment of Java and of its Python workers.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted:  # spark-submit has read the user's settings
        SparkContext._ensure_initialized()
    conf = SparkConf()
    user = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf", "spark-defaults.conf")
    if not submitted and user.is_file():
        conf.setAll([*read_settings(user).items()])
    kind = re.split(r"[^a-z0-9]", conf.get("spark.master", "local[*]"), maxsplit=1)[0]
    files = ["jobs", MASTERS.get(kind, "standalone")]
    defaults = {"spark.app.name": name}
    if kind == "local":
        defaults |= _local(conf, small)
        files += ["small"] * small
    if on_s3:
        files.append("s3a")
        defaults |= _server_of_s3()
        if jars := os.environ.get("GAIXIE_JARS"):
            defaults |= {} if submitted else {"spark.jars": ",".join(glob(f"{jars}/*.jar"))}
        elif not submitted:
            files.append("s3a-jars")
    for file in files:
        defaults |= read_settings(FOLDER / f"{file}.conf")
    in_pod = conf.get("spark.kubernetes.submitInDriver", "false") == "true"
    if in_pod or conf.get("spark.submit.deployMode", "client") == "cluster":
        os.environ[PRINT_TRACES] = "1"
        del defaults["spark.log.level"]
    for key, value in defaults.items():
        if key in COMMITTER:
            conf.set(key, value)
        conf.setIfMissing(key, value)
    return conf


def _local(conf: SparkConf, small: bool) -> dict[str, str]:
    """Returns the options of Java on this host, and sets the environment of its workers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # so that native memory stays flat
    # A task gets four tries, as on a cluster: a worker may be killed for its memory.
    master = conf.get("spark.master", "local[*]")
    conf.set("spark.master", re.sub(r"^local\[([^],]+)\]$", r"local[\1, 4]", master))
    # Java ends before its best compiler pays off; otherwise, it takes the whole heap at once.
    options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    options = options if small else "-XX:+UseParallelGC -XX:+AlwaysPreTouch"
    options += f" -Xms{conf.get('spark.driver.memory', '1g')}"
    log4j = f"-Dlog4j2.configurationFile={(FOLDER / 'log4j2.properties').as_uri()}"
    return {"spark.driver.defaultJavaOptions": f"{options} {log4j}"}


def _server_of_s3() -> dict[str, str]:
    """Returns the server's address and region from the environment variables of the AWS tools."""
    found, get = {}, os.environ.get
    if endpoint := get("AWS_ENDPOINT_URL_S3") or get("AWS_ENDPOINT_URL"):
        found["spark.hadoop.fs.s3a.endpoint"] = endpoint
    region = get("AWS_REGION") or get("AWS_DEFAULT_REGION")
    if region or endpoint:  # a private server has no region, but the signature needs one
        found["spark.hadoop.fs.s3a.endpoint.region"] = region or "us-east-1"
    return found


def _is_utf8() -> bool:
    """Tells whether the environment names locales that exist, and that are UTF-8."""
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "")  # as Java does
        return locale.nl_langinfo(locale.CODESET).upper() == "UTF-8"
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_ALL, before)


def _create(conf: SparkConf) -> SparkSession:
    if SparkContext._gateway is None:
        if sys.getfilesystemencoding() == "utf-8" and not _is_utf8():
            os.environ["LC_ALL"] = "C.UTF-8"  # or Java could open no Chinese file name
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
    said = log_file().read_text("utf-8", "replace").split("\n")
    last = [str(error), *filter(None, said)][-1]
    return UserError(f"no Java started, and Java 17 or 21 is needed: {last}")


def spark_home() -> Path:
    """Returns the folder of this host's Spark: the user's, or PySpark's own."""
    return Path(os.environ.get("SPARK_HOME") or pyspark.__path__[0])


def read_settings(path: Path) -> dict[str, str]:
    """Reads Spark's settings from a file: one name and value a line, separated by blanks, = or :; a
    backslash joins lines."""
    text = re.sub(r"(?m)^\s*[#!].*\n|\\\n\s*", "", path.read_text("utf-8"))
    return dict(re.findall(r"(?m)^\s*(spark\.[^\s=:]+)(?:[ \t]*[=:][ \t]*|[ \t]+)(.*?)\s*$", text))


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
