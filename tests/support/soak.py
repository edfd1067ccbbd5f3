"""Breaks commands at random moments, and checks what they leave.

  python tests/support/soak.py --minutes 30 --seed 7     runs of score, broken and resumed
  python tests/support/soak.py --rounds 200 --seed 7     every command, interrupted and terminated

With --minutes, runs of jobs/score_corpus.py, local or on the script's own S3 server, are broken up
to three times each and started again with --resume until they are published. Some run on a cluster
that loses a worker while executors come and go (dynamic allocation). Afterwards the rows must be
those of an undisturbed run, the files must have the manifest's SHA-256, no process may be left, and
each failed start must have written at most ten lines, of which the last gives the reason.

With --rounds, Ctrl-C or SIGTERM comes at a random moment between the import of the package and the
end. Only the last line may say so, without a trace; the exit code must be 130 or 143, and no
process may be left. A command that ends before its signal is tried again. Exit code 1 if any check
failed.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from servers import SPARK_HOME, Cluster, ObjectStore  # noqa: E402

from gaixie.udfs.storage import storage  # noqa: E402
from gaixie.udfs.storage.manifest import read_run  # noqa: E402
from gaixie.udfs.storage.published_files import run_faults  # noqa: E402

ROWS, FILES, MAX_LINES, PATIENCE = 60_000, 8, 10, 300
IDLE, TICKS = 10, 0.3
"""A command is idle, as a service is, if it uses at most TICKS of a processor in IDLE seconds."""


def write_pairs(folder: Path) -> None:
    """Writes pairs of joined examples in several files; some pairs occur twice."""
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
    """Returns the processes of a group that are still there."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, ProcessLookupError):
            pass
    return found


@dataclass
class Servers:
    """The servers that a run uses and a fault may break."""

    store: ObjectStore
    cluster: Cluster


def kill_group(how: signal.Signals) -> Callable[[subprocess.Popen, Servers], None]:
    return lambda process, servers: os.killpg(process.pid, how)


def kill_one(name: str) -> Callable[[subprocess.Popen, Servers], None]:
    def fault(process: subprocess.Popen, servers: Servers) -> None:
        for one in [one for one in processes_of(process.pid) if name in one.name()][-1:]:
            one.kill()

    return fault


def restart_server(process: subprocess.Popen, servers: Servers) -> None:
    servers.store.kill()
    time.sleep(2)
    servers.store.start()


def lose_machine(process: subprocess.Popen, servers: Servers) -> None:
    """Kills a worker with its executors and their shuffle files, and adds another."""
    servers.cluster.kill_worker()
    servers.cluster.add_worker()


