"""Tests what all command lines of the project share."""

import io
import sys

from gaixie.udfs.command_line import say


class Writes(io.StringIO):
    """A stream that keeps each write; another thread's text can only come between two writes."""

    def __init__(self):
        super().__init__()
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.parts.append(text)
        return len(text)


def test_a_line_is_written_at_once(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := Writes())
    say("score: 0.442")
    assert stream.parts == ["score: 0.442\n"]
