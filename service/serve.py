"""Serves the metric and a paraphraser over HTTP: an API under /v1 and a page at /.

  gaixie serve                               on http://127.0.0.1:8000; no PyTorch
  gaixie serve --tier core                   faster, and mistakes a changed meaning more often
  gaixie serve writers/own                   writes with another model (training/make_writer.py)
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

import argparse
import sys
from functools import partial

from gaixie.service.listening import default_writer, make_service, serve
from gaixie.service.settings import ServiceSettings, read_tokens
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.defaults import TIER_NAMES
from gaixie.udfs.paraphrase.writer import ModelWriter
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage.settings import add_options, options_of


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return run_command("serve", lambda: run(_arguments(argv)))


def run(args: argparse.Namespace) -> int:
    """Checks the arguments, serves until a signal ends it, and returns the exit code."""
    settings = options_of(ServiceSettings, args, tokens=read_tokens())
    SPScore.load(args.tier)  # here and below: mistakes show before a port is open
    if folder := args.model or default_writer():
        ModelWriter.load(folder)
    lacking = "no paraphrasing: gaixie writer (make writer) makes its model, once"
    note = "the models load for up to half a minute" if folder else lacking
    make = partial(make_service, args.tier, settings, model=args.model)
    return serve(make, args.host, args.port, args.workers, args.drain, settings.tokens, note)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("serve", __doc__)
    add = parser.add_argument
    model = "folder of a model; by default the paraphraser that ships, if make_writer.py made it"
    add("model", nargs="?", metavar="MODEL", help=model)
    add("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    add("--port", type=int, default=8000, help="0: any free port (%(default)s)")
    add("--workers", type=positive, default=1, metavar="N", help="processes (%(default)s)")
    drain = "seconds to answer what is under way at the end (%(default)s)"
    add("--drain", type=positive, default=30, metavar="S", help=drain)
    tiers = f"tier of SPScore-zh: {', '.join(TIER_NAMES)}, or a model's folder (%(default)s)"
    add("--tier", default="full", help=tiers)
    limits = parser.add_argument_group("limits of a request, unless stated otherwise")
    add_options(limits, ServiceSettings, leave_out=("tokens",))
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
