"""Breaks scoring runs at random moments, for as long as it is told to, and looks at what is left.

  python tests/support/soak.py --minutes 30 --seed 7

Every run of jobs/score_corpus.py, local or on an S3 server of this script's own, is broken up to three times
and started again with --resume until it is published. Then its rows are those of a run that nothing
disturbed, its files have the SHA-256 that the manifest says, no process of the run is left, and each start
that failed wrote at most ten lines, of which the last says why. Exit code 1 where a run failed one of these.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from servers import ObjectStore  # noqa: E402

from gaixie.udfs.storage import storage  # noqa: E402
from gaixie.udfs.storage.manifest import read_run  # noqa: E402
from gaixie.udfs.storage.published_files import run_faults  # noqa: E402

ROWS, FILES, MAX_LINES, PATIENCE = 60_000, 8, 10, 300


def write_pairs(folder: Path) -> None:
    """Writes pairs of two examples joined, in several files; some are there twice."""
    examples = pd.read_json(ROOT / "examples/pairs.jsonl", lines=True)
    n = np.arange(ROWS)
    a, b = n % len(examples), (n // len(examples) + 7 * n + 1) % len(examples)
    texts = {s: examples[s].to_numpy()[a] + examples[s].to_numpy()[b] for s in SIDES}
    table = pd.DataFrame(texts | {"origin": examples["origin"].to_numpy()[a]})
    folder.mkdir(parents=True)
    for k, part in enumerate(np.array_split(n, FILES)):
        rows = pd.concat([table.iloc[part], table.iloc[100 * k : 100 * k + len(part) // 10]])
        rows.to_parquet(folder / f"{k}.parquet", index=False)


SIDES = ("source", "paraphrase")


def processes_of(group: int) -> list[psutil.Process]:
    """Processes of a group that are not yet gone."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, ProcessLookupError):
            pass
    return found


def kill_group(how: signal.Signals) -> Callable[[subprocess.Popen, ObjectStore], None]:
    return lambda process, store: os.killpg(process.pid, how)


def kill_one(name: str) -> Callable[[subprocess.Popen, ObjectStore], None]:
    def fault(process: subprocess.Popen, store: ObjectStore) -> None:
        for one in [one for one in processes_of(process.pid) if name in one.name()][-1:]:
            one.kill()

    return fault


def restart_server(process: subprocess.Popen, store: ObjectStore) -> None:
    store.kill()
    time.sleep(2)
    store.start()


FAULTS = {
    "sigint": kill_group(signal.SIGINT),
    "sigterm": kill_group(signal.SIGTERM),
    "sigkill": kill_group(signal.SIGKILL),
    "driver": lambda process, store: process.kill(),
    "java": kill_one("java"),
    "worker": kill_one("python"),
    "server": restart_server,
}


def attempt(root: str, run_id: str, pairs: Path, *options: str) -> subprocess.Popen:
    line = [sys.executable, ROOT / "jobs/score_corpus.py", "--input", pairs, "--unit-mb", "0.3"]
    line += ["--origin-column", "origin", "--output", root, "--run-id", run_id, *options]
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115
    process = subprocess.Popen(
        list(map(str, line)), stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
    )
    process.log = log  # read once it has ended
    return process


def faults_of_end(process: subprocess.Popen) -> list[str]:
    """Waits for the end of an attempt; what is wrong with it."""
    try:
        code = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return [f"still at work after {PATIENCE} s"]
    deadline = time.monotonic() + 30
    while (left := processes_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.2)
    faults = [f"process {one.pid} ({one.name()}) is left" for one in left]
    process.log.seek(0)
    progress = ("scoring", "finding", "writing")
    said = [line for line in process.log if not line.startswith(progress)]
    if len(said) > MAX_LINES:
        faults.append(f"{len(said)} lines, such as {said[len(said) // 2]!r}")
    if code > 0 and not (said and said[-1].startswith("score_corpus: ")):
        faults.append(f"exit {code}, but its last line is {said[-1:]!r}")
    return faults


def disturb(
    name: str, root: str, run_id: str, pairs: Path, expected: dict, draw: random.Random, store
) -> list[str]:
    """Breaks a run at random moments up to three times; what is wrong with what is left."""
    faults: list[str] = []
    for number in range(6):
        process = attempt(root, run_id, pairs, *(("--resume",) if number else ()))
        if number < 3:
            time.sleep(draw.uniform(0.2, 40))
            if process.poll() is None:
                FAULTS[name](process, store)
        faults += faults_of_end(process)
        if process.returncode == 0:
            manifest = read_run(f"{root}/runs/{run_id}")
            if manifest.total.model_dump() != expected:
                faults.append(f"rows {manifest.total}, undisturbed {expected}")
            return faults + run_faults(f"{root}/runs/{run_id}", manifest, storage.sha256)
    return [*faults, "not published in six starts"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    draw, failed = random.Random(args.seed), 0
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory(prefix="gaixie-soak-") as work:
        folder = Path(work)
        (folder / "store").mkdir()
        write_pairs(folder / "pairs")
        store = ObjectStore(folder / "store")
        os.environ.update(store.environment())
        try:
            first = attempt(f"{folder}/out", "undisturbed", folder / "pairs")
            if first.wait():
                return 1
            expected = read_run(f"{folder}/out/runs/undisturbed").total.model_dump()
            end, number = time.monotonic() + 60 * args.minutes, 0
            while time.monotonic() < end:
                number += 1
                name = draw.choice([*FAULTS])
                remote = name == "server" or draw.random() < 0.3
                root = f"s3a://{ObjectStore.BUCKET}/soak" if remote else f"{folder}/out"
                given = name, root, f"run-{number}", folder / "pairs", expected, draw, store
                faults = disturb(*given)
                failed += bool(faults)
                print(f"run-{number}, {name}, {root}: {'; '.join(faults) or 'good'}", flush=True)
        finally:
            store.kill()
    print(f"{number} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