FAULTS = {
    "sigint": kill_group(signal.SIGINT),
    "sigterm": kill_group(signal.SIGTERM),
    "sigkill": kill_group(signal.SIGKILL),
    "driver": lambda process, servers: process.kill(),
    "java": kill_one("java"),
    "worker": kill_one("python"),
    "server": restart_server,
    "machine": lose_machine,
}
COME_AND_GO = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""Executors leave after a second without work and return for the next stage."""


def attempt(
    root: str, run_id: str, pairs: Path, *options: str, cluster: Cluster | None = None
) -> subprocess.Popen:
    line: list[object] = [sys.executable]
    if cluster:
        line = [SPARK_HOME / "bin/spark-submit", "--master", cluster.url]
        line += [word for pair in COME_AND_GO.items() for word in ("--conf", "=".join(pair))]
    line += [ROOT / "jobs/score_corpus.py", "--input", pairs, "--unit-mb", "0.3"]
    line += ["--origin-column", "origin", "--output", root, "--run-id", run_id, *options]
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115
    process = subprocess.Popen(
        list(map(str, line)), stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
    )
    process.log = log  # read after it has ended
    return process


def faults_of_processes(process: subprocess.Popen) -> list[str]:
    """Waits for a process and its children to end, and kills the rest. Returns the faults."""
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return [f"still at work after {PATIENCE} s"]
    deadline = time.monotonic() + 30
    while (left := processes_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.2)
    faults = [f"process {one.pid} ({one.name()}) is left" for one in left]
    for one in left:
        one.kill()
    return faults


def faults_of_end(process: subprocess.Popen) -> list[str]:
    """Waits for the end of an attempt. Returns the faults."""
    faults, code = faults_of_processes(process), process.returncode
    process.log.seek(0)
    progress = ("scoring", "finding", "writing")
    said = [line for line in process.log if not line.startswith(progress)]
    if len(said) > MAX_LINES:
        faults.append(f"{len(said)} lines, such as {said[len(said) // 2]!r}")
    if code > 0 and not (said and said[-1].startswith("score_corpus: ")):
        faults.append(f"exit {code}, but its last line is {said[-1:]!r}")
    return faults


def disturb(
    name: str, root: str, run_id: str, pairs: Path, expected: dict, draw, servers: Servers
) -> list[str]:
    """Breaks a run at up to three random moments. Returns the faults of what is left."""
    faults: list[str] = []
    cluster = servers.cluster if name == "machine" else None
    for number in range(6):
        process = attempt(root, run_id, pairs, *(("--resume",) if number else ()), cluster=cluster)
        if number < 3:
            time.sleep(draw.uniform(0.2, 40))
            if process.poll() is None:
                FAULTS[name](process, servers)
        faults += faults_of_end(process)
        if process.returncode == 0:
            manifest = read_run(f"{root}/runs/{run_id}")
            if manifest.total.model_dump() != expected:
                faults.append(f"rows {manifest.total}, undisturbed {expected}")
            return faults + run_faults(f"{root}/runs/{run_id}", manifest, storage.sha256)
    return [*faults, "not published in six starts"]


EXAMPLES = ROOT / "examples"
COMMANDS = """
paraphrase {e}/pairs.jsonl --column source --output {o}.tsv
score --input {e}/pairs.jsonl --origin-column origin --output {o}
score --input {e}/pairs.jsonl --origin-column origin --output {o} --dry-run
show {w}/out --run-id demo --pairs 200
show {w}/out --run-id demo --serve --port 0
serve --port 0
serve --port 0 --workers 2
serve --dry-run
check {e}/pairs.jsonl --min-score 0.4
pairs versions --input {w}/versions.parquet --foreign-column en --text-column zh --output {o}
release --root {o} --runs demo --version 1.0 --license MIT
release --root {w}/out --runs demo --version 9.0 --license MIT --dry-run
vocabulary --input {e}/pairs.jsonl --column source --output {o}
tokenize show {w}/tiny/tokenizer 他2024年3月读完了《三国演义》。
tokenize report {w}/tiny/tokenizer {e}/pairs.jsonl --column source
train --config {e}/demo-train.yaml --set data.uri={w}/out/runs/demo --set tokenizer={w}/tiny/tokenizer --set output={o}
paraphrase --model {w}/tiny/run/model {e}/pairs.jsonl --column source
evaluate {e}/pairs.jsonl --system human=paraphrase --model tiny={w}/tiny/run/model --output {o}
card {w}/tiny/run/model
metrics {w}/pairs.tsv --metrics spscore,bleu,self-bleu,pinc
compare --data {d} --output {o} --sets STS-B --limit 300
annotate draw {w}/out/runs/demo --pairs 50 --output {o}
fit --input {w}/ratings.csv --output {o} --tier core
identify --data {d} --encoder {w}/tiny/run/model --output {o}
simplifications --data {d}/mcts --output {o}
generators --reviews {d}/hotel_reviews.csv --limit 400 --vectors {w}/vectors --output {o}
""".strip().splitlines()
"""Every command of gaixie. e: examples/; w: what prepare made; d: public data; o: a new folder."""


def prepare(work: Path) -> None:
    """Makes what the commands read: two runs, a tiny model, and tables."""
    table = pd.read_json(EXAMPLES / "pairs.jsonl", lines=True)
    table[[*SIDES]].to_csv(work / "pairs.tsv", sep="\t", index=False)
    versions = {"en": table["source"], "zh": table[[*SIDES]].to_numpy().tolist()}
    pd.DataFrame(versions).to_parquet(work / "versions.parquet")
    draw = np.random.default_rng(1)
    criteria = ["structure", "synonyms", "meaning", "fluency", "overall"]
    marks = pd.DataFrame(draw.integers(0, 6, (len(table), 5)), columns=criteria)
    table[[*SIDES, "origin"]].join(marks).to_csv(work / "ratings.csv", index=False)
    items = {"item": table.index // 4, "system": table.index % 4 // 2, "annotator": table.index % 2}
    marks[["fluency"]].assign(**items).to_csv(work / "likert.csv", index=False)
    for run_id in ("demo", "again"):
        line = f"score --input {EXAMPLES}/pairs.jsonl --origin-column origin --output {work}/out"
        subprocess.run([*GAIXIE, *line.split(), "--run-id", run_id], check=True, cwd=work)
    tiny = [EXAMPLES / "train_tiny.py", work / "out/runs/demo", work / "tiny"]
    subprocess.run([sys.executable, *tiny], check=True, cwd=work)


GAIXIE = [sys.executable, "-m", "gaixie.jobs.cli"]
LAST = re.compile(r"([\w.-]+: )?(interrupted|terminated|stopped)\b.*\n")
TRACE = re.compile(r"Traceback|Exception ignored|  File \"|\w+(Error|Exception|Interrupt)\b", re.I)


def has_sigterm(process: subprocess.Popen, how: str) -> bool:
    """Says whether a process catches (SigCgt) or ignores (SigIgn) SIGTERM.

    It catches SIGTERM once the package has set its handler, and ignores it once Python cleans up at
    its exit.
    """
    status = Path(f"/proc/{process.pid}/status").read_text()
    return bool(int(re.search(rf"{how}:\s*(\w+)", status)[1], 16) >> signal.SIGTERM - 1 & 1)


def wait_for_work(process: subprocess.Popen, seconds: float) -> bool:
    """Waits until a command has used ``seconds`` of a processor or is idle; False if it ends first.

    It measures processor time, so that a moment is the same on a busy host.
    """
    spent, changed = 0.0, time.monotonic()
    while process.poll() is None and time.monotonic() < changed + IDLE:
        now = 0.0
        for one in processes_of(process.pid):
            with suppress(psutil.Error):
                now += sum(one.cpu_times()[:2])
        if now >= seconds:
            return True
        if now > spent + TICKS:
            spent, changed = now, time.monotonic()
        time.sleep(0.05)
    return process.poll() is None


def interrupt(words: list[str], seconds: float, how: signal.Signals) -> tuple[bool, list[str]]:
    """Starts a command and sends it a signal. Returns whether it was still running, and faults."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*GAIXIE, *words], stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )
        while process.poll() is None and not has_sigterm(process, "SigCgt"):
            time.sleep(0.002)
        if not wait_for_work(process, seconds) or has_sigterm(process, "SigIgn"):
            process.wait(PATIENCE)
            return False, []
        os.killpg(process.pid, how) if how == signal.SIGINT else process.send_signal(how)
        told = time.monotonic()
        faults = faults_of_processes(process)
        said.seek(0)
        lines = said.readlines()
    serves = words[0] == "serve" or "--serve" in words  # a service ends well when it is told to
    if not serves and 0 <= process.returncode < 128 and time.monotonic() < told + 3:
        return False, faults  # it had already finished
    if process.returncode != 128 + how and not (serves and process.returncode == 0):
        faults.append(f"exit code {process.returncode}")
    ends = [line for line in lines if LAST.fullmatch(line)]
    if process.returncode and (len(ends) != 1 or ends != lines[-1:]):
        faults.append(f"its last lines are {lines[-3:]}")
    if traces := [line for line in lines if TRACE.match(line)]:
        faults.append(f"{len(lines)} lines, such as {traces[0]!r}")
    return True, faults


