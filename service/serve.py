"""Serves the metric and a paraphraser over HTTP: an API under /v1 and a page at /.

  gaixie serve                               on http://127.0.0.1:8000; no PyTorch
  gaixie serve --tier core                   faster, and mistakes a changed meaning more often
  GAIXIE_TOKENS=me=a-long-secret gaixie serve --host 0.0.0.0 --workers 4

  curl -s localhost:8000/v1/score -H 'Content-Type: application/json' \\
    -d '{"pairs": [{"source": "…", "paraphrase": "…"}], "explain": true}'

Every worker is a process with its own models. Bearer tokens come from the environment:
GAIXIE_TOKENS (NAME=TOKEN, separated by commas), or GAIXIE_TOKENS_FILE, a file of them. Without
tokens, everyone who can reach the port may send requests, so the service listens only on loopback
unless --host is given. Rates, slow clients and TLS are for a proxy.

GET /health and /ready are for probes, /openapi.json describes the API. After SIGTERM or Ctrl-C,
requests under way are still answered, for at most --drain seconds.
Exit codes: 0 ended, 2 something to fix (one line says what), 130 interrupted before it served.
"""

from __future__ import annotations

import argparse
import errno
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from gaixie.service.app import make_app
from gaixie.service.paraphrasing import ParaphrasingPart
from gaixie.service.part import Part
from gaixie.service.scoring import ScoringPart
from gaixie.service.settings import ServiceSettings, read_tokens
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.defaults import TIER_NAMES
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage.options import add_options

LIMITS = tuple(name for name in ServiceSettings.model_fields if name not in ("tokens", "cors"))
"""Settings of the service that are options of the command, by their names."""
LOADING_SECONDS = 120
"""Seconds after which a worker that loads its models counts as hung."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
OPTIONS = {"server_header": False, "ws": "none", "timeout_keep_alive": 75}
"""uvicorn's settings. A proxy keeps idle connections for up to 75 seconds, and closes them first."""


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return run_command("serve", lambda: run(_arguments(argv)))


def run(args: argparse.Namespace) -> int:
    """Checks the arguments, serves until a signal ends it, and returns the exit code."""
    given = {name: getattr(args, name) for name in (*LIMITS, "cors")}
    given = {name: value for name, value in given.items() if value is not None}
    settings = ServiceSettings(tokens=read_tokens(), **given)
    SPScore.load(args.tier)  # mistakes show before a port is open
    make = partial(make_service, args.tier, settings)
    return serve(make, args.host, args.port, args.workers, args.drain, settings.tokens)


def make_service(tier: str, settings: ServiceSettings, *parts: Part) -> FastAPI:
    """Makes the application of one process: the given parts, scoring and paraphrasing."""
    common = (ScoringPart(tier, settings), ParaphrasingPart(tier, settings))
    return make_app([*parts, *common], settings)


def serve(
    make: Callable[[], FastAPI],
    host: str,
    port: int,
    workers: int = 1,
    drain: int = 30,
    tokens: dict[str, str] | None = None,
) -> int:
    """Serves until SIGTERM or SIGINT, and returns the exit code.

    make: makes the application in each process; must be picklable for several workers. port: 0
    takes a free one. drain: seconds to finish requests under way when the service ends. tokens:
    warns if anybody on the network may use the service without. Raises OSError if the port is not
    available.
    """
    config = uvicorn.Config(
        make,
        factory=True,
        workers=workers,
        log_level=logging.WARNING,
        timeout_graceful_shutdown=drain,
        timeout_worker_healthcheck=LOADING_SECONDS,
        **OPTIONS,
    )
    listening = _bind(host, port)
    shown = f"[{host}]" if ":" in host else host
    if host not in LOOPBACK and not tokens:
        say(f"warning: {host} is open to the network, but there are no tokens")
    say(f"http://{shown}:{listening.getsockname()[1]}  {workers} process{'es' * (workers > 1)}")
    if workers > 1:
        Multiprocess(config, [listening]).run()
        return 0
    server = uvicorn.Server(config)
    # uvicorn raises the signal again when all is answered; ending on request is no failure.
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    return 0 if server.started else 2


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


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:  # OverflowError: no port of that number
        listening.close()
        why = getattr(error, "strerror", "") or str(error)
        if getattr(error, "errno", 0) == errno.EADDRINUSE:
            why += "; --port 0 takes a free one"
        raise OSError(f"--host {host} --port {port}: {why}") from None
    listening.set_inheritable(True)
    return listening


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("serve", __doc__)
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    add("--port", type=int, default=8000, help="0: any free port (%(default)s)")
    add("--workers", type=positive, default=1, metavar="N", help="processes (%(default)s)")
    drain = "seconds to answer what is under way at the end (%(default)s)"
    add("--drain", type=positive, default=30, metavar="S", help=drain)
    tiers = f"tier of SPScore-zh: {', '.join(TIER_NAMES)}, or a model's folder (%(default)s)"
    add("--tier", default="full", help=tiers)
    limits = parser.add_argument_group("limits of a request, unless stated otherwise")
    add_options(limits, ServiceSettings, *LIMITS)
    pages = "origin whose pages may send requests; may be repeated"
    limits.add_argument("--cors", action="append", metavar="ORIGIN", help=pages)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
