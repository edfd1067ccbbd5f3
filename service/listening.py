"""Runs a service: in this process, or in several on one port."""

import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from gaixie.service.app import make_app
from gaixie.service.paraphrasing import ParaphrasingPart
from gaixie.service.part import Part
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.command_line import say
from gaixie.udfs.paraphrase.judge import JUDGE
from gaixie.udfs.paraphrase.paraphraser import Paraphraser, writer_folder
from gaixie.udfs.paraphrase.writer import MODEL

LOOPBACK = ("127.0.0.1", "::1", "localhost")
OPTIONS: dict[str, Any] = {
    "log_config": None,
    "server_header": False,
    "access_log": False,
    "ws": "none",
    "log_level": logging.WARNING,
    "timeout_keep_alive": 75,
    "timeout_worker_healthcheck": 120,
}
"""uvicorn's settings. Its set-up of logs would close the handlers of other libraries. A proxy keeps
idle connections for up to 75 seconds, and closes them first. A worker that loads its models for 120
seconds counts as hung."""


def make_service(
    tier: str, settings: ServiceSettings, *parts: Part, model: str | None = None
) -> FastAPI:
    """Makes the application of one process: the given parts, scoring, and paraphrasing if there is
    a model.

    model: the folder of the model that writes, by default where training/make_writer.py puts it.
    """
    chosen = [*parts, ScoringPart(tier, settings)]
    if folder := model or default_writer():
        chosen.append(ParaphrasingPart(tier, settings, partial(Paraphraser.load, folder)))
    return make_app(chosen, settings)


def default_writer() -> str | None:
    """Returns the folder of the paraphraser that ships; None if it was not made here."""
    folder = writer_folder()
    return str(folder) if (folder / JUDGE / MODEL).is_file() else None  # it is made beside it


def serve(
    make: Callable[[], FastAPI],
    host: str,
    port: int,
    workers: int = 1,
    drain: int = 30,
    tokens: dict[str, str] | None = None,
    note: str = "",
) -> int:
    """Serves until SIGTERM or SIGINT, and returns the exit code.

    make: makes the application in each process; must be picklable for several workers. port: 0
    takes a free one. drain: seconds to finish requests under way when the service ends. tokens:
    warns if anybody on the network may use the service without. note: a line to say once it
    listens. Raises OSError if the port is not available.
    """
    how = OPTIONS | {"workers": workers, "timeout_graceful_shutdown": drain}
    config = uvicorn.Config(make, factory=True, **how)
    listening = bind(host, port)
    shown = f"[{host}]" if ":" in host else host
    if host not in LOOPBACK and not tokens:
        say(f"warning: {host} is open to the network, but there are no tokens")
    if note:
        say(note)
    say(f"http://{shown}:{listening.getsockname()[1]}  {workers} process{'es' * (workers > 1)}")
    if workers > 1:
        Workers(config, [listening]).run()
        return 0
    server = uvicorn.Server(config)
    # uvicorn raises the signal again when all is answered; ending on request is no failure.
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    return 0 if server.started else 2


class Workers(Multiprocess):
    """Several processes on one port."""

    def terminate_all(self) -> None:
        """Ends the workers; new requests are refused from now on, instead of waiting for nobody."""
        for listening in self.sockets:
            listening.close()
        super().terminate_all()


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:  # OverflowError: no port of that number
        hint = "; --port 0 takes a free one" * (getattr(error, "errno", 0) == errno.EADDRINUSE)
        raise OSError(f"--host {host} --port {port}: {error}{hint}") from None
    listening.set_inheritable(True)
    return listening
