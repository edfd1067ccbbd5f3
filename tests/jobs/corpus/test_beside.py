"""Work beside a block must return its result, and end if either of the two fails."""

import signal
import threading
from threading import Event
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.sql.pandas.serializers import ArrowCollectSerializer

from gaixie.jobs.corpus.beside import beside, interruptible


@pytest.fixture
def cancelled(monkeypatch) -> Event:
    """Returns an event that is set when Spark's jobs would be cancelled."""
    event = Event()
    context = SimpleNamespace(cancelAllJobs=event.set)
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    return event


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_fails_breaks_the_work_off(cancelled, error):
    with pytest.raises(error), beside(lambda: cancelled.wait(30)) as result:
        raise error
    assert result.result() is True


def give_up(*_) -> None:
    raise TimeoutError("the interrupted work does not end")


@pytest.fixture
def bounded():
    """Ends work in the main thread after a minute."""
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_ctrl_c_while_java_sends(spark, monkeypatch, bounded):
    """Ctrl-C must end a transfer of 40 MB: sockets hold less, so Java waits for a reader."""
    read = ArrowCollectSerializer.load_stream

    def interrupted(serializer, stream):
        for number, batch in enumerate(read(serializer, stream)):
            if number == 1:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            yield batch

    monkeypatch.setattr(ArrowCollectSerializer, "load_stream", interrupted)
    with pytest.raises(KeyboardInterrupt):
        interruptible(spark.range(5_000_000).repartition(4).toArrow)
    monkeypatch.undo()
    assert interruptible(spark.range(3).toArrow)["id"].to_pylist() == [0, 1, 2]
