"""Reports a scoring run: a summary on the console, report.html and report.png."""

from __future__ import annotations

import base64
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as ConsoleTable

from gaixie.jobs.scoring.plots import draw_run
from gaixie.udfs.features import FEATURES
from gaixie.udfs.meaning.explain import in_chinese as reason_in_chinese
from gaixie.udfs.reports import render
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.spscore.stages import ORIGINS, STAGES
from gaixie.udfs.storage.manifest import NAME, RunManifest
from gaixie.udfs.text.validate import MALFORMED

if TYPE_CHECKING:
    from gaixie.jobs.corpus.storage import Storage
    from gaixie.jobs.scoring.sample import Sample

TEMPLATE = Path(__file__).with_name("report.html.j2")
CHINESE = Path(__file__).with_name("report_zh.yaml")

EXPLANATIONS = {
    "null": "a sentence is null",
    "undecodable": "a sentence is not UTF-8, or holds U+FFFD from an earlier failed decoding",
    "empty": "a sentence is empty after whitespace is stripped",
    "too_short": "a sentence has fewer characters than min_characters",
    "too_long": "a sentence has more characters than max_characters",
    "no_han": "a sentence has no Han character",
    "identical": "both sentences are the same after normalisation",
    MALFORMED: "the line could not be split into the input's columns",
}
"""Explains every reason of gaixie.udfs.text.validate in one line."""

NAMES = [f"stage {stage}" for stage in STAGES]


class Table(NamedTuple):
    """A table of texts; the first cell of each row is its name."""

    head: list[str]
    rows: list[list[str]]
    total: list[str] | None = None


