"""How a job ends: one line, an exit code, and nothing of py4j's log."""

import logging
from types import SimpleNamespace

import pytest
from py4j import clientserver
from py4j.clientserver import ClientServerConnection

from gaixie.jobs.errors import JobError, run


@pytest.fixture(autouse=True)
def loggers():
    """The root logger's filters and py4j's level, put back behind the test."""
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    filters, level = list(root.filters), py4j.level
    yield
    root.filters[:] = filters
    py4j.setLevel(level)


def test_a_job_error_is_one_line(capsys):
    def main():
        raise JobError("pairs.csv: no column 'source'")

    assert run("score_corpus", main) == 2
    assert capsys.readouterr().err == "score_corpus: error: pairs.csv: no column 'source'\n"


def test_ctrl_c_is_one_line_whatever_py4j_logs(caplog):
    broken = SimpleNamespace(
        is_connected=True,
        stream=SimpleNamespace(close=lambda: None),
        socket=SimpleNamespace(sendall=lambda _: 1 / 0),
    )

    def main():
        # py4j's own code for it, over a connection that Java has closed
        ClientServerConnection.shutdown_socket(broken, 1, 2)
        path = clientserver.__file__.replace("clientserver", "java_gateway")
        record = logging.LogRecord("root", logging.ERROR, path, 1, "trace", None, None)
        logging.getLogger().handle(record)
        logging.getLogger().error("of somebody else")
        raise KeyboardInterrupt

    assert run("score_corpus", main) == 130
    assert caplog.messages == ["of somebody else"]
