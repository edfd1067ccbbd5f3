"""Measures the service: pairs per second at full load, latencies at full and at half load, and
latencies for a person who types, or who sends a hundred pairs with and without reasons.

python research/benchmarks/bench_serve.py --data DATA --workers 2 --pairs 100
python research/benchmarks/bench_serve.py --data DATA --url http://127.0.0.1:8000    a running one

Client and service share the cores and talk over loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

from gaixie.research.benchmarks.common import ROOT, parser, show, translations


def request(pairs: list[list[str]], **options: bool) -> bytes:
    """Returns the body of a request POST /v1/score."""
    rows = [{"source": a[:1000], "paraphrase": b[:1000]} for a, b in pairs]
    return json.dumps({"pairs": rows, **options}).encode()


def requests(texts: list[list[str]], pairs: int, count: int, **options: bool) -> list[bytes]:
    """Returns ``count`` requests with ``pairs`` pairs each."""
    places = ([(k * pairs + i) % len(texts) for i in range(pairs)] for k in range(count))
    return [request([texts[place] for place in own], **options) for own in places]


def typed(texts: list[list[str]], count: int) -> list[bytes]:
    """Returns the page's requests, after every character, while paraphrases are typed."""
    steps = ([a, b[:end]] for a, b in texts for end in range(2, len(b) + 1))
    return [request([own], explain=True, changes=True) for own in islice(steps, count)]


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
    found = {f"p{p}_ms": 1000 * np.percentile(latencies, p) for p in (50, 99)}
    return len(bodies) / seconds, found


@contextmanager
def service(*given: str) -> Iterator[str]:
    """Starts a service, yields its address, and stops it."""
    from servers import free_port, wait_for

    port = str(free_port())
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        try:
            return urlopen(f"{url}/ready", timeout=5).status == 200
        except OSError:
            return False

    line = [sys.executable, "service/serve.py", *given, "--port", port]
    server = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(ready, "the service", server)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def bench_serve(args: argparse.Namespace) -> dict[str, float | dict[str, float]]:
    """Returns pairs and requests per second, and latencies in milliseconds.

    For typing and for a hundred pairs, each request waits for the answer to the one before.
    """
    texts = [row[:2] for row in translations(args.data) if len(row) > 1]
    bodies = requests(texts, args.pairs, args.requests)
    for_people = {
        "typing": typed(texts, 500),
        "100_pairs": requests(texts, 100, 50),
        "100_pairs_explained": requests(texts, 100, 50, explain=True),
    }
    options = ("--tier", args.tier, "--workers", str(args.workers))
    with nullcontext(args.url) if args.url else service(*options) as url:
        load(url, bodies[: len(bodies) // 4], args.connections)  # warm-up
        rate, full = load(url, bodies, args.connections)
        _, half = load(url, bodies, args.connections, rate / 2)
        people = {name: load(url, own, 1)[1] for name, own in for_people.items()}
    rates = {"pairs_per_second": rate * args.pairs, "requests_per_second": rate}
    return rates | {"full_load": full, "half_load": half, **people}


if __name__ == "__main__":
    options = parser(__doc__)
    add = options.add_argument
    add("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    add("--url", help="by default a service of its own")
    add("--tier", default="core")
    add("--workers", type=int, default=2)
    add("--connections", type=int, default=16)
    add("--pairs", type=int, default=100, help="of a request (%(default)s)")
    add("--requests", type=int, default=1_000)
    show(bench_serve(options.parse_args()), "serve")
