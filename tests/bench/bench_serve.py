"""How fast the service answers: pairs a second at full load, and latencies at half of it. Loopback, bounded.

python tests/bench/bench_serve.py --data DATA --workers 2 --pairs 100
python tests/bench/bench_serve.py --data DATA --url http://127.0.0.1:8000      of a service that runs
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from servers import free_port, wait_for  # noqa: E402


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


def bench_serve(args: argparse.Namespace) -> dict[str, float]:
    bodies = requests(Path(args.data), args.pairs, args.requests)
    server, url = None, args.url
    if url is None:
        url = f"http://127.0.0.1:{free_port()}"
        line = [sys.executable, "training/serve.py", "--port", url.rpartition(":")[2]]
        line += ["--workers", str(args.workers)]
        server = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_for(lambda: ready(url), "the service", server)
    try:
        asyncio.run(load(url, bodies[: len(bodies) // 4], args.connections))  # warm
        seconds, latencies = asyncio.run(load(url, bodies, args.connections))
        full = len(bodies) / seconds
        _, half = asyncio.run(load(url, bodies, args.connections, full / 2))
    finally:
        if server is not None:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
    return {
        "serve.pairs_per_second": full * args.pairs,
        "serve.requests_per_second": full,
        "serve.full_load.p50_ms": 1000 * np.percentile(latencies, 50),
        "serve.full_load.p99_ms": 1000 * np.percentile(latencies, 99),
        "serve.half_load.p50_ms": 1000 * np.percentile(half, 50),
        "serve.half_load.p99_ms": 1000 * np.percentile(half, 99),
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
    for name, value in bench_serve(parser.parse_args()).items():
        print(f"{name:<34}{value:>12,.1f}")


if __name__ == "__main__":
    main()
