"""Measures the service: pairs per second at full load, latencies at full and at half load.

python research/benchmarks/bench_serve.py --data DATA --workers 2 --pairs 100

Client and service share the cores and talk over loopback.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from gaixie.research.benchmarks.common import ROOT, show, translations
from gaixie.udfs.command_line import make_parser


def requests(texts: list[list[str]], pairs: int, count: int) -> list[bytes]:
    """Returns the bodies of ``count`` requests POST /v1/score with ``pairs`` pairs each."""
    rows = cycle({"source": a[:1000], "paraphrase": b[:1000]} for a, b in texts)
    return [json.dumps({"pairs": [*islice(rows, pairs)]}).encode() for _ in range(count)]


def ask(url: str, own: list[tuple[float, bytes]], latencies: list[float]) -> None:
    """Sends requests over one connection, each at its time (seconds from now; 0: at once)."""
    where = urlsplit(url)
    connection = HTTPConnection(str(where.hostname), where.port or 80)
    began = time.perf_counter()
    for start, body in own:
        time.sleep(max(0.0, began + start - time.perf_counter()))
        # A request that starts late has been waiting, so its latency counts from when it was due.
        due = began + start if start else time.perf_counter()
        connection.request("POST", "/v1/score", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(text.decode())
        latencies.append(time.perf_counter() - due)
    connection.close()


def load(url: str, bodies: list[bytes], connections: int, rate: float = 0) -> tuple[float, dict]:
    """Returns (requests per second, latencies). rate: requests per second; 0 is no limit."""
    latencies: list[float] = []
    timed = [(k / rate if rate else 0.0, body) for k, body in enumerate(bodies)]
    started = time.perf_counter()
    with ThreadPoolExecutor(connections) as threads:
        list(threads.map(lambda k: ask(url, timed[k::connections], latencies), range(connections)))
    seconds = time.perf_counter() - started
    return len(bodies) / seconds, {f"p{p}_ms": 1000 * np.percentile(latencies, p) for p in (50, 99)}


@contextmanager
def service(*given: str) -> Iterator[str]:
    """Starts a service, yields its address, and stops it."""
    from servers import free_port, wait_for
    from services import answers

    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    line = [sys.executable, "service/serve.py", *given, "--port", port]
    server = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(lambda: answers(url), "the service", server)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def bench_serve(args: argparse.Namespace) -> dict[str, Any]:
    """Returns pairs and requests per second, and latencies in milliseconds."""
    texts = [row[:2] for row in translations(args.data) if len(row) > 1]
    bodies = requests(texts, args.pairs, args.requests)
    with service("--tier", args.tier, "--workers", str(args.workers)) as url:
        load(url, bodies[: len(bodies) // 4], args.connections)  # warm-up
        rate, full = load(url, bodies, args.connections)
        _, half = load(url, bodies, args.connections, rate / 2)
    rates = {"pairs_per_second": rate * args.pairs, "requests_per_second": rate}
    return rates | {"full_load": full, "half_load": half}


if __name__ == "__main__":
    options = make_parser("bench_serve.py", __doc__)
    add = options.add_argument
    add("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    add("--tier", default="core")
    add("--workers", type=int, default=2)
    add("--connections", type=int, default=16)
    add("--pairs", type=int, default=100, help="of a request (%(default)s)")
    add("--requests", type=int, default=1_000)
    show(bench_serve(options.parse_args()), "serve")
