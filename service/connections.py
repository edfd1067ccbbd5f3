"""Limits the connections of a process, and how long it waits for the head of a request.

Without this, uvicorn waits for ever for a head that has begun, and accepts connections until the
process runs out of files.
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
"""Seconds in which the head of a request must arrive, however slowly it comes."""
SPARE_FILES = 100
"""Open files that a process needs beside its connections."""
MOST = 10_000
"""The most connections of a process, if the system allows as many files."""
QUIET_SECONDS = 60.0
"""Seconds between two log lines on the same matter."""

_said: dict[str, float] = {}


def raise_file_limit() -> None:
    """Raises the soft limit of open files to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections() -> int:
    """Returns how many connections this process may hold."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(1, min(MOST, soft - SPARE_FILES))


class Protocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """uvicorn's protocol with these limits."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        if len(self.connections) >= most_connections():
            _say_at_times(f"{len(self.connections):,} connections are open; no more are accepted")
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
        elif self._timer is None:  # the first part of the next head
            self._timer = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        _say_at_times(f"closed a connection that sent no complete request in {HEAD_SECONDS:g} s")
        self.transport.abort()


def _say_at_times(line: str) -> None:
    """Logs a line at most once a minute for each kind, so that an attacker cannot fill the log."""
    kind, now = line.lstrip("0123456789,"), time.monotonic()
    if now - _said.get(kind, -QUIET_SECONDS) >= QUIET_SECONDS:
        _said[kind] = now
        say(line)
