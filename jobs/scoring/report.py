"""What a scoring run came to: a summary on the console, report.html and report.png."""

from __future__ import annotations

import base64
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from string import Template
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from gaixie.jobs.scoring.plots import draw_run
from gaixie.udfs.features import FEATURES
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.stages import ORIGINS, STAGES
from gaixie.udfs.validate import MALFORMED

if TYPE_CHECKING:
    from gaixie.jobs.scoring.sample import Sample
    from gaixie.jobs.spark.storage import Storage

EXPLANATIONS = {
    "null": "a sentence is null",
    "undecodable": "a sentence is not UTF-8, or holds U+FFFD, left by an earlier failed decoding",
    "empty": "a sentence is empty once whitespace is stripped",
    "too_short": "a sentence has fewer characters than min_characters",
    "too_long": "a sentence has more characters than max_characters",
    "no_han": "a sentence has no Han character",
    "identical": "both sentences are the same once normalised",
    MALFORMED: "the line could not be split into the input's columns",
}
"""One line for every reason of gaixie.udfs.validate."""

QUARTERS = (
    "The quarter of the pairs with the lowest scores",
    "The second quarter",
    "The third quarter",
    "The quarter with the highest scores",
)


@dataclass(frozen=True)
class Summary:
    """What a run came to: all that the summary table, the report and the manifest say of it."""

    run_id: str
    folder: str
    signature: str
    read: dict[str, int]  # rows by origin
    scored: dict[str, dict[int, int]]  # rows by origin and stage
    quarantined: dict[str, dict[str, int]]  # rows by origin and reason
    duplicates: dict[str, int]  # rows by origin
    bins: dict[str, dict[int, int]]  # scored pairs by origin and gaixie.udfs.stages.score_bin
    cuts: dict[str, list[float]]  # where stages 1, 2 and 3 begin, by origin; may be NaN
    min_meaning: dict[str, float]  # least meaning in stages 2 and 3, by origin
    quantiles: dict[str, dict[float, float]]  # score by origin and share of the pairs below it
    sample: Sample  # its examples with reasons: why a judgement is low
    seconds: dict[str, float]  # wall time by step, in order
    pairs_per_s: float

    @property
    def origins(self) -> list[str]:
        """Origins of which rows were read."""
        return [origin for origin in ORIGINS if self.read.get(origin)]

    def stages_of(self, origin: str) -> list[int]:
        """Rows in each of STAGES."""
        counts = self.scored.get(origin, {})
        return [counts.get(stage, 0) for stage in STAGES]

    def accounts(self, origin: str) -> tuple[int, int, int, int]:
        """Rows (read, scored, quarantined, duplicates); the first is the sum of the others."""
        return (
            self.read.get(origin, 0),
            sum(self.stages_of(origin)),
            sum(self.quarantined.get(origin, {}).values()),
            self.duplicates.get(origin, 0),
        )

    def reasons(self) -> list[tuple[str, int]]:
        """Quarantined rows by reason, most first."""
        return sum(map(Counter, self.quarantined.values()), Counter()).most_common()

    def quantile_table(self) -> tuple[list[str], list[list[str]]]:
        """(shares, rows): a row is an origin and its score at each share, as text."""
        shares = sorted({share for points in self.quantiles.values() for share in points})
        rows = []
        for origin in self.origins:
            points = self.quantiles.get(origin, {})
            rows.append([origin, *[_score(points.get(share)) for share in shares]])
        return [f"{100 * share:g} %" for share in shares], rows


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Prints the run's counts, quantiles, reasons, signature, time and paths; by default to stdout.

    Numbers and paths are never shortened, however narrow the console is.
    """
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else 110)
    rows = []
    for origin in summary.origins:
        read, _, quarantined, duplicates = summary.accounts(origin)
        rows.append([read, *summary.stages_of(origin), quarantined, duplicates])
    head = ["origin", "read", *[f"stage {s}" for s in STAGES], "quarantined", "duplicates"]
    body = [[name, *_counts(row)] for name, row in zip(summary.origins, rows, strict=True)]
    _print_table(console, head, body, ["total", *_counts(_sums(rows, len(head) - 1))])
    shares, body = summary.quantile_table()
    if shares:
        _print_table(console, ["score at", *shares], body)
    if reasons := summary.reasons():
        _print_table(console, ["quarantined", "rows"], [[name, f"{n:,}"] for name, n in reasons])

    steps = ", ".join(f"{step} {seconds:,.1f}" for step, seconds in summary.seconds.items())
    total = sum(summary.seconds.values())
    for line in (
        f"signature: {summary.signature}",
        f"time: {total:,.1f} s ({steps}), {summary.pairs_per_s:,.0f} pairs/s",
        f"manifest: {summary.folder}/manifest.json",
        f"report: {summary.folder}/report.html",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_table(
    console: Console, head: list[str], body: list[list[str]], total: list[str] | None = None
) -> None:
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, show_footer=total is not None)
    for number, name in enumerate(head):
        justify = "right" if number else "left"
        table.add_column(name, total[number] if total else "", justify=justify, no_wrap=True)
    for row in body:
        table.add_row(*row)
    table.width = Measurement.get(console, console.options.update_width(1000), table).maximum
    console.print(table, crop=False, highlight=False)
    console.print()


def write_report(summary: Summary, storage: Storage, folder: str) -> None:
    """Writes folder/report.png and folder/report.html, which holds the picture too."""
    bins = {origin: summary.bins.get(origin, {}) for origin in summary.origins}
    png = draw_run(bins, summary.cuts, summary.sample)
    storage.write(f"{folder}/report.png", png)
    storage.write(f"{folder}/report.html", _page(summary, png))


def _page(summary: Summary, png: bytes) -> str:
    shares, quantiles = summary.quantile_table()
    times = [[step, f"{seconds:,.1f}"] for step, seconds in summary.seconds.items()]
    total = ["total", f"{sum(summary.seconds.values()):,.1f}"]
    return PAGE.substitute(
        run_id=escape(summary.run_id),
        folder=escape(summary.folder),
        signature=escape(summary.signature),
        accounts=_accounts_section(summary),
        stages=_stages_table(summary),
        quantiles=_table(["origin", *shares], quantiles),
        png=base64.b64encode(png).decode(),
        examples=_examples_section(summary.sample.examples),
        quarantine=_quarantine_section(summary),
        times=_table(["step", "seconds"], times, total),
        pairs_per_s=f"{summary.pairs_per_s:,.0f}",
    )


def _accounts_section(summary: Summary) -> str:
    rows = [summary.accounts(origin) for origin in summary.origins]
    read, *parts = total = _sums(rows, 4)
    body = [[name, *_counts(row)] for name, row in zip(summary.origins, rows, strict=True)]
    head = ["origin", "read", "scored", "quarantined", "duplicates"]
    table = _table(head, body, ["total", *_counts(total)])
    numbers = f"{read:,} {'=' if read == sum(parts) else '≠'} {' + '.join(_counts(parts))}"
    closes = all(row[0] == sum(row[1:]) for row in rows)
    verdict = "" if closes else " <strong>The accounts do not close.</strong>"
    return f"<p>read = scored + quarantined + duplicates: {numbers}.{verdict}</p>\n{table}"


def _stages_table(summary: Summary) -> str:
    body = []
    for origin in summary.origins:
        counts = summary.stages_of(origin)
        pairs = sum(counts)
        cells = [f"{n:,} ({n / pairs:.1%})" if pairs else f"{n:,}" for n in counts]
        cuts = " / ".join("-" if c != c else f"{c:g}" for c in summary.cuts.get(origin, ()))
        body.append([origin, *cells, cuts, f"{summary.min_meaning.get(origin, 0):g}"])
    head = ["origin", *[f"stage {s}" for s in STAGES], "stages 1 / 2 / 3 begin at"]
    return _table([*head, "least meaning in 2 and 3"], body)


def _examples_section(pairs: list[dict]) -> str:
    parts = []
    for number, title in enumerate(QUARTERS):
        here = [pair for pair in pairs if pair["quarter"] == number]
        if here:
            parts.append(f"<h3>{title}</h3>")
            parts += [_example(pair) for pair in sorted(here, key=lambda pair: pair["spscore"])]
    return "\n".join(parts) or "<p>No pairs were scored.</p>"


def _example(pair: dict) -> str:
    judgements = [_score(pair[name]) for name in JUDGEMENTS]
    features = [_score(pair[name], digits=0 if name == "sl" else 3) for name in FEATURES]
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in pair["reasons"])
    return (
        f'<div class="pair">\n<div class="score"><b>{_score(pair["spscore"])}</b>'
        f'<span class="bar"><i style="width: {pair["spscore"]:.1%}"></i></span>'
        f"{escape(pair['origin'])}, stage {pair['stage']}</div>\n"
        f'<p lang="zh">{escape(pair["source"])}</p>\n'
        f'<p lang="zh">{escape(pair["paraphrase"])}</p>\n'
        f"{_table(JUDGEMENTS, [judgements])}\n"
        + (f'<ul lang="zh">{reasons}</ul>\n' if reasons else "")
        + f"<details><summary>features</summary>{_table(FEATURES, [features])}</details>\n</div>"
    )


def _quarantine_section(summary: Summary) -> str:
    body = [[name, f"{n:,}", EXPLANATIONS.get(name, "")] for name, n in summary.reasons()]
    if not body:
        return "<p>No row was quarantined.</p>"
    return _table(["reason", "rows", "what it means"], body, css="last-text")


def _table(
    head: Iterable[str], body: list[list[str]], total: list[str] | None = None, css: str = ""
) -> str:
    """An HTML table; cells are plain text, which is escaped here."""

    def row(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    foot = f"\n<tfoot>{row(total, 'td')}</tfoot>" if total else ""
    rows = "\n".join(row(cells, "td") for cells in body)
    return (
        f'<div class="scroll"><table class="{css}">\n<thead>{row(head, "th")}</thead>\n'
        f"<tbody>\n{rows}\n</tbody>{foot}\n</table></div>"
    )


def _counts(numbers: Iterable[int]) -> list[str]:
    return [f"{number:,}" for number in numbers]


def _sums(rows: list[Iterable[int]], columns: int) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)] or [0] * columns


def _score(number: float | None, digits: int = 3) -> str:
    return "-" if number is None or number != number else f"{number:,.{digits}f}"


PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gaixie run $run_id</title>
<style>
:root { color-scheme: light dark; --text: #222; --page: #fff; --soft: #667; --line: #ddd; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --page: #181a1d; --soft: #99a; --line: #3a3d42; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
       max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.soft { color: var(--soft); }
code, .pair p { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .2rem .9rem; border-bottom: 1px solid var(--line); text-align: right; }
:is(th, td):first-child, .last-text :is(th, td):last-child { text-align: left; }
tfoot td { font-weight: 600; border-bottom: 0; }
img { width: 100%; background: #fff; border-radius: 6px; }
.pair { border-top: 1px solid var(--line); padding: .7rem 0; }
.pair p { margin: .2rem 0; font-size: 1.05rem; }
.pair :is(table, ul, details) { font-size: .85rem; color: var(--soft); margin: .2rem 0; }
h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
.pair :is(th, td) { border: 0; padding: 0 1.2rem 0 0; text-align: left; }
.score { display: flex; align-items: center; gap: .8rem; }
.bar { width: 12rem; background: var(--line); border-radius: 3px; }
.bar i { display: block; height: .6rem; background: #5b8db8; border-radius: 3px; }
</style>
</head>
<body>
<h1>Gaixie run $run_id</h1>
<div class="soft"><code>$folder</code></div>
<h2>What came in and out</h2>
$accounts
<h2>Stages</h2>
<p class="soft">Pairs, and their share of the origin's scored pairs. Stage 0 is below the first cut
point; training leaves it out.</p>
$stages
<h2>Score quantiles</h2>
<p class="soft">The score below which this share of the origin's pairs lies.</p>
$quantiles
<h2>Scores, judgements and features</h2>
<img alt="Histograms of score and judgements by origin, and rank correlations"
     src="data:image/png;base64,$png">
<h2>Example pairs</h2>
<p class="soft">Source first, then paraphrase, the four judgements (0 to 1), and what pulls them down
where the metric can say it. A dash is a missing value.</p>
$examples
<h2>Quarantine</h2>
$quarantine
<h2>Time</h2>
<p class="soft">$pairs_per_s pairs/s</p>
$times
<h2>Signature</h2>
<p class="soft">Scores compare only under one signature.<br>
<code>$signature</code></p>
</body>
</html>
""")
