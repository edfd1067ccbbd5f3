"""How many connections a process holds, and how long it waits for the head of a request.

uvicorn waits for ever for a head that was begun, and takes connections until the process has no
more files.
"""

from __future__ import annotations

import asyncio
import resource
import time
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from gaixie.udfs.command_line import say

HEAD_SECONDS = 20.0
"""In which the head of a request must have come, whatever its pace."""
SPARE_FILES = 100
"""Files that a process needs beside its connections."""
MOST = 10_000
"""Connections of a process, where the system allows as many files."""
QUIET_SECONDS = 60.0
"""Between two lines of the log on the same matter."""

_said: dict[str, float] = {}


def raise_file_limit() -> None:
    """Takes as many open files as the system allows a process without asking."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections() -> int:
    """Returns how many connections this process may hold."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(1, min(MOST, soft - SPARE_FILES))


class Protocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's, with bounds."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        if len(self.connections) >= most_connections():
            _say_at_times(f"{len(self.connections):,} connections are open: no more are taken")
            transport.abort()
            self.transport = transport
            return
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self in self.connections:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._timer is None:  # a part of the next head
            self._timer = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        _say_at_times(f"a connection without a whole request in {HEAD_SECONDS:g} s was closed")
        self.transport.abort()


def _say_at_times(line: str) -> None:
    """Says a line unless one of its kind was said within a minute: an attacker must not fill the
    log.
    """
    kind, now = line.lstrip("0123456789,"), time.monotonic()
    if now - _said.get(kind, -QUIET_SECONDS) >= QUIET_SECONDS:
        _said[kind] = now
        say(line)
