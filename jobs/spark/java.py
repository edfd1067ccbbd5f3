"""The Java process of a job: started so that Ctrl-C leaves none behind, and silent on the terminal."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from gaixie.jobs.errors import JobError, log_file


def create_session(conf: SparkConf) -> SparkSession:
    """The session of a new Java process, whose output goes to the job's log; or of the one there is.

    PySpark starts Java in the main thread, and forgets the process where Ctrl-C comes in between: Java
    then waits for ever. Here a thread starts it, and an interrupt ends it. Raises JobError where Java
    says why it did not start, else what PySpark raises.
    """
    running = SparkContext._gateway is not None
    results: list[Any] = []

    def create() -> None:
        try:
            if not running:
                with open(log_file(), "ab") as log:
                    streams = {"stdout": log, "stderr": log}
                    gateway = launch_gateway(conf, popen_kwargs=streams)
                SparkContext._ensure_initialized(gateway=gateway, conf=conf)
            # Where Java is killed, this server would print a trace; the main thread finds it out as well.
            AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]
            results.append(SparkSession.builder.config(conf=conf).getOrCreate())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=create, daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        while thread.is_alive() and SparkContext._gateway is None:
            thread.join(0.1)  # Java writes down its port within a second or two
        if not running:
            end_java()
        raise
    if isinstance(results[0], SparkSession):
        return results[0]
    if SparkContext._gateway is None:
        lines = [line for line in log_file().read_text("utf-8", "replace").splitlines() if line]
        raise JobError(f"Java did not start: {(lines or results)[-1]}") from results[0]
    if not running:
        end_java()
    raise results[0]


def end_java() -> None:
    """Ends the process that create_session started; it takes its temporary files along."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None and gateway.proc is not None:
        gateway.proc.terminate()
        try:
            gateway.proc.wait(10)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()


def silence_java(log4j: Path) -> None:
    """Under spark-submit, Java runs already: from now on it writes to the job's log too.

    log4j: the settings of Log4j.
    """
    jvm: Any = SparkContext._jvm
    log = jvm.java.io.PrintStream(jvm.java.io.FileOutputStream(str(log_file()), True), True)
    jvm.java.lang.System.setErr(log)
    # Spark sets its own up once more; its appender takes the new stream only after this one.
    uri = jvm.java.net.URI.create(log4j.as_uri())
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(uri)
