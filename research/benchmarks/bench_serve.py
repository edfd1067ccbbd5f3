"""How fast the service answers: pairs a second at full load, and latencies at half of it. Loopback, bounded.

python research/benchmarks/bench_serve.py --data DATA --workers 2 --pairs 100
python research/benchmarks/bench_serve.py --data DATA --url http://127.0.0.1:8000      of a service that runs
python research/benchmarks/bench_serve.py --data DATA --model exported --texts 256      paraphrases, beside training/generate.py
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from servers import free_port, wait_for  # noqa: E402

from gaixie.service.client import Client  # noqa: E402


def requests(data: Path, pairs: int, count: int) -> list[bytes]:
    """Bodies of POST /v1/score, of real translations of one sentence."""
    table = pq.read_table(data / "wmt_en_zh_translations.parquet", columns=["translations_zh"])
    texts = [row[:2] for row in table["translations_zh"].to_pylist() if len(row) > 1]
    bodies = []
    for k in range(count):
        own = [texts[(k * pairs + i) % len(texts)] for i in range(pairs)]
        made = {"pairs": [{"source": a[:1000], "paraphrase": b[:1000]} for a, b in own]}
        bodies.append(json.dumps(made).encode())
    return bodies


async def ask(
    host: str, port: int, bodies: list[bytes], starts: list[float], out: list[float]
) -> None:
    """One connection: each body at its time (seconds from now; 0: at once), its latency into out."""
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST /v1/score HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    began = time.perf_counter()
    for body, start in zip(bodies, starts, strict=True):
        due = began + start
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        elif not start:
            due = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        out.append(time.perf_counter() - due)  # from when it was due: a late start is waiting too
    writer.close()


async def load(
    url: str, bodies: list[bytes], connections: int, rate: float = 0.0
) -> tuple[float, list[float]]:
    """(seconds, latencies) of all bodies. rate: requests a second over all connections; 0: as fast as it goes."""
    where, latencies = urlsplit(url), []
    began = time.perf_counter()
    tasks = []
    for k in range(connections):
        own = bodies[k::connections]
        starts = [(i * connections + k) / rate if rate else 0.0 for i in range(len(own))]
        tasks.append(ask(str(where.hostname), int(where.port or 80), own, starts, latencies))
    await asyncio.gather(*tasks)
    return time.perf_counter() - began, latencies


@contextmanager
def service(*given: str) -> Iterator[str]:
    """The address of a service of its own."""
    url = f"http://127.0.0.1:{free_port()}"
    line = [sys.executable, "service/serve.py", *given, "--port", url.rpartition(":")[2]]
    server = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(lambda: ready(url), "the service", server)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def bench_serve(args: argparse.Namespace) -> dict[str, float]:
    bodies = requests(Path(args.data), args.pairs, args.requests)
    with nullcontext(args.url) if args.url else service("--workers", str(args.workers)) as url:
        asyncio.run(load(url, bodies[: len(bodies) // 4], args.connections))  # warm
        seconds, latencies = asyncio.run(load(url, bodies, args.connections))
        full = len(bodies) / seconds
        _, half = asyncio.run(load(url, bodies, args.connections, full / 2))
    return {
        "serve.pairs_per_second": full * args.pairs,
        "serve.requests_per_second": full,
        "serve.full_load.p50_ms": 1000 * np.percentile(latencies, 50),
        "serve.full_load.p99_ms": 1000 * np.percentile(latencies, 99),
        "serve.half_load.p50_ms": 1000 * np.percentile(half, 50),
        "serve.half_load.p99_ms": 1000 * np.percentile(half, 99),
    }


def bench_paraphrasing(args: argparse.Namespace) -> dict[str, float]:
    """Seconds of the same texts by HTTP and by training/generate.py, from the first to the last; model loaded."""
    table = pq.read_table(Path(args.data) / "wmt_en_zh_translations.parquet")
    rows = table["translations_zh"].to_pylist()
    texts = [row[0] for row in rows if row and 15 <= len(row[0]) <= 40][: args.texts]
    options = ["--beams", "4", "--draws", "4", "--rank-by", "spscore", "--min-meaning", "0.7"]
    options += ["--reverse", "0.1", "--forward", "0.1", "--temperature", "0.6"]
    with service(args.model, *options) as url:
        client = Client(url, timeout=600)
        client.paraphrase(texts[:8])
        began = time.perf_counter()
        client.paraphrase(texts)
        served = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for count in (8, len(texts)):  # what both take is loading
            file = Path(folder, "texts.txt")
            file.write_text("\n".join(text.replace("\n", " ") for text in texts[:count]), "utf-8")
            line = [sys.executable, "training/generate.py", args.model, str(file), *options]
            began = time.perf_counter()
            subprocess.run(line, cwd=ROOT, check=True, capture_output=True)
            seconds.append(time.perf_counter() - began)
    generated = (seconds[1] - seconds[0]) / (len(texts) - 8) * len(texts)
    return {
        "paraphrase.http.texts_per_second": len(texts) / served,
        "paraphrase.generate.texts_per_second": len(texts) / generated,
        "paraphrase.http_by_generate": generated / served,
    }


def ready(url: str) -> bool:
    try:
        return urllib.request.urlopen(f"{url}/ready", timeout=5).status == 200
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="../shared/data", metavar="FOLDER")
    parser.add_argument("--url", help="by default a service of its own")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--pairs", type=int, default=100, help="of a request (%(default)s)")
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--model", metavar="FOLDER", help="time paraphrases of this model instead")
    parser.add_argument("--texts", type=int, default=128)
    args = parser.parse_args()
    figures = bench_paraphrasing(args) if args.model else bench_serve(args)
    for name, value in figures.items():
        print(f"{name:<40}{value:>12,.2f}")


if __name__ == "__main__":
    main()