@dataclass(frozen=True)
class Report:
    """A run's manifest, and what the report shows beside it."""

    manifest: RunManifest
    folder: str
    bins: Mapping[str, Mapping[int, int]]
    """Scored pairs by origin and gaixie.udfs.spscore.stages.score_bin."""
    sample: Sample
    """A sample whose examples have reasons for low judgements."""

    @property
    def origins(self) -> list[str]:
        """Returns the origins that have rows."""
        rows = self.manifest.rows
        return [origin for origin in ORIGINS if origin in rows and rows[origin].read]

    @property
    def closes(self) -> bool:
        """Returns whether read = scored + quarantined + duplicates for every origin."""
        return all(
            rows.read == rows.scored + rows.quarantined + rows.duplicates
            for rows in self.manifest.rows.values()
        )

    @property
    def total_seconds(self) -> float:
        return sum(self.manifest.seconds.values())

    @property
    def pairs_per_s(self) -> float:
        return self.manifest.total.read / self.total_seconds if self.total_seconds else 0.0

    def reasons(self) -> list[tuple[str, int]]:
        """Returns quarantined rows by reason, largest count first."""
        total: Counter[str] = Counter()
        for counts in self.manifest.quarantine.values():
            total.update(counts)
        return total.most_common()

    # Tables of the console and the page

    def counts(self) -> Table:
        rows = []
        for origin in self.origins:
            of = self.manifest.rows[origin]
            rows.append([of.read, *self._stages_of(origin), of.quarantined, of.duplicates])
        return self._with_total(["origin", "read", *NAMES, "quarantined", "duplicates"], rows)

    def accounts(self) -> Table:
        rows = [[count for _, count in self.manifest.rows[origin]] for origin in self.origins]
        return self._with_total(["origin", "read", "scored", "quarantined", "duplicates"], rows)

    def _with_total(self, head: list[str], counts: list[list[int]]) -> Table:
        """counts: one list for each origin."""
        sums = [sum(column) for column in zip(*counts, strict=True)] or [0] * (len(head) - 1)
        named = zip([*self.origins, "total"], [*counts, sums], strict=True)
        *rows, total = [[name, *(f"{number:,}" for number in row)] for name, row in named]
        return Table(head, rows, total)

    def set_aside(self) -> Table:
        """Lists the inputs with unreadable files."""
        rows = []
        for source in self.manifest.inputs:
            if corrupt := len(source.corrupt_files):
                known = [*source.corrupt_rows.values()]
                about = f"{sum(known):,}" if known else "-"
                rows.append([source.path, f"{corrupt}", about, f"{corrupt - len(known)}"])
        head = ["set aside from", "files", "approximate rows", "files with unknown rows"]
        return Table(head, rows)

    def stages(self) -> Table:
        rows = []
        for origin in self.origins:
            counts = self._stages_of(origin)
            pairs = sum(counts)
            cells = [f"{n:,} ({n / pairs:.1%})" if pairs else f"{n:,}" for n in counts]
            thresholds = self.manifest.thresholds.get(origin, [])
            begin = " / ".join("-" if point is None else f"{point:g}" for point in thresholds)
            least = f"{self.manifest.min_meaning.get(origin, 0):g}"
            rows.append([origin, *cells, begin, least])
        head = ["origin", *NAMES, "stages 1 / 2 / 3 begin at", "minimum meaning in 2 and 3"]
        return Table(head, rows)

    def _stages_of(self, origin: str) -> list[int]:
        """Returns the rows in each of STAGES."""
        counts = self.manifest.stages.get(origin, {})
        return [counts.get(stage, 0) for stage in STAGES]

    def quantiles(self, name: str = "origin") -> Table:
        """Returns a row for each origin: its score at given shares of its pairs."""
        quantiles = self.manifest.quantiles
        shares = sorted({share for points in quantiles.values() for share in points})
        rows = [
            [origin, *(_score(quantiles.get(origin, {}).get(share)) for share in shares)]
            for origin in self.origins
        ]
        return Table([name, *(f"{100 * share:g} %" for share in shares)], rows)

    def quarantine(self) -> Table:
        rows = [[name, f"{n:,}", EXPLANATIONS.get(name, "")] for name, n in self.reasons()]
        return Table(["reason", "rows", "what it means"], rows)

    def drift(self) -> Table:
        """Lists what was compared with an earlier run; marks shifts."""
        indices = self.manifest.drift.indices if self.manifest.drift else {}
        rows = [
            [
                origin,
                name,
                f"{index.psi:.3f}",
                f"{index.limit:.3f}",
                "×" * (index.psi > index.limit),
            ]
            for origin, of in indices.items()
            for name, index in of.items()
        ]
        return Table(["origin", "compared", "index", "limit", "shifted"], rows)

    def times(self) -> Table:
        rows = [[step, f"{seconds:,.1f}"] for step, seconds in self.manifest.seconds.items()]
        return Table(["step", "seconds"], rows, ["total", f"{self.total_seconds:,.1f}"])

    def examples(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Yields (title, pairs from the lowest score up) for each stage that has examples."""
        for stage, title in zip(STAGES, NAMES, strict=True):
            pairs = [pair for pair in self.sample.examples if pair["stage"] == stage]
            if pairs:
                yield title, [_example(pair) for pair in sorted(pairs, key=itemgetter("spscore"))]


def _example(pair: dict[str, Any]) -> dict[str, Any]:
    """Returns the pair with its numbers as texts and tables."""
    features = [_score(pair[name], digits=0 if name == "sl" else 3) for name in FEATURES]
    return pair | {
        "score": _score(pair["spscore"]),
        "width": f"{pair['spscore']:.1%}",
        "judgements": Table([*JUDGEMENTS], [[_score(pair[name]) for name in JUDGEMENTS]]),
        "features": Table([*FEATURES], [features]),
    }


def _score(number: float | None, digits: int = 3) -> str:
    return "-" if number is None or number != number else f"{number:,.{digits}f}"


def print_summary(report: Report, console: Console | None = None) -> None:
    """Prints the run's counts, quantiles, reasons, signature, time and paths; to stdout by default.

    Numbers and paths are never shortened, however narrow the console is.
    """
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else 110)
    manifest = report.manifest
    reasons = Table(["quarantined", "rows"], [[name, f"{n:,}"] for name, n in report.reasons()])
    tables = [report.counts(), report.set_aside(), report.quantiles("score at"), reasons]
    for content in tables:
        if content.rows and len(content.head) > 1:
            _print_table(console, content)
    steps = ", ".join(f"{step} {seconds:,.1f}" for step, seconds in manifest.seconds.items())
    lines = [
        f"signature: {manifest.signature}",
        f"time: {report.total_seconds:,.1f} s ({steps}), {report.pairs_per_s:,.0f} pairs/s",
        f"manifest: {report.folder}/{NAME}",
        f"report: {report.folder}/report.html",
    ]
    if known := sum(manifest.known_pairs.values()):
        lines.append(f"{known:,} of the duplicates are in earlier runs")
    if manifest.rescored:
        lines.append(f"scored again: the pairs of {', '.join(manifest.rescored)}")
    if drift := manifest.drift:
        lines.append(f"drift against {drift.against}: {', '.join(drift.shifted) or 'none'}")
    if manifest.set_aside:
        lines.append(f"set aside: {manifest.set_aside}; the manifest names them")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_table(console: Console, content: Table) -> None:
    total = content.total or [""] * len(content.head)
    table = ConsoleTable(
        box=box.SIMPLE, show_edge=False, pad_edge=False, show_footer=content.total is not None
    )
    for number, (name, footer) in enumerate(zip(content.head, total, strict=True)):
        table.add_column(name, footer, justify="right" if number else "left", no_wrap=True)
    for row in content.rows:
        table.add_row(*row)
    table.width = Measurement.get(console, console.options.update_width(1000), table).maximum
    console.print(table, crop=False, highlight=False)
    console.print()


def draw_report(report: Report) -> bytes:
    """Returns the report's plots as PNG."""
    bins = {origin: report.bins.get(origin, {}) for origin in report.origins}
    return draw_run(bins, report.manifest.thresholds, report.sample)


def write_report(report: Report, png: bytes, storage: Storage, folder: str) -> None:
    """Writes folder/report.png and folder/report.html, which embeds the picture."""
    picture = base64.b64encode(png).decode()
    page = render(TEMPLATE, report=report, manifest=report.manifest, png=picture, chinese=chinese)
    storage.write(f"{folder}/report.png", png)
    storage.write(f"{folder}/report.html", page)


@cache
def _words() -> dict[str, str]:
    return dict(yaml.safe_load(CHINESE.read_text("utf-8")))


def chinese(text: str) -> str:
    """Returns a table's word or a reason in Chinese; unchanged if it has no translation."""
    return _words().get(text) or reason_in_chinese(text)
