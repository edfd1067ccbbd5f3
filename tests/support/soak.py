"""Breaks scoring runs at random moments, for as long as it is told to, and looks at what is left.

  python tests/support/soak.py --minutes 30                   a seed is drawn and printed
  python tests/support/soak.py --minutes 10 --seed 7 --only sigkill damaged

Every run of jobs/score_corpus.py, local or on an S3 server of this script's own, meets one fault or more and
is started again with --resume until it is published. Then:

  * the rows of its table close, and are those of a run that nothing disturbed;
  * every file has the size and the SHA-256 that the manifest says;
  * no process of the run is left;
  * a run that failed wrote at most ten lines to the terminal, and the last says why.

It kills only processes that it started. Not part of `make test`; exit code 1 where a run failed the list.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from servers import ObjectStore  # noqa: E402

from gaixie.udfs.storage import storage  # noqa: E402
from gaixie.udfs.storage.manifest import read_run  # noqa: E402
from gaixie.udfs.storage.published_files import run_faults  # noqa: E402

ROWS, FILES = 60_000, 8
MAX_LINES = 10
PATIENCE = 300


@dataclass
class Attempt:
    """One start of the job: its process, and what it wrote to standard error."""

    process: subprocess.Popen
    lines: list[str] = field(default_factory=list)
    reader: threading.Thread | None = None

    def wait(self, seconds: float) -> int | None:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class Soak:
    """The folders, the server and the tally of one soak."""

    def __init__(self, folder: Path, draw: random.Random):
        self.folder, self.draw = folder, draw
        self.store = ObjectStore(folder / "store")
        os.environ.update(self.store.environment())
        self.input = folder / "pairs"
        write_pairs(self.input)
        self.tally: Counter[str] = Counter()
        self.failures: list[str] = []
        self.published = self.files = self.most_lines = 0
        self.seconds = 45.0
        """What a run takes that nothing disturbs: a fault comes before that."""

    def start(self, root: str, run_id: str, *options: str, pairs: Path | None = None) -> Attempt:
        line = [sys.executable, ROOT / "jobs/score_corpus.py", "--input", pairs or self.input]
        line += ["--origin-column", "origin", "--output", root, "--run-id", run_id]
        line += ["--unit-mb", "0.3", *options]
        process = subprocess.Popen(
            [str(word) for word in line],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        attempt = Attempt(process)
        attempt.reader = threading.Thread(target=attempt.lines.extend, args=(process.stderr,))
        attempt.reader.start()
        return attempt

    def ended(self, attempt: Attempt, what: str) -> int:
        """Waits for the end of an attempt; tallies what it left."""
        code = attempt.wait(PATIENCE)
        if code is None:
            self.failures.append(f"{what}: still at work after {PATIENCE} s")
            os.killpg(attempt.process.pid, signal.SIGKILL)
            code = attempt.process.wait()
        deadline = time.monotonic() + 30
        while (left := alive(attempt.process.pid)) and time.monotonic() < deadline:
            time.sleep(0.2)
        for process in left:
            self.failures.append(f"{what}: process {process.pid} ({process.name()}) is left")
            process.kill()
        attempt.reader.join(10)
        said = [
            line for line in attempt.lines if not line.startswith(("scoring", "finding", "writing"))
        ]
        self.most_lines = max(self.most_lines, len(said) if code else 0)
        if len(said) > MAX_LINES:
            self.failures.append(f"{what}: {len(said)} lines, such as {said[len(said) // 2]!r}")
        if code > 0 and not (said and said[-1].startswith("score_corpus: ")):
            self.failures.append(f"{what}: exit {code}, but its last line is {said[-1:]!r}")
        return code

    def check(self, folder: str, expected: dict[str, int], what: str) -> None:
        """What a published run must be. expected: rows of its table, with read for all."""
        manifest = read_run(folder)
        total = manifest.total.model_dump()
        if total["read"] != total["scored"] + total["quarantined"] + total["duplicates"]:
            self.failures.append(f"{what}: rows do not close: {total}")
        if expected and total != expected:
            self.failures.append(f"{what}: rows {total}, undisturbed {expected}")
        self.published += 1
        self.files += sum(len(files) for files in manifest.files.values())
        self.failures += [
            f"{what}: {fault}" for fault in run_faults(folder, manifest, storage.sha256)
        ]


def alive(group: int) -> list[psutil.Process]:
    """Processes of a group that are not yet gone."""
    processes = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except (psutil.Error, ProcessLookupError):
            pass
    return processes


def children(attempt: Attempt, name: str) -> list[psutil.Process]:
    try:
        processes = psutil.Process(attempt.process.pid).children(recursive=True)
        return [process for process in processes if name in process.name()]
    except psutil.Error:
        return []


def kill_group(how: signal.Signals) -> Callable[[Soak, Attempt], None]:
    def fault(soak: Soak, attempt: Attempt) -> None:
        os.killpg(attempt.process.pid, how)

    return fault


def kill_one(name: str) -> Callable[[Soak, Attempt], None]:
    def fault(soak: Soak, attempt: Attempt) -> None:
        for process in children(attempt, name)[-1:]:
            process.kill()

    return fault


def kill_driver(soak: Soak, attempt: Attempt) -> None:
    attempt.process.kill()


def restart_server(soak: Soak, attempt: Attempt) -> None:
    soak.store.kill()
    time.sleep(soak.draw.uniform(0, 5))
    soak.store.start()


FAULTS: dict[str, Callable[[Soak, Attempt], None]] = {
    "sigint": kill_group(signal.SIGINT),
    "sigterm": kill_group(signal.SIGTERM),
    "sigkill": kill_group(signal.SIGKILL),
    "driver": kill_driver,
    "java": kill_one("java"),
    "worker": kill_one("python"),
    "server": restart_server,
}
"""What can happen to a run at work. Two more happen to files: damaged, full."""


def write_pairs(folder: Path) -> None:
    """Distinct pairs in several files, made of the examples, two joined; a tenth stands twice."""
    lines = (ROOT / "examples/pairs.jsonl").read_text("utf-8").splitlines()
    examples = [json.loads(line) for line in lines]
    n = np.arange(ROWS)
    a, b = n % len(examples), (n // len(examples) + 7 * n + 1) % len(examples)
    columns = {
        name: [examples[i][name] + examples[j][name] for i, j in zip(a, b, strict=True)]
        for name in ("source", "paraphrase")
    }
    columns["origin"] = [examples[i]["origin"] for i in a]
    table = pa.table(columns)
    folder.mkdir(parents=True)
    for k in range(FILES):
        part = table.slice(k * ROWS // FILES, ROWS // FILES)
        rows = pa.concat_tables([part, table.slice(k * 100, ROWS // FILES // 10)])
        pq.write_table(rows, folder / f"{k}.parquet", compression="zstd")


def flip_bytes(path: Path, draw: random.Random, count: int = 40) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(count):
        content[draw.randrange(4, len(content) - 8)] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def disturbed(soak: Soak, name: str, root: str, run_id: str, expected: dict[str, int]) -> None:
    """A run that one fault breaks, at a random moment, up to three times; then it is published."""
    folder = f"{root}/runs/{run_id}"
    for attempt_number in range(6):
        what = f"{run_id}, {name}, start {attempt_number + 1}"
        attempt = soak.start(root, run_id, *(("--resume",) if attempt_number else ()))
        started = time.monotonic()
        if attempt_number < 3 and attempt.wait(soak.draw.uniform(0.2, soak.seconds)) is None:
            FAULTS[name](soak, attempt)
            soak.tally[name] += 1
        elif attempt_number < 3:  # the first run of all may have taken longer: it fills caches
            soak.seconds = min(soak.seconds, time.monotonic() - started)
        if soak.ended(attempt, what) == 0:
            soak.check(folder, expected, what)
            return
    soak.failures.append(f"{run_id}, {name}: not published in six starts: {attempt.lines[-3:]}")


def damaged(soak: Soak, name: str, root: str, run_id: str, expected: dict[str, int]) -> None:
    """Bytes flipped in an input, which is set aside by name; then in what was published, which shows."""
    pairs = soak.folder / f"{run_id}-pairs"
    shutil.copytree(soak.input, pairs)
    bad = pairs / f"{soak.draw.randrange(FILES)}.parquet"
    flip_bytes(bad, soak.draw)
    soak.tally[name] += 1
    attempt = soak.start(root, run_id, "--on-corrupt-file", "quarantine", pairs=pairs)
    what = f"{run_id}, {name}"
    if code := soak.ended(attempt, what):
        # A bit of a column's name, say: such a file is a mistake, which stops a run before it starts.
        if code != 2 or f"{bad}: " not in attempt.lines[-1]:
            soak.failures.append(f"{what}: not published, exit {code}: {attempt.lines[-3:]}")
        return
    folder = f"{root}/runs/{run_id}"
    soak.check(folder, {}, what)
    manifest = read_run(folder)
    aside = [uri for source in manifest.inputs for uri in source.corrupt_files]
    whole = manifest.total.read == expected["read"]
    if whole and not aside:
        pass  # the bits that flipped say nothing
    elif [Path(uri).name for uri in aside] != [bad.name]:
        soak.failures.append(f"{what}: {bad.name} is damaged, set aside: {aside}")
    if "://" not in folder:
        published = soak.draw.choice(sorted(Path(folder).rglob("scored/**/*.parquet")))
        flip_bytes(published, soak.draw, 1)
        if not run_faults(folder, manifest, storage.sha256):
            soak.failures.append(f"{what}: a bit flipped in {published} does not show")


def full(soak: Soak, name: str, root: str, run_id: str, expected: dict[str, int]) -> None:
    """A disk that fills up, and is made larger; needs the right to mount."""
    disk = soak.folder / f"{run_id}-disk"
    disk.mkdir()
    megabytes = soak.draw.uniform(0.3, 3)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={int(megabytes * 1000)}k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        soak.tally["full (may not mount: left out)"] += 1
        return
    try:
        soak.tally[name] += 1
        what = f"{run_id}, {name} at {megabytes:.1f} MB"
        attempt = soak.start(str(disk), run_id)
        if soak.ended(attempt, what) == 0:
            soak.check(f"{disk}/runs/{run_id}", expected, what)
            return
        if "disk is full" not in attempt.lines[-1]:
            soak.failures.append(f"{what}: says {attempt.lines[-1]!r}")
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        attempt = soak.start(str(disk), run_id, "--resume")
        if soak.ended(attempt, what) == 0:
            soak.check(f"{disk}/runs/{run_id}", expected, what)
        else:
            soak.failures.append(f"{what}: not published with more room: {attempt.lines[-3:]}")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", nargs="+", choices=[*FAULTS, "damaged", "full"], metavar="FAULT")
    args = parser.parse_args()
    draw = random.Random(args.seed)
    names = args.only or [*FAULTS, "damaged", "full"]
    folder = Path(tempfile.mkdtemp(prefix="gaixie-soak-"))
    (folder / "store").mkdir()
    print(f"seed {args.seed}, {folder}")
    soak = Soak(folder, draw)
    try:
        started = time.monotonic()
        first = soak.start(str(folder / "out"), "undisturbed")
        if soak.ended(first, "undisturbed") != 0:
            print("".join(first.lines[-5:]))
            return 1
        soak.seconds = time.monotonic() - started
        expected = read_run(str(folder / "out/runs/undisturbed")).total.model_dump()
        end, number = time.monotonic() + 60 * args.minutes, 0
        while time.monotonic() < end:
            number += 1
            name = draw.choice(names)
            remote = name == "server" or (name in FAULTS and draw.random() < 0.3)
            root = f"s3a://{ObjectStore.BUCKET}/soak" if remote else str(folder / "out")
            method = {"damaged": damaged, "full": full}.get(name, disturbed)
            before = len(soak.failures)
            method(soak, name, root, f"run-{number}", expected)
            good = "good" if len(soak.failures) == before else "; ".join(soak.failures[before:])
            print(f"run-{number}, {name}, {'S3' if remote else 'local'}: {good}", flush=True)
    finally:
        soak.store.kill()
        shutil.rmtree(folder, ignore_errors=True)
    faults = ", ".join(f"{count} {name}" for name, count in sorted(soak.tally.items()))
    print(f"{number} runs; {faults}; {len(soak.failures)} failures")
    for failure in soak.failures:
        print(f"  {failure}")
    print(f"looked at: {soak.published} published runs with SHA-256 of {soak.files} files")
    print(
        f"most lines of a start that failed: {soak.most_lines}; each start's processes had to be gone"
    )
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
