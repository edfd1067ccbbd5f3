"""The report of research/benchmarks/experiment.py, and its intervals over seeds and sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from gaixie.training.loop.plots import read_lines
from gaixie.udfs.metrics import bootstrap
from gaixie.udfs.reports import number, render

TEMPLATE = Path(__file__).with_suffix(".md.j2")
SAMPLES = 1_000
SEED = 5
"""Of the resamples, and of the sources whose outputs are shown."""
REFERENCE = "curriculum"
"""The arm that others are compared with."""
WRITTEN = {"name": "written", "title": "written %", "better": "↑", "digits": 1}
"""Sources with a paraphrase; the other measures are means over these."""


def crossed_means(values: np.ndarray, groups: np.ndarray, seed: int) -> np.ndarray:
    """Means of values when seeds and groups of rows are drawn anew, both with replacement.

    values: float, shape (seeds, rows), NaN where there is none. groups: numbers of the rows' groups,
    from 0. seed: decides which seeds are drawn; the groups are the same for all systems. Gives float64,
    shape (SAMPLES,); NaN where a draw has no value.
    """
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    by_seed = _times(len(values), SEED + 1 + seed)
    by_row = _times(int(groups.max()) + 1, SEED)[:, groups]
    with np.errstate(invalid="ignore"):
        return (by_seed * (by_row @ filled.T)).sum(1) / (by_seed * (by_row @ there.T)).sum(1)


def _times(count: int, seed: int) -> np.ndarray:
    """How often each of so many is drawn, shape (SAMPLES, count)."""
    drawn = bootstrap.resamples(count, SAMPLES, seed)
    return np.stack([np.bincount(row, minlength=count) for row in drawn]).astype(float)


def report(root: Path, arms: Sequence[str], seeds: int, shown: int) -> str:
    """The text of experiment.md, from what lies in the experiment's folder."""
    test = pq.read_table(root / "test.parquet").to_pandas()
    measures = json.loads((root / "baselines/evaluation/evaluation.json").read_text("utf-8"))[
        "measures"
    ]
    systems, texts = _systems(root, arms, seeds, [m["name"] for m in measures])
    columns = [WRITTEN, *measures]
    tables = []
    for table in dict.fromkeys(test["table"]):
        rows = np.flatnonzero(test["table"] == table)
        tables.append(
            {
                "name": table,
                "rows": len(rows),
                "means": _means(systems, columns, rows, test["group"]),
                "differences": _differences(systems, arms, columns, rows, test["group"]),
            }
        )
    return render(
        TEMPLATE,
        arms=arms,
        seeds=seeds,
        trainings=[
            _training(root / arm / f"seed-{k + 1}", arm, k) for arm in arms for k in range(seeds)
        ],
        columns=columns,
        measures=measures,
        tables=tables,
        reference=REFERENCE,
        outputs=_outputs(test, texts, arms, shown),
    )


def _systems(
    root: Path, arms: Sequence[str], seeds: int, names: Sequence[str]
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, list[str | None]]]:
    """By system and measure the scores, shape (seeds, rows); by system the texts of its first seed."""
    scores: dict[str, dict[str, np.ndarray]] = {}
    texts: dict[str, list[str | None]] = {}
    given = pq.read_table(root / "baselines/evaluation/scores.parquet").to_pandas()
    for name, own in given.groupby("system", sort=False):
        scores[name] = _scores([own], names)
        if name != "copy":  # of some tables it is a column without texts
            scores[name]["written"][scores[name]["written"] == 0] = np.nan
        texts[name] = own["paraphrase"].tolist()
    for arm in arms:
        folders = [root / arm / f"seed-{k + 1}/evaluation/scores.parquet" for k in range(seeds)]
        frames = [pq.read_table(path).to_pandas() for path in folders]
        for which in ("best", "last"):
            # Where the last weights are the best ones, they were judged once.
            own = [f[f["system"] == (which if which in {*f["system"]} else "best")] for f in frames]
            scores[f"{arm}, {which}"] = _scores(own, names)
            texts[f"{arm}, {which}"] = own[0]["paraphrase"].tolist()
    return scores, texts


