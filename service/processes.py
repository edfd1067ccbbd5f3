"""Runs a service in one process, or in several on one port.

uvicorn's supervisor holds the port and restarts a worker that dies. At SIGTERM each worker answers
the requests under way before it ends. If a worker dies, connections that are not yet accepted are
not lost, because the port belongs to the supervisor.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client import multiprocess
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from gaixie.service.connections import Protocol, raise_file_limit
from gaixie.service.telemetry import FOLDER
from gaixie.udfs.command_line import say

HEALTHCHECK = 120
"""Seconds without a sign of life after which a worker counts as hung; enough to load a model."""
LATE = 5
"""Seconds that a worker may take beyond its drain time."""
ENDING = {signal.SIGINT, signal.SIGTERM}
"""Signals that end a service."""
KEEP_ALIVE = 75
"""Seconds to keep an idle connection: longer than proxies do, so that they close it first."""
OPTIONS: dict[str, Any] = {
    "access_log": False,  # Guard writes a log without texts and tokens
    "server_header": False,
    "proxy_headers": False,  # a client could forge the address that rates are counted by
    "ws": "none",
    "http": Protocol,
    "timeout_keep_alive": KEEP_ALIVE,
}
"""uvicorn's settings for every service."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    make: Callable[[], FastAPI],
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    drain: int = 30,
) -> int:
    """Serves until SIGTERM or SIGINT, and returns the exit code.

    make: makes the application in each process; must be picklable. port: 0 takes a free one. drain:
    seconds to finish requests under way when the service ends. Raises OSError if the port is not
    available.
    """
    logging.getLogger("uvicorn.error").addFilter(_is_a_trouble)
    config = uvicorn.Config(
        _Quietly(make),
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_level="info",
        **OPTIONS,
        timeout_graceful_shutdown=drain,
        timeout_worker_healthcheck=HEALTHCHECK,
    )
    listening = _bind(host, port)
    shown = f"[{host}]" if ":" in host else host
    say(f"http://{shown}:{listening.getsockname()[1]}  {workers} process{'es' * (workers > 1)}")
    if workers == 1:
        server = uvicorn.Server(config)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        # uvicorn raises the signal again when all is answered; ending on request is no failure.
        with suppress(KeyboardInterrupt, SystemExit):
            server.run(sockets=[listening])
        return 0 if server.started else 2
    folder = tempfile.mkdtemp(prefix="gaixie-metrics-")
    os.environ[FOLDER] = folder
    try:
        supervisor = _Supervisor(config, [listening])
        supervisor.run()
        return 2 if supervisor.failed else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def in_a_thread(app: FastAPI, drain: int | None = None) -> Iterator[str]:
    """Serves in a thread of this process, on a free port of loopback, until the block ends.

    Yields the address. Raises RuntimeError if the application cannot start.
    """
    listening = _bind("127.0.0.1", 0)
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=drain, **OPTIONS)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            thread.join(0.05)
            if not thread.is_alive():
                raise RuntimeError("the application did not start")
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


class _Quietly:
    """Makes the application with a quiet log in each process: workers are spawned, not forked."""

    def __init__(self, make: Callable[[], FastAPI]):
        self.make = make

    def __call__(self) -> FastAPI:
        if parent := multiprocessing.parent_process():
            Thread(target=_end_after, args=(parent,), daemon=True).start()
            # uvicorn's handler is set now; before, an interrupt would have printed a traceback
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        logging.getLogger("uvicorn.error").addFilter(_is_a_trouble)
        raise_file_limit()
        return self.make()


def _end_after(parent: BaseProcess) -> None:
    """Ends this process when the supervisor ends: a killed supervisor stops no worker, and the
    workers would hold the port.
    """
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Holds Ctrl-C back. A worker that starts meanwhile inherits this; otherwise an interrupt
    during its imports would print a traceback.
    """
    resource_tracker.ensure_running()  # starting it later would unblock interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which here also drops the gauges of a dead worker."""

    failed = False

    def init_processes(self) -> None:
        with _interrupts_held():
            super().init_processes()
        self._hear_of_deaths()

    def _hear_of_deaths(self) -> None:
        """Closes this process's copy of each worker's pipe end, so that a worker's death ends it.

        Otherwise a death, or a signal, while the supervisor waits for a sign of life would go
        unnoticed for HEALTHCHECK seconds.
        """
        for process in self.processes:
            process.child_conn.close()

    def terminate_all(self) -> None:
        for listening in self.sockets:  # else new connections would wait for nobody
            listening.close()
        super().terminate_all()

    def join_all(self) -> None:
        end = time.monotonic() + (self.config.timeout_graceful_shutdown or 0) + LATE
        for process in self.processes:
            process.process.join(max(0.0, end - time.monotonic()))
            if process.process.is_alive():  # in work that cannot be interrupted
                say(f"worker {process.pid} did not stop; killing it")
                process.process.kill()
                process.process.join()

    def keep_subprocess_alive(self) -> None:
        if self._is_ending():
            return
        before = [*self.processes]
        with _interrupts_held():
            super().keep_subprocess_alive()
        self._hear_of_deaths()
        for process in before:
            if process not in self.processes:
                self._gone(process)
        self.failed = self.should_exit.is_set()  # a worker could not start

    def _gone(self, process: Process) -> None:
        multiprocess.mark_process_dead(process.pid)
        for left in Path(os.environ[FOLDER]).glob(f"gauge_live*_{process.pid}.db"):
            left.unlink(missing_ok=True)
        if not self._is_ending():
            say(f"worker {process.pid} has died; starting another")

    def _is_ending(self) -> bool:
        """Tells whether a signal was handled or is pending: Ctrl-C may end a worker before this
        process handles the signal.
        """
        return self.should_exit.is_set() or not ENDING.isdisjoint(self.signal_queue)


def _is_a_trouble(record: logging.LogRecord) -> bool:
    """Keeps only uvicorn's warnings and errors, without the cancelled shutdown of the application
    that follows a second signal."""
    dropped = record.getMessage().rstrip().endswith("asyncio.exceptions.CancelledError")
    return record.levelno >= logging.WARNING and not dropped


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:  # OverflowError: no port of that number
        listening.close()
        why = getattr(error, "strerror", "") or error
        raise OSError(f"--host {host} --port {port}: {why}") from None
    listening.set_inheritable(True)
    return listening


def warn_of_open_port(host: str, tokens: dict[str, str]) -> None:
    """Prints a warning if anybody on the network may use the service."""
    if host not in LOOPBACK and not tokens:
        say(f"warning: {host} is open to the network, but there are no tokens")
