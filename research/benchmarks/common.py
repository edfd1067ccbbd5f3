"""Shared by the benchmarks: a timer, printed figures, real sentences, a watched process."""

from __future__ import annotations

import subprocess
import sys
import time
import timeit
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
TRANSLATIONS = "wmt_en_zh_translations.parquet"

sys.path.append(str(ROOT / "tests/support"))  # for its servers and manifests


def best_rate(rows: int, work: Callable[[], Any], repeats: int = 5) -> float:
    """Returns rows per second of the fastest repeat, after a first call that compiles."""
    work()
    return rows / min(timeit.repeat(work, number=1, repeat=repeats))


def show(figures: Mapping[str, Any], part: str = "") -> None:
    """Prints the numbers of nested figures, one per line."""
    for name, value in figures.items():
        whole = f"{part}.{name}" if part else name
        if isinstance(value, Mapping):
            show(value, whole)
        elif not isinstance(value, str):
            digits = 0 if isinstance(value, int) or value >= 1000 else 3
            print(f"{whole:<50}{value:>16,.{digits}f}")


def translations(data: Path) -> list[list[str]]:
    """Returns, for each English sentence, the distinct translations of all systems, in order."""
    table = pq.read_table(data / TRANSLATIONS, columns=["translations_zh"])
    return [sorted({s for s in row if s and s.strip()}) for row in table[0].to_pylist()]


def watch(command: Sequence[str], **given: Any) -> dict[str, Any]:
    """Runs a command to its end and watches its processes from outside.

    Returns wall_s, core_s (of all cores) and peak_rss_mb (of the largest process), the last two by
    kind of process, java or python. given: arguments of ``subprocess.Popen``. Raises SystemExit if
    the command fails.
    """
    started = time.perf_counter()
    job = psutil.Popen([*command], cwd=ROOT, **({"stdout": subprocess.DEVNULL} | given))
    spent: dict[tuple[int, str], float] = {}
    peaks: dict[str, float] = defaultdict(float)
    while job.poll() is None:
        try:
            for process in [job, *job.children(recursive=True)]:
                kind = process.name()[:6].rstrip("0123456789.")
                if kind in ("java", "python"):
                    spent[process.pid, kind] = sum(process.cpu_times()[:2])
                    peaks[kind] = max(peaks[kind], process.memory_info().rss / 2**20)
        except psutil.Error:
            pass  # the process ended meanwhile
        time.sleep(0.2)
    if job.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {job.returncode}")
    core_s: dict[str, float] = defaultdict(float)
    for (_, kind), seconds in spent.items():
        core_s[kind] += seconds
    wall_s = time.perf_counter() - started
    return {"wall_s": wall_s, "core_s": dict(core_s), "peak_rss_mb": dict(peaks)}
