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

LONGEST = 30
"""Seconds that a session which has lost its Java may take to fail."""


class Starting:
    """A session on its way: Java starts in a thread, while its user has other things to do.

    PySpark starts Java in the main thread, and forgets the process where Ctrl-C comes in between: Java
    then waits for ever. Here an interrupt ends it.
    """

    def __init__(self, conf: SparkConf):
        """Starts Java, whose output goes to the job's log; or takes the process that there is."""
        self._conf = conf
        self._running = SparkContext._gateway is not None
        self._result: SparkSession | BaseException | None = None
        self._thread = threading.Thread(target=self._create, daemon=True)
        self._thread.start()

    @property
    def is_own(self) -> bool:
        """Whether this started the Java."""
        return not self._running

    def wait(self) -> SparkSession:
        """The session. Raises JobError where Java says why it did not start, else what PySpark raises."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.end()
            raise
        session = self._result
        if isinstance(session, SparkSession):
            jvm: Any = SparkContext._jvm
            jvm.SparkSession.setActiveSession(session._jsparkSession)  # in this thread too
            return session
        assert session is not None
        if SparkContext._gateway is None:
            lines = log_file().read_text("utf-8", "replace").split("\n")
            said = [line for line in lines if line] or [str(session)]
            raise JobError(f"Java did not start: {said[-1]}") from session
        self.end()
        raise session

    def end(self) -> None:
        """Ends the Java that this started."""
        while self._thread.is_alive() and SparkContext._gateway is None:
            self._thread.join(0.1)  # Java writes down its port within a second or two
        if not self._running:
            end_java(self._thread)

    def _create(self) -> None:
        try:
            if not self._running:
                with open(log_file(), "ab") as log:
                    streams = {"stdout": log, "stderr": log}
                    gateway = launch_gateway(self._conf, popen_kwargs=streams)
                SparkContext._ensure_initialized(gateway=gateway, conf=self._conf)
            # Where Java is killed, this server would print a trace; the main thread finds it out as well.
            AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]
            self._result = SparkSession.builder.config(conf=self._conf).getOrCreate()
        except BaseException as error:
            self._result = error


def end_java(starting: threading.Thread | None = None) -> None:
    """Ends the process that create_session started; it takes its temporary files along.

    starting: the thread that may still make a session with it. It fails as soon as Java is gone, and is waited
    for: PySpark, which would find no gateway any more, would have it start another Java.
    """
    gateway = SparkContext._gateway
    if starting is None:
        SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None and gateway.proc is not None:
        gateway.proc.terminate()
        try:
            gateway.proc.wait(10)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
    if starting is not None:
        starting.join(LONGEST)
        SparkContext._gateway = SparkContext._jvm = None


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
