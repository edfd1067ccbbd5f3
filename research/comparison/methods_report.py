"""The report of a comparison of methods."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gaixie.research.comparison.methods import Comparison
from gaixie.udfs.metrics.bootstrap import Estimate
from gaixie.udfs.reports import Section
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage.manifest import PairsManifest

WHAT = {
    "source": "sources that all methods have pairs of",
    "group": "groups that all methods have pairs of",
    "all": "sources of any method: each method on its own, so differences may be those of sources",
}


def sections(found: Comparison) -> list[Section]:
    drawn = "" if found.drawn == found.units else f"; {found.drawn:,} of them drawn"
    methods = found.methods
    kept = []
    for method in methods:
        counts = ", ".join(method.runs), f"{method.units:,}", f"{method.pairs:,}"
        shares = map(_share, (*method.kept.values(), method.quarantined))
        kept.append((method.name, *counts, *shares))
    stages = (f"stage {stage} and up" for stage in methods[0].kept)
    note = f"{found.units:,} {WHAT[found.by]}{drawn}. 95 % intervals by bootstrap over them."
    columns = ("method", "runs", "sources", "pairs", *stages, "quarantine")
    means = tuple((m.name, *(_mean(m.means[output]) for output in OUTPUTS)) for m in methods)
    apart = tuple(
        (f"{row['first']} – {row['second']}", _mean(row["spscore"], "+"), _share(row["kept"], "+"))
        for row in found.differences
    )
    parts = [
        Section("Pairs that are kept", columns, tuple(kept), (note,)),
        Section("Mean judgements", ("method", *OUTPUTS), means),
        Section("Differences", ("methods", "spscore", "stage 1 and up"), apart),
    ]
    reasons = sorted({reason for method in methods for reason in method.reasons})
    if reasons:
        rows = tuple((r, *(f"{method.reasons.get(r, 0):,}" for method in methods)) for r in reasons)
        parts.append(Section("Quarantine", ("reason", *(m.name for m in methods)), rows))
    if found.builds:
        parts.append(_costs(found.builds))
    for count, pairs in enumerate(found.examples, 1):
        lines = tuple(_line(row) for row in pairs.to_dict("records"))
        columns = ("method", "stage", *OUTPUTS, "paraphrase")
        parts.append(Section(f"Example {count}: {pairs.iloc[0]['source']}", columns, lines))
    parts.append(Section("Signature", notes=(found.signature,)))
    return parts


def _line(row: dict[Any, Any]) -> tuple[str, ...]:
    outputs = [f"{row[name]:.2f}" for name in OUTPUTS]
    return (row["name"], str(row["stage"]), *outputs, row["paraphrase"])


def _costs(builds: dict[str, PairsManifest]) -> Section:
    """What the pairs took, from the manifests of their folders."""
    rows = []
    for folder, built in builds.items():
        thousands = max(built.pairs, 1) / 1_000
        cost = built.figures.get("cost")
        tokens = [built.figures.get(f"tokens_{side}") for side in ("in", "out")]
        counts = (f"{count:,}" for count in (built.read, built.used, built.pairs))
        times = f"{built.seconds:,.0f}", f"{built.seconds / thousands:,.2f}"
        spent = "–" if None in tokens else f"{sum(t or 0 for t in tokens) / thousands:,.0f}"
        paid = "–" if cost is None else f"{cost / thousands:,.4g}"
        rows.append((folder, built.method, *counts, *times, spent, paid))
    columns = (
        *("folder", "method", "read", "in pairs", "pairs", "seconds"),
        *("seconds a thousand", "tokens a thousand", "cost a thousand"),
    )
    notes = ("Wall time on the machine that made them.",)
    return Section("Time and cost", columns, tuple(rows), notes)


def _share(estimate: Estimate, sign: str = "") -> str:
    value, low, high = (f"{100 * x:{sign}.1f}" for x in estimate)
    return f"{value} % ({low} to {high})"


def _mean(estimate: Estimate, sign: str = "") -> str:
    if estimate.score != estimate.score:
        return "–"
    value, low, high = (f"{x:{sign}.3f}" for x in estimate)
    return f"{value} ({low} to {high})"


def figures(found: Comparison) -> dict[str, Any]:
    """The same as numbers."""
    estimates = ("spscore", "kept")
    keys = {"method", "pairs", "seconds", "figures"}
    return {
        **{key: getattr(found, key) for key in ("by", "units", "drawn", "signature")},
        "methods": [asdict(method) for method in found.methods],
        "differences": [
            row | {name: row[name]._asdict() for name in estimates} for row in found.differences
        ],
        "builds": {
            folder: built.model_dump(include=keys) for folder, built in found.builds.items()
        },
    }
