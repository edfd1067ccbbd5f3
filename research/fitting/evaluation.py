"""What a fitted SPScore-zh reaches on pairs that it was not fitted on: the figures of its card.

Most functions take out-of-fold outputs (recipe.cross_validate) of the rated pairs, or of the
negatives made from them, and give plain numbers.
"""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import pearsonr, rankdata
from sklearn.metrics import roc_auc_score

from gaixie.research.fitting.data import Rows
from gaixie.research.fitting.negatives import NEEDS_READING
from gaixie.research.pair_encoder.sets import KINDS, held_out, read_entailment
from gaixie.research.ratings.resampling import bootstrap_interval
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import ORIGINS

SAMPLES = 500
HUMAN_KINDS = ("mcts", "cip")
"""Kinds of real pairs whose paraphrase a person wrote."""
LOST = 3.0
"""A pair that is rated lower for meaning lost a detail or more."""
STAGE_RATINGS = (1.25, 2.4, 3.0)
"""Rated overall, 0 to 5, that a pair of the lowest score in stages 1, 2 and 3 has on average."""
PARTS, MIN_CALIBRATED = 20, 1000
"""Parts by score of the pairs that calibrate the score; the fewest pairs that may."""
TOP = 0.64
"""What scores as high is the top: its ratings show whether a high score can be trusted."""


def correlations(
    outputs: np.ndarray, targets: np.ndarray, groups: np.ndarray, parts: Mapping[str, np.ndarray]
) -> dict[str, dict[str, dict[str, float]]]:
    """By part (real, written) and output: Spearman and Pearson with 95 % intervals by group."""
    return {
        part: {
            output: {"pairs": int(rows.sum())}
            | both_correlations(outputs[rows, k], targets[rows, k], groups[rows])
            for k, output in enumerate(OUTPUTS)
        }
        for part, rows in parts.items()
    }


def both_correlations(
    scores: np.ndarray, rated: np.ndarray, groups: np.ndarray
) -> dict[str, float]:
    """Spearman and Pearson, each with its 95 % interval by group: NAME, NAME_low, NAME_high."""
    figures: dict[str, float] = {}
    for name, statistic in (("spearman", spearman), ("pearson", pearson)):
        low, high = bootstrap_interval(statistic, (scores, rated), groups, SAMPLES)
        figures |= {name: statistic(scores, rated), f"{name}_low": low, f"{name}_high": high}
    return figures


def with_people(name: str, rows: Rows, scores: np.ndarray) -> dict[str, Any]:
    """Spearman and Pearson with people's scores, and Spearman of the edit distance (1 minus the
    ratio of difflib, which knows nothing else)."""
    matchers = (SequenceMatcher(None, a, b, autojunk=False) for a, b in rows.texts.tolist())
    trivial = [1 - one.ratio() for one in matchers]
    target = rows.targets[:, -1]
    figures = both_correlations(scores, target, rows.groups)
    return {"name": name, "pairs": len(rows), **figures, "edits": spearman(trivial, target)}


def by_kind(outputs: np.ndarray, targets: np.ndarray, kinds: np.ndarray) -> list[dict[str, Any]]:
    """For each kind of pair: mean rated overall, mean score × 5, and Spearman of the score."""
    rows = []
    for kind in sorted(set(kinds)):
        inside = kinds == kind
        score, rated = outputs[inside, -1], targets[inside, -1]
        row: dict[str, Any] = {"kind": kind, "pairs": int(inside.sum())}
        row |= {"rated": 5 * float(rated.mean()), "scored": 5 * float(score.mean())}
        rows.append(row | {"spearman": spearman(score, rated)})
    return rows


def adversaries(
    rated: Rows, outputs: np.ndarray, negatives: Rows, negative_outputs: np.ndarray
) -> list[dict[str, Any]]:
    """For each kind of negative, how often the paraphrase scores above it.

    ``full``: paraphrases written to be full. ``human``: rewrites by people. Each a share and the
    number of comparisons; a tie is a loss.
    """
    bases = {
        "full": np.char.startswith(rated.kinds.astype(str), "written_full"),
        "human": np.isin(rated.kinds.astype(str), HUMAN_KINDS),
    }
    table = []
    for kind in dict.fromkeys(negatives.kinds.tolist()):
        reading = kind.removeprefix("own_") in NEEDS_READING
        row: dict[str, Any] = {"kind": kind, "needs_reading": reading}
        for name, base in bases.items():
            inside = (negatives.kinds == kind) & base[negatives.pairs]
            wins = outputs[negatives.pairs[inside], -1] > negative_outputs[inside, -1]
            row[name] = float(wins.mean()) if len(wins) else None
            row[f"{name}_pairs"] = len(wins)
        table.append(row)
    return table


def choose_thresholds(
    scores: np.ndarray, rated: np.ndarray, origins: np.ndarray
) -> dict[str, list[float]]:
    """For each origin the scores at which stages 1, 2 and 3 begin.

    A line through score and rating (both 0 to 1) says what a score is worth in this origin; the
    threshold is the score that is worth STAGE_RATINGS, to two decimals.
    """
    thresholds = {}
    for origin in ORIGINS:
        inside = origins == origin
        if inside.sum() >= 100:
            slope, intercept = np.polyfit(scores[inside], rated[inside], 1)
            worth = np.clip((np.array(STAGE_RATINGS) / 5 - intercept) / slope, 0, 1)
            thresholds[origin] = [round(float(score), 2) for score in worth]
    return thresholds


