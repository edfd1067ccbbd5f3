"""Writes the report of research/benchmarks/experiment.py, with intervals over seeds and sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gaixie.training.loop.plots import read_lines
from gaixie.udfs.metrics import bootstrap
from gaixie.udfs.reports import number, render

TEMPLATE = Path(__file__).with_suffix(".md.j2")
SAMPLES = 1_000
SEED = 5
"""Seed of the resamples, and of the draw of sources whose outputs are shown."""
REFERENCE = "curriculum"
"""The arm that all others are compared with."""
WRITTEN = {"name": "written", "title": "written %", "better": "↑", "digits": 1}
"""Per cent of the sources that got a paraphrase; other measures are means over these sources."""
Scores = Mapping[str, np.ndarray]
"""Scores by measure, shape (seeds, rows); NaN where there is no paraphrase."""


def crossed_means(values: np.ndarray, groups: np.ndarray, seed: int) -> np.ndarray:
    """Returns means of values over resamples of seeds and of groups, drawn with replacement.

    values: float, shape (seeds, rows), NaN if missing. groups: the group number of each row, from
    0. seed: decides which seeds are drawn; the drawn groups are the same for all systems. Returns
    float64, shape (SAMPLES,), NaN where a draw has no value.
    """
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    by_seed = _times(len(values), SEED + 1 + seed)
    by_row = _times(int(groups.max()) + 1, SEED)[:, groups]
    with np.errstate(invalid="ignore"):
        return (by_seed * (by_row @ filled.T)).sum(1) / (by_seed * (by_row @ there.T)).sum(1)


def _times(count: int, seed: int) -> np.ndarray:
    """Returns how often each of ``count`` items is drawn, shape (SAMPLES, count)."""
    drawn = bootstrap.resamples(count, SAMPLES, seed)
    return np.stack([np.bincount(row, minlength=count) for row in drawn]).astype(float)


def report(root: Path, arms: Sequence[str], seeds: int, shown: int) -> str:
    """Returns the text of experiment.md, from the files in the experiment's folder."""
    test = pd.read_parquet(root / "test.parquet")
    text = (root / "baselines/evaluation/evaluation.json").read_text("utf-8")
    measures = json.loads(text)["measures"]
    systems, texts = _systems(root, arms, seeds, [m["name"] for m in measures])
    columns = [WRITTEN, *measures]
    tables = []
    for name, own in test.reset_index(drop=True).groupby("table", sort=False):
        rows, groups = own.index.to_numpy(), pd.factorize(own["group"], sort=True)[0]
        there = {name: {m: v[:, rows] for m, v in s.items()} for name, s in systems.items()}
        means = [
            _line(name, columns, groups, [(scores, place)])
            for place, (name, scores) in enumerate(there.items())
            if not np.isnan(scores["written"]).all()
        ]
        differences = [
            _line(arm, columns, groups, [(there[REFERENCE], 0), (there[arm], place)])
            for place, arm in enumerate(arms)
            if arm != REFERENCE
        ]
        tables.append({"name": name, "rows": len(rows), "means": means, "differences": differences})
    folders = [(arm, k, root / arm / f"seed-{k}") for arm in arms for k in range(1, seeds + 1)]
    return render(
        TEMPLATE,
        arms=arms,
        seeds=seeds,
        trainings=[[arm, str(k), *_training(folder)] for arm, k, folder in folders],
        columns=columns,
        measures=measures,
        tables=tables,
        reference=REFERENCE,
        outputs=_outputs(test, texts, arms, shown),
    )


def _systems(
    root: Path, arms: Sequence[str], seeds: int, names: Sequence[str]
) -> tuple[dict[str, Scores], dict[str, list[str | None]]]:
    """Returns, by system, its scores, and the texts of its first seed."""
    given = _judged(root / "baselines")
    frames = {name: [own] for name, own in given.items()}
    for arm in arms:
        frames[arm] = [_judged(root / arm / f"seed-{k + 1}")["best"] for k in range(seeds)]
    scores = {
        name: {m: np.stack([frame[m].to_numpy(float) for frame in own]) for m in names}
        | {"written": np.stack([100.0 * frame["paraphrase"].notna() for frame in own])}
        for name, own in frames.items()
    }
    for name in {*given} - {"copy"}:  # a column that some tables lack
        scores[name]["written"][scores[name]["written"] == 0] = np.nan
    return scores, {name: own[0]["paraphrase"].tolist() for name, own in frames.items()}


def _judged(folder: Path) -> dict[str, pd.DataFrame]:
    """Returns, by system, a row for each source with its paraphrase and scores."""
    table = pd.read_parquet(folder / "evaluation/scores.parquet")
    return {str(name): own for name, own in table.groupby("system", sort=False)}


def _line(
    name: str,
    measures: Sequence[Mapping[str, Any]],
    groups: np.ndarray,
    systems: Sequence[tuple[Scores, int]],
) -> list[str]:
    """Returns a name, then mean and interval by measure.

    For two systems, it is their difference, in bold if the interval excludes 0. systems: the scores
    of each, and the seed that draws its seeds.
    """
    cells = [name]
    for measure in measures:
        values = [scores[measure["name"]] for scores, _ in systems]
        if any(np.isnan(own).all() for own in values):
            cells.append("–")
            continue
        means = [np.nanmean(own) for own in values]
        drawn = [
            crossed_means(own, groups, seed) for own, (_, seed) in zip(values, systems, strict=True)
        ]
        low, high = bootstrap.interval(drawn[0] - drawn[1] if len(drawn) > 1 else drawn[0])
        mean = means[0] - means[1] if len(means) > 1 else means[0]
        shown = [number(value, measure["digits"]) for value in (mean, low, high)]
        text = f"{shown[0]} ({shown[1]} to {shown[2]})"
        clear = len(systems) > 1 and (low > 0 or high < 0)
        cells.append(f"**{text}**" if clear else text)
    return cells


def _training(folder: Path) -> list[str]:
    log, history = (read_lines(folder / f"{name}.jsonl") for name in ("log", "history"))
    last = history[-1]
    kept = [line for line in history if line["improved"] and line["stage"] == last["stage"]]
    rate = np.median([line["tokens_per_second"] for line in log])
    cells = [f"{log[-1]['step']:,}", str(len(history)), f"{kept[-1]['step']:,}"]
    cells += [number(kept[-1]["score"]), number(last["score"])]
    return [*cells, f"{last['seconds'] / 3600:.2f}", f"{rate:,.0f}"]


def _outputs(
    test: pd.DataFrame, texts: Mapping[str, Sequence[str | None]], arms: Sequence[str], shown: int
) -> list[dict[str, Any]]:
    """Returns some test sources, drawn by SEED, with their columns and every arm's output."""
    rows = np.random.default_rng(SEED).permutation(len(test))[:shown]
    return [
        {
            "source": test["source"].iloc[row],
            "table": test["table"].iloc[row],
            "rows": {name: texts[name][row] for name in ("mt", "human") if texts[name][row]}
            | {arm: texts[arm][row] or "(nothing)" for arm in arms},
        }
        for row in sorted(rows.tolist())
    ]