def interrupt_commands(work: Path, data: Path, rounds: int, draw: random.Random) -> int:
    """Interrupts commands ``rounds`` times; returns how many ended badly."""
    if not (work / "tiny/run/model").exists():
        prepare(work)
    lasts, failed, number = dict.fromkeys(COMMANDS, 10.0), 0, 0
    while number < rounds:
        command, how = draw.choice(COMMANDS), draw.choice([signal.SIGINT, signal.SIGTERM])
        output = Path(tempfile.mkdtemp(dir=work)) / "o"
        if command.startswith("release --root {o}"):
            shutil.copytree(work / "out", output)
        words = command.format(e=EXAMPLES, w=work, d=data, o=output).split()
        seconds = draw.uniform(0, draw.choice([1, lasts[command]]))
        sent, faults = interrupt(words, seconds, how)
        shutil.rmtree(output.parent)
        if not sent:
            lasts[command] = min(lasts[command], seconds)
            continue
        number, failed = number + 1, failed + bool(faults)
        told = f"{' '.join(words[:2])}, {how.name} after {seconds:.2f} s of work"
        print(f"{number}: {told}: {'; '.join(faults) or 'good'}", flush=True)
    print(f"{number} interrupts, {failed} failed")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=[*FAULTS])
    parser.add_argument("--rounds", type=int, help="interrupts of any command")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    data = ROOT.parent / "shared/data"
    parser.add_argument("--work", type=Path, help="keeps what the commands read, for other rounds")
    parser.add_argument("--data", type=Path, default=data, help="of compare, identify and others")
    args = parser.parse_args()
    draw, failed = random.Random(args.seed), 0
    # A shell makes background processes ignore SIGINT, and the commands would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory(prefix="gaixie-soak-") as work:
        folder = Path(work)
        if args.rounds:
            made = args.work or folder
            made.mkdir(exist_ok=True)
            return int(interrupt_commands(made, args.data, args.rounds, draw) > 0)
        (folder / "store").mkdir()
        write_pairs(folder / "pairs")
        store = ObjectStore(folder / "store")
        os.environ.update(store.environment())
        os.environ["PYSPARK_PYTHON"] = sys.executable
        (folder / "cluster").mkdir()
        cluster = Cluster(folder / "cluster")
        try:
            for _ in range(2):
                cluster.add_worker()
            first = attempt(f"{folder}/out", "undisturbed", folder / "pairs")
            if first.wait():
                return 1
            expected = read_run(f"{folder}/out/runs/undisturbed").total.model_dump()
            end, number = time.monotonic() + 60 * args.minutes, 0
            while time.monotonic() < end:
                number += 1
                name = draw.choice(args.faults)
                remote = name == "server" or draw.random() < 0.3
                root = f"s3a://{ObjectStore.BUCKET}/soak" if remote else f"{folder}/out"
                given = name, root, f"run-{number}", folder / "pairs", expected, draw
                faults = disturb(*given, Servers(store, cluster))
                failed += bool(faults)
                print(f"run-{number}, {name}, {root}: {'; '.join(faults) or 'good'}", flush=True)
        finally:
            cluster.stop()
            store.kill()
    print(f"{number} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
