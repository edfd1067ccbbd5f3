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
    """What an earlier run did is not this one's rate."""
    with Progress("stage 1", 1_050, "steps", done=50) as shown:
        for clock[0], count in ((10, 100), (20, 100), (30, 100)):
            shown.add(count)
        clock[0] = 40.0
        shown.update(450, "loss 1.5")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "stage 1: 250 of 1,050 steps, 10.0 a second, 80 s left"
    assert second == "stage 1: loss 1.5, 60 s left"


def test_a_quiet_console_shows_nothing_and_a_terminal_a_bar(clock):
    for quiet, shows in ((True, False), (False, True)):
        text = io.StringIO()
        console = Console(file=text, force_terminal=True, quiet=quiet, width=100)
        with Progress("cutting", 10, "sentences", console) as shown:
            clock[0] += 20.0
            shown.add(5)
        assert ("5 of 10 sentences" in text.getvalue()) == shows
        assert " s left" not in text.getvalue()
