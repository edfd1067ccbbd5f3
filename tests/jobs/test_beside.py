"""Work beside a block: its result, and what happens where one of the two fails."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace

import pytest

from gaixie.jobs.spark.beside import beside


@pytest.fixture
def spark():
    """As much of a session as breaks work off."""
    cancelled = Event()
    return SimpleNamespace(
        cancelled=cancelled, sparkContext=SimpleNamespace(cancelAllJobs=cancelled.set)
    )


def test_both_run_at_the_same_time(spark):
    begun, answered = Event(), Event()

    def work() -> str:
        begun.set()
        assert answered.wait(30)
        return "done"

    with beside(spark, work) as result:
        assert begun.wait(30)
        answered.set()
    assert result.result() == "done"
    assert not spark.cancelled.is_set()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_fails_breaks_the_work_off(spark, error):
    with pytest.raises(error), beside(spark, lambda: spark.cancelled.wait(30)) as result:
        raise error
    assert result.result() is True


def fail() -> None:
    raise OSError("the disk is full")


def test_work_that_fails_shows_behind_the_block(spark):
    ended = False
    with pytest.raises(OSError, match="full"), beside(spark, fail):
        ended = True
    assert ended
