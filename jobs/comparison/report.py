"""The report of a comparison of metrics: comparison.json, comparison.md and its plots."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

HEAD = """\
# Which metric agrees with people

Correlation of each metric's sentence scores with human scores, 95 % intervals by bootstrap over
source sentences ({samples:,} samples). Rows on which ParaScore's ω was chosen ({tune:.0%} of the
sources of each set) stand in no figure. ↓: lower is better, by the metric's own idea; its figures are
those of the scores as they are. *p* is that of a paired bootstrap test against the best metric of
the table. SPScore-zh is the model that ships, fitted again without the sentences it scores where
it was fitted on the set (marked ×).
"""
TITLES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "auc": "AUC",
    "average_precision": "average precision",
}


def write(folder: Path, result: dict[str, Any]) -> None:
    """All of the report. result: as jobs/compare_metrics.py makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_plain(result), ensure_ascii=False, indent=1)
    (folder / "comparison.json").write_text(text + "\n", encoding="utf-8")
    (folder / "comparison.md").write_text(markdown(result), encoding="utf-8")
    for data_set in result["data_sets"]:
        forest(data_set, folder / f"{data_set['name']}.png")
        if data_set.get("between"):
            heat_map(data_set, folder / f"{data_set['name']} between metrics.png")


def _plain(value: Any) -> Any:
    """What JSON holds: NaN as null, tuples as lists."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(header: list[str], rows: list[list[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def markdown(result: dict[str, Any]) -> str:
    parts = [HEAD.format(samples=result["samples"], tune=result["tune"])]
    parts += ["## Where SPScore-zh stands\n", standing(result)]
    for data_set in result["data_sets"]:
        parts += [f"## {data_set['name']}\n", _data_set(data_set)]
        if data_set.get("free"):
            parts += ["### With a reference, and without\n", _free(data_set)]
        if data_set.get("published"):
            parts += ["### Beside the published figures\n", _published(data_set)]
        if data_set.get("why"):
            parts += ["### Why\n", _why(data_set)]
    parts += ["## Signatures\n"]
    signatures = {s for data_set in result["data_sets"] for s in data_set["signatures"].values()}
    parts += ["".join(f"- `{s}`\n" for s in sorted(signatures))]
    return "\n".join(parts)


def standing(result: dict[str, Any]) -> str:
    """Each set's best metric, and SPScore-zh beside it: where it loses stands here in plain words."""
    rows, lost = [], []
    for data_set in result["data_sets"]:
        names = [row["name"] for row in data_set["metrics"]]
        if "spscore" not in names:
            continue
        position = names.index("spscore")
        own, best = data_set["metrics"][position], data_set["metrics"][0]
        main = data_set["statistic"]
        if position and own["p"] < 0.05:
            lost.append(data_set["name"])
        values = [f"{row['title']} {number(row[main].value)}" for row in (best, own)]
        row = [
            data_set["name"],
            TITLES[main],
            *values,
            f"{position + 1} of {len(names)}",
            number(own["p"]),
        ]
        rows.append(row)
    text = table(["set", "by", "best", "SPScore-zh", "place", "p"], rows)
    if lost:
        text += f"\nSPScore-zh loses to the best metric (p < 0.05) on: {', '.join(lost)}.\n"
    return text


def _data_set(data_set: dict[str, Any]) -> str:
    names = data_set["statistics"]
    rows = []
    for row in data_set["metrics"]:
        cells = [f"{row['title']}{'' if row['higher_is_better'] else ' ↓'}"]
        cells.append("reference" if row["with_reference"] else "")
        for name in names:
            value, low, high = row[name]
            cells.append(f"{number(value)} ({number(low, 2)} to {number(high, 2)})")
        rows.append([*cells, number(row["p"]), f"{row['rows']:,}"])
    text = f"{data_set['rows']:,} pairs, {data_set['sources']:,} sources"
    text += (
        f"; {data_set['added']:,} of the pairs are sources as their own candidates\n\n"
        if data_set["added"]
        else "\n\n"
    )
    text += table(["metric", "reads", *[TITLES[name] for name in names], "p", "pairs"], rows)
    for name, reason in data_set["left_out"].items():
        text += f"\nLeft out: {name} ({reason})\n"
    return text + f"\n![intervals]({data_set['name'].replace(' ', '%20')}.png)\n"


