"""Serves the metric and a paraphraser over HTTP: an API under /v1 and a page at /.

  gaixie serve                               on http://127.0.0.1:8000; no PyTorch
  gaixie serve runs/first/model              paraphrases with a trained model
  GAIXIE_TOKENS=me=a-long-secret gaixie serve --host 0.0.0.0 --workers 4
  gaixie serve runs/first/model --dry-run    loads everything, answers once, and exits

  curl -s localhost:8000/v1/score -H 'Content-Type: application/json' \\
    -d '{"pairs": [{"source": "…", "paraphrase": "…"}], "explain": true}'

Every worker is a process with its own model. All candidates of a text are
ranked as by gaixie paraphrase --rank-by. Bearer tokens come from the environment:
GAIXIE_TOKENS (NAME=TOKEN, separated by commas), or GAIXIE_TOKENS_FILE, a file of them. Without
tokens, everyone who can reach the port may send requests, so the service listens only on loopback
unless --host is given. For TLS, use a proxy.

GET /health and /ready are for probes, /metrics is for Prometheus, /docs documents the API. After
SIGTERM or Ctrl-C, requests under way are still answered, for at most --drain seconds.
Exit codes: 0 ended, 2 something to fix (one line says what), 130 interrupted before it served.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gaixie.service.settings import ServiceSettings
from gaixie.udfs.command_line import make_parser, positive, run_command, say
from gaixie.udfs.defaults import TIER_NAMES
from gaixie.udfs.storage.options import add_options
from gaixie.udfs.storage.settings import first_fault

if TYPE_CHECKING:
    from fastapi import FastAPI

LIMITS = (
    *("max_body", "max_pairs", "max_rows", "max_texts", "max_explained"),
    *("min_characters", "max_characters", "queue", "timeout", "body_timeout"),
    *("requests_per_minute", "pairs_per_minute"),
)
"""Settings of the service that are options of the command, by their names."""


WRITING: tuple[tuple[str, Any, Any, str, str], ...] = (
    ("--beams", positive, 8, "N", "beams of the search"),
    ("--draws", int, 8, "N", "candidates drawn instead of searching"),
    ("--temperature", float, 0.6, "T", "of draws; a lower one draws likelier candidates"),
    ("--min-meaning", float, 0.7, "M", "candidates judged below this meaning rank last"),
    ("--batch-size", positive, 32, "N", "texts written at once"),
)
"""Options of a model: name, type, default, letter, what it is."""


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return run_command("serve", lambda: run(_arguments(argv)))


def run(args: argparse.Namespace) -> int:
    """Checks the arguments, serves until a signal ends it, and returns the exit code."""
    from gaixie.service.processes import serve, warn_of_open_port
    from gaixie.service.settings import read_tokens
    from gaixie.udfs.spscore import SPScore

    given = {name: own for name in (*LIMITS, "cors") if (own := getattr(args, name)) is not None}
    try:
        settings = ServiceSettings(tokens=read_tokens(), workers=args.workers, **given)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None
    SPScore.load(args.tier)
    model = _model(args) if args.model else None
    if args.dry_run:
        _answer_once(make(args.tier, model, settings), settings)
        return 0
    warn_of_open_port(args.host, settings.tokens)
    return serve(
        partial(make, args.tier, model, settings), args.host, args.port, args.workers, args.drain
    )


def make(tier: str, model: Any, settings: ServiceSettings) -> FastAPI:
    """Makes the application of one process. Imports PyTorch only for a model."""
    from gaixie.service.app import make_app
    from gaixie.service.paraphrasing import ParaphrasingPart, Writer
    from gaixie.service.part import Part
    from gaixie.service.scoring import ScoringPart

    writer: Writer
    if model is not None:
        from gaixie.service.trained_writer import ModelWriter

        writer = ModelWriter(model, settings.max_characters)
    else:
        from gaixie.service.edit_writer import EditWriter

        writer = EditWriter(tier, settings.max_characters)
    parts: list[Part] = [ScoringPart(tier, settings), ParaphrasingPart(writer, settings)]
    return make_app(parts, settings)


def _model(args: argparse.Namespace) -> Any:
    """Returns what the workers load. Loads it once first, so that mistakes show before a port
    is open.
    """
    if not Path(args.model).is_dir():
        raise FileNotFoundError(f"{args.model}: no such folder")
    from gaixie.service.trained_writer import Model
    from gaixie.training.modeling.generator import Decoding
    from gaixie.training.modeling.paraphraser import Paraphraser, Ranking

    given = vars(args)
    decoding = Decoding(
        **{own.name: given[own.name] for own in fields(Decoding) if own.name in given}
    )
    ranking = Ranking(**{own.name: given[own.name] for own in fields(Ranking) if own.name in given})
    Paraphraser.load(args.model, ranking)
    threads = args.threads or max(1, (os.cpu_count() or 1) // args.workers)
    return Model(args.model, decoding, ranking, threads)


def _answer_once(application: FastAPI, settings: ServiceSettings) -> None:
    """Serves for a moment, requests all that the service can do, and prints the answers."""
    from gaixie.service.client import Client
    from gaixie.service.processes import in_a_thread

    source = "市图书馆将于下周二举办古籍修复体验活动。"
    with in_a_thread(application) as url:
        client = Client(url, next(iter(settings.tokens.values()), None), retries=0)
        [score] = client.score([(source, "下周二，市图书馆会办一场修复古籍的体验活动。")])
        say(f"score: {score['spscore']:.3f}")
        if client.models():
            [result] = client.paraphrase([source])
            texts = [candidate["text"] for candidate in result["candidates"]] or ["none"]
            say(f"paraphrase: {texts[0]}")
        say(client.about()["parts"]["score"]["signature"])


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("serve", __doc__)
    add = parser.add_argument
    model = "folder of a trained model; by default the paraphraser that ships"
    add("model", nargs="?", metavar="MODEL", help=model)
    add("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    add("--port", type=int, default=8000, help="0: any free port (%(default)s)")
    add("--workers", type=positive, default=1, metavar="N", help="processes (%(default)s)")
    drain = "seconds to answer what is under way at the end (%(default)s)"
    add("--drain", type=positive, default=30, metavar="S", help=drain)
    add("--dry-run", action="store_true", help="load everything, answer once, and exit")
    tiers = f"tier of SPScore-zh: {', '.join(TIER_NAMES)}, or a model's folder (%(default)s)"
    add("--tier", default="core", help=tiers)
    limits = parser.add_argument_group("limits of a request, unless stated otherwise")
    add_options(limits, ServiceSettings, *LIMITS)
    pages = "origin whose pages may send requests; may be repeated"
    limits.add_argument("--cors", action="append", metavar="ORIGIN", help=pages)
    writing = parser.add_argument_group("how a model writes").add_argument
    for name, kind, default, letter, what in WRITING:
        writing(name, type=kind, default=default, metavar=letter, help=f"{what} (%(default)s)")
    ranks = ["model", "spscore"]
    writing("--rank-by", choices=ranks, default="spscore", help="ranks candidates (%(default)s)")
    tokens = "of a candidate (default: twice its text's)"
    writing("--max-new-tokens", type=positive, metavar="N", help=tokens)
    writing("--device", default="auto", help="auto (the GPU if there is one), cpu, cuda:1")
    writing("--precision", choices=["float32", "bfloat16"], default="float32", help="(%(default)s)")
    writing("--threads", type=positive, metavar="N", help="of a process (cores / workers)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