def calibration_points(scores: np.ndarray, rated: np.ndarray) -> list[tuple[float, float]]:
    """Points (mean score, mean rating) by which the score is calibrated, both from 0 to 1.

    The pairs are cut into PARTS by score, and parts whose ratings fall are joined (isotonic
    regression). Returns none for fewer than MIN_CALIBRATED pairs.
    """
    if len(scores) < MIN_CALIBRATED:
        return []
    parts = np.array_split(np.argsort(scores, kind="stable"), PARTS)
    fit = isotonic_regression([rated[rows].mean() for rows in parts])
    points = [
        (float(scores[np.concatenate(parts[start:end])].mean()), float(fit.x[start]))
        for start, end in pairwise(fit.blocks)
    ]
    inside = [point for point in points if 0 < min(point) and max(point) < 1]
    return [(0.0, 0.0), *inside, (1.0, 1.0)]


def stages(
    stage: np.ndarray, targets: np.ndarray, groups: np.ndarray, part: np.ndarray
) -> list[dict[str, Any]]:
    """For each stage: pairs, share that lost meaning, mean ratings (0 to 5) with 95 % intervals by
    group."""
    table = []
    for number in range(4):
        rows = (stage == number) & part
        row: dict[str, Any] = {"stage": number, "pairs": int(rows.sum())}
        if rows.sum() > 1:
            row["meaning_lost"] = float((5 * targets[rows, OUTPUTS.index("meaning")] < LOST).mean())
            for column, output in enumerate(OUTPUTS):
                row[output] = _mean("mean", 5 * targets[rows, column], groups[rows])
        table.append(row)
    return table


def top(
    scores: np.ndarray, rated: np.ndarray, groups: np.ndarray, part: np.ndarray
) -> dict[str, Any]:
    """Pairs of a part with a score of TOP or more, and their mean rating (0 to 5) as in
    ``stages``."""
    rows = (scores >= TOP) & part
    figures: dict[str, Any] = {"from": TOP, "pairs": int(rows.sum())}
    if rows.sum() > 1:
        figures |= _mean("rated", 5 * rated[rows], groups[rows])
    return figures


def _mean(name: str, values: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    low, high = bootstrap_interval(np.mean, (values,), groups, SAMPLES)
    return {name: float(values.mean()), "low": low, "high": high}


def calibration(scores: np.ndarray, rated: np.ndarray, origins: np.ndarray) -> dict[str, float]:
    """By origin: the mean distance between mean score and mean rating, both 0 to 5, of tenths of
    its pairs by score."""
    found = {}
    for origin in sorted(set(origins)):
        inside = np.flatnonzero(origins == origin)
        order = inside[np.argsort(scores[inside], kind="stable")]
        tenths = [rows for rows in np.array_split(order, 10) if len(rows)]
        found[origin] = fmean(
            abs(5 * float(scores[rows].mean()) - 5 * float(rated[rows].mean())) for rows in tenths
        )
    return found


def spearman(scores: np.ndarray | Sequence[float], rated: np.ndarray) -> float:
    """Spearman's rank correlation; 0 where one side is constant."""
    return pearson(rankdata(scores), rankdata(rated))


def pearson(scores: np.ndarray, rated: np.ndarray) -> float:
    """Pearson's correlation; 0 where one side is constant."""
    constant = np.ptp(scores) == 0 or np.ptp(rated) == 0
    return 0.0 if constant else float(pearsonr(scores, rated).statistic)


# Sets that nothing was fitted on: written counterparts, and entailment


def unseen_figures(model: SPScore, data: Path) -> dict[str, Any]:
    """Figures of the card; those whose set is not in the folder are left out."""
    figures: dict[str, Any] = {}
    if (data / "written_broken.jsonl").is_file():
        figures["counterparts"] = counterparts(model, data)
    if (data / "ocnli.train.tsv").is_file():
        figures["entailment"] = entailment(model, data / "ocnli.train.tsv")
    return figures


def counterparts(model: SPScore, data: Path) -> list[dict[str, Any]]:
    """How often ``spscore`` of a written paraphrase (S2 to S4) beats that of its counterpart.

    Of the held-out groups without a rated pair: shares of each kind, 95 % intervals by group.
    """
    rated = {str(row["group"]) for row in read_json_lines(data / "written_rated.jsonl")}
    broken = {row["group"]: row for row in read_json_lines(data / "written_broken.jsonl")}
    groups = [
        row
        for row in read_json_lines(data / "written_groups.jsonl")
        if row["group"] in broken and held_out(row["group"]) and str(row["group"]) not in rated
    ]
    sources = [row["texts"][0] for row in groups]
    good = np.stack([model.score(sources, [row["texts"][k] for row in groups]) for k in (2, 3, 4)])
    table = []
    for kind in KINDS:
        bad = model.score(sources, [broken[row["group"]][kind] for row in groups])
        share = _mean("share", (good > bad).mean(0), np.arange(len(groups)))
        table.append({"kind": kind, "groups": len(groups), **share})
    return table


def entailment(model: SPScore, path: Path) -> dict[str, float]:
    """AUC of ``meaning`` for entailment against contradiction (OCNLI, which nothing is fitted
    on)."""
    table = read_entailment(path)
    judged = model.judge(table["premise"].tolist(), table["hypothesis"].tolist())
    auc = roc_auc_score(table["label"] == "entailment", judged["meaning"])
    return {"pairs": len(table), "auc": float(auc)}
