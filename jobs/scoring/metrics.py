"""Formats a run's figures for Prometheus, for a file beside the run or for a Pushgateway."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from gaixie.udfs.command_line import say
from gaixie.udfs.storage.manifest import RunManifest

FILE = "metrics.prom"
JOB = "gaixie_score"
PATIENCE = 10
"""Timeout of a Pushgateway, in seconds."""

HELP = {
    "info": "Run, signature and version",
    "published_timestamp_seconds": "Time of publication",
    "pairs_per_second": "Rows read per second, over all steps",
    "rows": "Rows read, by outcome",
    "stage_pairs": "Scored pairs by stage",
    "quarantine_rows": "Rows that could not be scored, by reason",
    "step_seconds": "Wall time of a step",
    "drift": "Population stability index against an earlier run",
}


def exposition(manifest: RunManifest) -> str:
    """Returns the text; all metrics are gauges, named gaixie_run_ and a key of HELP."""
    lines = []
    for name, samples in groupby(_samples(manifest), itemgetter(0)):
        lines += [f"# HELP gaixie_run_{name} {HELP[name]}", f"# TYPE gaixie_run_{name} gauge"]
        for _, labels, value in samples:
            inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            lines.append(f"gaixie_run_{name}{{{inner}}} {value:.15g}")
    return "\n".join(lines) + "\n"


def push(url: str, text: str) -> None:
    """Sends the text to a Pushgateway; only reports a failure, since the run is already
    published."""
    address = f"{url.rstrip('/')}/metrics/job/{JOB}"
    headers = {"Content-Type": "text/plain; version=0.0.4"}
    try:
        request = urllib.request.Request(address, text.encode(), headers, method="PUT")
        urllib.request.urlopen(request, timeout=PATIENCE).close()
    except (OSError, ValueError) as error:
        say(f"--push-metrics {url}: the run is published, but not its metrics: {error}")


def _samples(manifest: RunManifest) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yields (key of HELP, labels, value), grouped by key."""
    names = {"run": manifest.run_id, "signature": manifest.signature, "version": manifest.gaixie}
    yield "info", names, 1
    yield "published_timestamp_seconds", {}, datetime.fromisoformat(manifest.created).timestamp()
    yield "pairs_per_second", {}, manifest.total.read / (sum(manifest.seconds.values()) or 1)
    for origin, rows in manifest.rows.items():
        for outcome in ("scored", "quarantined", "duplicates"):
            yield "rows", {"origin": origin, "outcome": outcome}, getattr(rows, outcome)
    for origin, stages in manifest.stages.items():
        for stage, pairs in stages.items():
            yield "stage_pairs", {"origin": origin, "stage": str(stage)}, pairs
    for origin, reasons in manifest.quarantine.items():
        for reason, count in reasons.items():
            yield "quarantine_rows", {"origin": origin, "reason": reason}, count
    for step, seconds in manifest.seconds.items():
        yield "step_seconds", {"step": step}, seconds
    for origin, indices in manifest.drift.indices.items() if manifest.drift else ():
        for name, index in indices.items():
            yield "drift", {"origin": origin, "of": name}, index.psi


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
