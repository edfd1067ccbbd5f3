"""While workers and services are killed, each request must get exactly one, right answer.

GAIXIE_TEST_REQUESTS=10000 .venv/bin/python -m pytest tests/service/test_kills.py     more requests
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from servers import free_port, wait_for

from gaixie.service.client import Client
from gaixie.udfs.spscore import OUTPUTS, SPScore

pytestmark = [pytest.mark.training, pytest.mark.long]

ROOT = Path(__file__).parents[2]
REQUESTS = int(os.environ.get("GAIXIE_TEST_REQUESTS", "800"))
THREADS = 8
BLOWS = 3 + REQUESTS // 1_000
SEED = 20


class Victim:
    """A service that is killed in several ways, and started again if it is gone."""

    def __init__(self, log: Path):
        self.port, self.log = free_port(), log
        self.start()

    def start(self) -> None:
        line = [sys.executable, "service/serve.py", "--port", str(self.port), "--workers", "2"]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(line, cwd=ROOT, stderr=log, start_new_session=True)
        client = Client(f"http://127.0.0.1:{self.port}")
        wait_for(client.ready, "the service", self.process)

    def workers(self) -> list[psutil.Process]:
        found = []
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # it was just killed
                if "spawn_main" in " ".join(child.cmdline()):
                    found.append(child)
        return found

    def hit(self, how: str, draw: random.Random) -> None:
        """Hits the service.

        how: worker (one is killed), term (all end in order), supervisor (it is killed, and its
        workers end by themselves).
        """
        wait_for(self.workers, "a worker", self.process)
        workers = self.workers()
        if how == "worker":
            with suppress(psutil.NoSuchProcess):
                draw.choice(workers).kill()
            return
        self.process.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
        code = self.process.wait(60)
        assert code == (0 if how == "term" else -signal.SIGKILL)
        _, alive = psutil.wait_procs(workers, 60)
        assert alive == []
        self.start()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def test_every_request_gets_its_answer_whatever_is_killed(tmp_path):
    lines = (ROOT / "examples/pairs.jsonl").read_text("utf-8").splitlines()
    pairs = [(row["source"], row["paraphrase"]) for row in map(json.loads, lines)]
    expected = SPScore.load().judge(*zip(*pairs, strict=True)).to_numpy()
    draw = random.Random(SEED)
    asked = [draw.sample(range(len(pairs)), draw.choice((1, 1, 2, 5))) for _ in range(REQUESTS)]
    blows = [draw.choice(("worker", "worker", "term", "supervisor")) for _ in range(BLOWS - 3)]
    blows += ["worker", "term", "supervisor"]  # each kind at least once
    draw.shuffle(blows)
    moments = sorted(draw.sample(range(REQUESTS // 20, REQUESTS - REQUESTS // 20), BLOWS))

    victim = Victim(tmp_path / "log")
    client = Client(f"http://127.0.0.1:{victim.port}", retries=14)
    answers: list[list[list[float]]] = [[] for _ in asked]
    count, lock, done = 0, threading.Condition(), False

    def ask(number: int) -> None:
        nonlocal count
        scores = client.score([pairs[k] for k in asked[number]])
        answers[number].append([[row[name] for name in OUTPUTS] for row in scores])
        with lock:
            count += 1
            lock.notify_all()

    def hit() -> None:
        for moment, how in zip(moments, blows, strict=True):
            with lock:
                lock.wait_for(lambda moment=moment: count >= moment or done)
            victim.hit(how, draw)

    try:
        with ThreadPoolExecutor(THREADS) as askers, ThreadPoolExecutor(1) as hitter:
            blow = hitter.submit(hit)
            futures = [askers.submit(ask, number) for number in range(REQUESTS)]
            try:
                for future in futures:
                    future.result()
            finally:
                with lock:
                    done = True
                    lock.notify_all()
            blow.result()
    finally:
        victim.end()
    assert all(len(own) == 1 for own in answers)
    for own, rows in zip(answers, asked, strict=True):
        np.testing.assert_allclose(own[0], expected[rows], rtol=0, atol=1e-6)
    log = victim.log.read_text()
    assert log.count("starting another") >= blows.count("worker")
    assert "Traceback" not in log, log[-3_000:]
