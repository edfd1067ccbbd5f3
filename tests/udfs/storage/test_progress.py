"""Progress outside a terminal must be rare whole lines."""

import io

import pytest
from rich.console import Console

from gaixie.udfs.storage import progress
from gaixie.udfs.storage.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """Returns a clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_every_15_seconds_with_rate_and_time_left(clock, capsys):
    with Progress("cutting", 1_000, "sentences") as shown:
        for clock[0], count in ((10, 100), (20, 100), (30, 100), (40, 100)):
            shown.add(count)
    assert capsys.readouterr().err.splitlines() == [
        "cutting: 200 of 1,000 sentences, 10.0 a second, 80 s left",
        "cutting: 400 of 1,000 sentences, 10.0 a second, 60 s left",
    ]


def test_what_an_earlier_run_did_is_not_this_ones_rate(clock, capsys):
    with Progress("stage 1", 100, "steps", done=50) as shown:
        clock[0] = 20.0
        shown.update(60)
        clock[0] = 40.0
        shown.update(75, "loss 1.5")
    assert capsys.readouterr().err.splitlines() == [
        "stage 1: 60 of 100 steps, 0.5 a second, 80 s left",
        "stage 1: loss 1.5, 40 s left",
    ]


def test_a_quiet_console_shows_nothing_and_a_terminal_a_bar(clock):
    for quiet, shows in ((True, False), (False, True)):
        text = io.StringIO()
        console = Console(file=text, force_terminal=True, quiet=quiet, width=100)
        with Progress("cutting", 10, "sentences", console) as shown:
            clock[0] += 20.0
            shown.add(5)
        assert ("5 of 10 sentences" in text.getvalue()) == shows
        assert " s left" not in text.getvalue()