def _free(data_set: dict[str, Any]) -> str:
    rows = [[title, number(with_), number(without)] for title, with_, without in data_set["free"]]
    by = TITLES[data_set["statistic"]]
    return table(["metric", f"{by} with the reference", f"{by} without"], rows)


def _published(data_set: dict[str, Any]) -> str:
    rows = [
        [title, number(theirs), number(ours), f"{ours - theirs:+.3f}"]
        for title, theirs, ours in data_set["published"]
    ]
    text = table(["metric", "published", "here", "difference"], rows)
    return text + (f"\n{data_set['note']}\n" if data_set["note"] else "")


def _why(data_set: dict[str, Any]) -> str:
    sections, text = data_set["why"], ""
    titles = {row["name"]: row["title"] for row in data_set["metrics"]}
    for key, label in (
        ("by_distance_to_reference", "reference"),
        ("by_distance_to_source", "source"),
    ):
        if key in sections:
            quarters = sections[key]
            header = [f"Spearman by distance to the {label}"]
            header += [
                f"{q['distance'][0]:.2f}–{q['distance'][1]:.2f}" for q in quarters if q["distance"]
            ]
            rows = [["pairs", *[f"{q['rows']:,}" for q in quarters if q["distance"]]]]
            for name, title in titles.items():
                rows.append(
                    [title, *[number(q["spearman"][name]) for q in quarters if q["distance"]]]
                )
            text += table(header, rows) + "\n"
    if "parts" in sections:
        parts = sections["parts"]
        rows = [["pairs", *[f"{p['rows']:,} ({p['share']:.0%})" for p in parts.values()]]]
        rows += [
            [t, *[number(p["spearman"][n]) for p in parts.values()]] for n, t in titles.items()
        ]
        text += table(["Spearman by part", *parts], rows) + "\n"
    if "subsets" in sections:
        subsets = dict(sections["subsets"])
        similarity = titles[subsets.pop("similarity")]
        rows = [["pairs of candidates", *[f"{s['pairs']:,}" for s in subsets.values()]]]
        rows += [
            [t, *[number(s["spearman"][n]) for s in subsets.values()]] for n, t in titles.items()
        ]
        text += table(["Spearman of differences", *subsets], rows)
        text += f"\nCandidates of one source; similarity by {similarity}, stretched to 0–1.\n"
    return text


def forest(data_set: dict[str, Any], path: Path) -> None:
    """Every metric's statistic with its interval, the best on top."""
    main = data_set["statistic"]
    rows = [row for row in data_set["metrics"][::-1] if not math.isnan(row[main].value)]
    figure, axes = plt.subplots(figsize=(7, 1 + 0.26 * len(rows)), layout="constrained")
    for position, row in enumerate(rows):
        value, low, high = row[main]
        colour = "#c0392b" if row["name"] == "spscore" else "#34495e"
        marker = "s" if row["with_reference"] else "o"
        axes.plot([low, high], [position, position], color=colour, lw=1.6)
        axes.plot(value, position, marker, color=colour, ms=5)
    axes.set_yticks(range(len(rows)), [_arrowed(row) for row in rows])
    axes.axvline(0.5 if data_set["statistic"] == "auc" else 0, color="#bbbbbb", lw=1, zorder=0)
    axes.set_xlabel(f"{TITLES[data_set['statistic']]} with human scores, 95 % interval")
    axes.set_title(
        f"{data_set['name']}, {data_set['rows']:,} pairs (squares: with a reference)", fontsize=10
    )
    axes.grid(axis="x", alpha=0.3)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _arrowed(row: dict[str, Any]) -> str:
    return row["title"] + ("" if row["higher_is_better"] else " ↓")


def heat_map(data_set: dict[str, Any], path: Path) -> None:
    """Spearman between every two metrics' scores."""
    between = data_set["between"]
    titles, values = between["metrics"], np.array(between["spearman"], float)
    size = 2.5 + 0.27 * len(titles)
    figure, axes = plt.subplots(figsize=(size + 1, size), layout="constrained")
    image = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set_xticks(range(len(titles)), titles, rotation=90, fontsize=7)
    axes.set_yticks(range(len(titles)), titles, fontsize=7)
    axes.set_title(f"{data_set['name']}: Spearman between metrics", fontsize=10)
    figure.colorbar(image, shrink=0.7)
    figure.savefig(path, dpi=130)
    plt.close(figure)