def _scores(frames: Sequence[pd.DataFrame], names: Sequence[str]) -> dict[str, np.ndarray]:
    """By measure, shape (seeds, rows)."""
    scores = {m: np.stack([frame[m].to_numpy(float) for frame in frames]) for m in names}
    written = np.stack([frame["paraphrase"].notna().to_numpy() for frame in frames])
    return scores | {"written": 100.0 * written}


def _drawn(values: np.ndarray, rows: np.ndarray, group: pd.Series, seed: int) -> np.ndarray:
    _, groups = np.unique(group.to_numpy(str)[rows], return_inverse=True)
    return crossed_means(values[:, rows], groups, seed)


def _means(
    systems: Mapping[str, Mapping[str, np.ndarray]],
    measures: Sequence[Mapping[str, Any]],
    rows: np.ndarray,
    group: pd.Series,
) -> list[list[str]]:
    """A row for each system that has paraphrases here: its name, then mean and interval by measure."""
    lines = []
    for place, (name, scores) in enumerate(systems.items()):
        if np.isnan(scores["written"][:, rows]).all():
            continue
        cells = [name]
        for measure in measures:
            values = scores[measure["name"]]
            if np.isnan(values[:, rows]).all():
                cells.append("–")
                continue
            low, high = bootstrap.interval(_drawn(values, rows, group, place))
            cells.append(_estimate(np.nanmean(values[:, rows]), low, high, measure["digits"]))
        lines.append(cells)
    return lines


def _differences(
    systems: Mapping[str, Mapping[str, np.ndarray]],
    arms: Sequence[str],
    measures: Sequence[Mapping[str, Any]],
    rows: np.ndarray,
    group: pd.Series,
) -> list[list[str]]:
    """By arm, and best or last, what the reference has more than it; clear ones in bold."""
    lines = []
    for which in ("best", "last"):
        for place, arm in enumerate(arms):
            if arm == REFERENCE:
                continue
            cells = [f"{arm}, {which}"]
            for measure in measures:
                pair = [systems[f"{name}, {which}"][measure["name"]] for name in (REFERENCE, arm)]
                if any(np.isnan(values[:, rows]).all() for values in pair):
                    cells.append("–")
                    continue
                ours, theirs = (
                    _drawn(v, rows, group, k) for v, k in zip(pair, (0, 1 + place), strict=True)
                )
                low, high = bootstrap.interval(ours - theirs)
                mean = np.nanmean(pair[0][:, rows]) - np.nanmean(pair[1][:, rows])
                text = _estimate(mean, low, high, measure["digits"])
                cells.append(f"**{text}**" if low > 0 or high < 0 else text)
            lines.append(cells)
    return lines


def _estimate(mean: float, low: float, high: float, digits: int) -> str:
    return f"{number(mean, digits)} ({number(low, digits)} to {number(high, digits)})"


def _training(folder: Path, arm: str, seed: int) -> list[str]:
    log, history = (read_lines(folder / f"{name}.jsonl") for name in ("log", "history"))
    kept = [line for line in history if line["improved"] and line["stage"] == history[-1]["stage"]]
    rate = np.median([line["tokens_per_second"] for line in log])
    cells = [arm, str(seed + 1), f"{log[-1]['step']:,}", str(len(history))]
    cells += [f"{kept[-1]['step']:,}", number(kept[-1]["score"]), number(history[-1]["score"])]
    return [*cells, f"{history[-1]['seconds'] / 3600:.2f}", f"{rate:,.0f}"]


def _outputs(
    test: pd.DataFrame, texts: Mapping[str, Sequence[str | None]], arms: Sequence[str], shown: int
) -> list[dict[str, Any]]:
    """Some test sources, drawn by seed, with what is given for them and the best of every arm's first seed."""
    rows = np.random.default_rng(SEED).permutation(len(test))[:shown]
    found = []
    for row in sorted(rows.tolist()):
        given = {name: texts[name][row] for name in ("mt", "human") if texts[name][row]}
        written = {arm: texts[f"{arm}, best"][row] or "(nothing)" for arm in arms}
        source, table = test["source"][row], test["table"][row]
        found.append({"source": source, "table": table, "rows": given | written})
    return found
