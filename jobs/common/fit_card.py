"""The model card of SPScore-zh: card.md, evaluation.json and the plots."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from udfs.features import FEATURES
from udfs.spscore import SPScore
from udfs.spscore.contrasts import KINDS

EVALUATION, CARD = "evaluation.json", "card.md"
_TITLES = {
    "acs": "ACS same character, same position",
    "spa": "SPA substring alignment",
    "pmd": "PMD phrase mixing",
    "wpa": "WPA word alignment",
    "lis": "LIS longest shared substring",
    "sbleu": "SBLEU BLEU, orders 4-7",
    "sl": "SL source length (characters)",
    "lr": "LR length ratio",
}
_LIMITS = """\
- The score sees surface only: eight features of characters, words and lengths. It knows neither
  meaning nor grammar. A rewrite with one wrong number, a dropped "not" or a wrong name keeps a high
  score; a rewrite that says the same in wholly other words looks like an unrelated sentence.
- Human scores exist here for short questions of one domain (banking) only, and their correlation
  with any function of these features is low. Use the score to rank and to filter many pairs, not
  to judge one.
- On longer sentences the score is what the contrasts teach: how far a pair looks like a human
  rewrite and unlike a copy, a near-copy, a fragment, a stranger or shuffled words.
- A rewrite that changes one or two characters is treated as a near-copy, even where it is right.
- A rewrite said twice is not among the contrasts: a translation that was post-edited by adding
  names in Latin letters doubles its length too, and the features do not tell the two apart.
- Sentences shorter than {low} or longer than {high} characters were not among the rewrites.
"""


def write(output: Path, config, graded, rewrites, contrasts: pd.DataFrame, evaluation: dict):
    """Writes evaluation.json and card.md; both hold the same figures."""
    text = json.dumps(evaluation, ensure_ascii=False, indent=2)
    (output / EVALUATION).write_text(text + "\n", encoding="utf-8")
    parts = [
        "# SPScore-zh: model card\n",
        "From eight surface features of a Chinese sentence pair to a score in [0, 1].\n",
        f"Signature: `{evaluation['signature']}`\n",
        f"Back-end {config.backend}, the mean of {config.seeds} fits. Everything below except "
        "*information* was measured on sources that the measured model was not fitted on; "
        "**the model in this folder was then fitted again on all the data.**\n",
        "## Data\n",
        _data(config, graded, rewrites, contrasts),
    ]
    if len(contrasts):
        parts += ["## Rewrites and contrasts\n", _recipe(config, contrasts)]
    parts += ["## Parameters\n", _parameters(config)]
    parts += ["## Agreement with human scores\n", _human(config, evaluation["human_scores"])]
    if "ranking" in evaluation:
        parts += ["## Ranking test\n", _ranking(config, evaluation["ranking"])]
        parts += ["![score by kind of pair](scores_by_kind.png)\n"]
    parts += ["## Ablation\n", _ablation(evaluation["ablation"]), "![ablation](ablation.png)\n"]
    if config.note:
        parts += ["## How these settings were chosen\n", config.note + "\n"]
    if evaluation["information"]:
        parts += ["## For information\n", _information(evaluation["information"])]
    parts += ["## Score against each feature\n", _dependence(), "## Limits\n"]
    parts += [_LIMITS.format(low=config.min_characters, high=config.max_characters)]
    (output / CARD).write_text("\n".join(parts), encoding="utf-8")


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def _data(config, graded, rewrites, contrasts: pd.DataFrame) -> str:
    rows = []
    fitted = contrasts[contrasts["kind"] == "rewrite"] if len(contrasts) else contrasts
    for each in config.sets:
        pairs = graded if each.score_column else rewrites
        kept = pairs.table[pairs.table["set"] == each.name]
        dropped = pairs.left_out[each.name]
        out = ", ".join(f"{count} {reason}" for reason, count in dropped.items()) or "none"
        use = f"human scores ({each.scale})" if each.score_column else "human rewrites"
        used = len(kept) if each.score_column else int((fitted["set"] == each.name).sum())
        read = pairs.read[each.name]
        rows.append([each.name, each.licence, use, read, out, kept["source"].nunique(), used])
    header = ["set", "licence", "use", "pairs read", "left out", "sources", "pairs fitted"]
    text = _table(header, rows)
    if config.others:
        text += "\nUnrelated sentences come from the sets' other sources and from "
        text += f"`{config.others.path}` ({config.others.licence}).\n"
    return text


def _recipe(config, contrasts: pd.DataFrame) -> str:
    counts = contrasts["kind"].value_counts()
    text = (
        "A pair counts as a rewrite where at least "
        f"{config.minimum_edit_characters} characters, or {config.minimum_edit_share:.0%} of the "
        "source, were edited (Levenshtein); what is closer is a near-copy and not fitted on. Each "
        "rewrite gives one contrast of every kind that applies. Contrasts are made by a seeded generator from the sentences themselves. All rows "
        "of this table weigh 1 in total, in proportion to their weight; the human scores weigh "
        f"{config.graded_weight:g} in total.\n\n"
    )
    rows = [
        ["rewrite", "a human's", config.rewrite.target, config.rewrite.weight, counts["rewrite"]]
    ]
    for kind, each in config.contrasts.items():
        rows.append([kind, KINDS[kind], each.target, each.weight, counts.get(kind, 0)])
    return text + _table(["kind", "what is scored", "target", "weight", "rows"], rows)


def _parameters(config) -> str:
    from udfs.spscore.fit import LIGHTGBM, NEURAL

    defaults = LIGHTGBM if config.backend == "lightgbm" else NEURAL
    return _table(["parameter", "value"], list({**defaults, **config.parameters}.items()))


def _human(config, figures: dict) -> str:
    labels = {
        "alone": "fitted on the human scores alone",
        "recipe": "the recipe of this model (rewrites and contrasts too)",
    }
    rows = []
    for key, each in figures.items():
        interval = f"{each['low']:.3f} to {each['high']:.3f}"
        others = ", ".join(f"{value:.3f}" for value in each.get("shuffled", []))
        rows.append([labels[key], f"{each['spearman']:.3f}", interval, others])
    five = [figures["alone"]["spearman"], *figures["alone"]["shuffled"]]
    text = _table(["fit", "Spearman", "95 % interval", "other folds"], rows)
    return text + (
        f"\n{figures['alone']['pairs']} pairs, {config.folds}-fold cross-validation grouped by "
        "normalised source, sources dealt to the folds in the order of the file; intervals by "
        "bootstrap over sources (1,000 samples). *Other folds*: the same with the sources dealt "
        f"out in four other ways, by lot; the mean of all five is {np.mean(five):.3f}.\n"
    )


def _ranking(config, ranking: dict) -> str:
    held = ranking["held_out"]
    sets = list(held["pairs"])
    text = (
        f"A fit without {config.hold_out:.0%} of the sources ({held['sources']} held out, by a "
        "hash of the source). How often, in percent, a held-out human rewrite scores above each "
        "contrast of the same pair; a tie counts as a failure. Contrasts are made afresh with "
        "another seed; the interval is a bootstrap over sources. *pooled*: rewrites "
        "by the definition above, all sets; *with near-copies*: also those that change less.\n\n"
    )
    rows = [
        [kind, KINDS[kind], f"{100 * each['pooled']:.1f}"]
        + [f"{100 * each['low']:.1f} to {100 * each['high']:.1f}", f"{100 * each['all']:.1f}"]
        + [f"{100 * each[name]:.1f}" for name in sets]
        for kind, each in ranking["by_contrast"].items()
    ]
    rows.append(
        ["", "pairs", sum(held["pairs"].values()), "", held["all"], *held["pairs"].values()]
    )
    header = ["contrast", "what stands against the rewrite", "pooled", "95 % interval"]
    return text + _table([*header, "with near-copies", *sets], rows)


def _ablation(ablation: dict) -> str:
    ranked = "ranking" in ablation["none"]
    rows = []
    base = ablation["none"]["alone"]
    for label, each in ablation.items():
        name = "all features" if label == "none" else ", ".join(each["without"])
        row = [name, f"{each['alone']:.3f}", f"{each['alone'] - base:+.3f}"]
        if ranked:
            row += [f"{100 * each['ranking']:.1f}", f"{100 * each['worst']:.1f}"]
        rows.append(row)
    header = ["without", "Spearman, human scores alone", "change"]
    if ranked:
        header += ["ranking, mean of six (%)", "worst of six (%)"]
    return (
        "As in the paper's Table 3: the same fits without a feature or a group (structure: acs, "
        "spa, pmd, wpa; synonym replacement: lis, sbleu; consistency: sl, lr)."
        + (
            " The ranking columns are the recipe's, over the first six contrasts above, one fit each.\n\n"
            if ranked
            else "\n\n"
        )
        + _table(header, rows)
    )


def _information(figures: dict) -> str:
    rows = [[name, f"{each['value']:.3f}", each["pairs"]] for name, each in figures.items()]
    return (
        "Sets that the model was not fitted on. Their labels ask whether two sentences mean the "
        "same, copies included, which is not what this metric measures.\n\n"
        + _table(["set and figure", "value", "pairs"], rows)
    )


def _dependence() -> str:
    return (
        "Mean score over up to 2,000 pairs (held-out rewrites; without any, human-scored pairs) "
        "when one feature is set to each value in turn (partial dependence).\n\n"
        "![partial dependence](partial_dependence.png)\n"
    )


def plot(output: Path, model: SPScore, human, ranking_table: pd.DataFrame | None, evaluation: dict):
    """Writes the PNGs. ranking_table: held-out rewrites and contrasts, features and score."""
    if ranking_table is not None:
        _plot_kinds(output / "scores_by_kind.png", ranking_table)
    _plot_ablation(output / "ablation.png", evaluation["ablation"])
    background = human.features
    if ranking_table is not None:
        rewrites = ranking_table[ranking_table["kind"] == "rewrite"]
        background = rewrites[list(FEATURES)].to_numpy(np.float32)
    _plot_dependence(output / "partial_dependence.png", model, background)


def _plot_kinds(path: Path, table: pd.DataFrame) -> None:
    order = table.groupby("kind")["score"].median().sort_values().index
    figure, axes = plt.subplots(figsize=(8, 0.36 * len(order) + 1.2), layout="constrained")
    colours = ["#2a7f62" if kind == "rewrite" else "#b0b7bf" for kind in order]
    boxes = axes.boxplot(
        [table.loc[table["kind"] == kind, "score"] for kind in order],
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        patch_artist=True,
        widths=0.6,
        medianprops={"color": "black"},
    )
    for box, colour in zip(boxes["boxes"], colours, strict=True):
        box.set_facecolor(colour)
    axes.set_yticklabels([kind.replace("_", " ") for kind in order])
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("score (box: quartiles, whiskers: 5th to 95th percentile)")
    axes.set_title("Held-out sources: score by kind of pair")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _plot_ablation(path: Path, ablation: dict) -> None:
    labels = [label for label in ablation if label != "none"]
    panels = [("alone", "Spearman with human scores", 1.0)]
    if "ranking" in ablation["none"]:
        panels.append(("ranking", "rewrites ranked above contrasts (%)", 100.0))
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.6 * len(panels), 4.2), layout="constrained", squeeze=False
    )
    for axis, (key, title, factor) in zip(axes[0], panels, strict=True):
        values = [factor * ablation[label][key] for label in labels]
        base = factor * ablation["none"][key]
        colours = ["#5b8db8" if label in FEATURES else "#d08c45" for label in labels]
        axis.barh(labels, values, color=colours)
        axis.axvline(base, color="black", linewidth=1, linestyle="--")
        axis.set_title(f"all features: {base:.3g} (dashed)", fontsize=10)
        spread = max(max(values) - min(values), abs(base - min(values)), 1e-3)
        low = min(*values, base) - 0.4 * spread
        axis.set_xlim(low, max(*values, base) + 0.15 * spread)
        axis.invert_yaxis()
        axis.set_xlabel(title + " (axis cut)")
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].set_ylabel("left out")
    figure.suptitle("Ablation: without each feature (blue) and each group (orange)")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _plot_dependence(path: Path, model: SPScore, features: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    features = features[rng.permutation(len(features))[:2000]]
    figure, axes = plt.subplots(2, 4, figsize=(12, 5.4), layout="constrained", sharey=True)
    for column, axis in enumerate(axes.flat):
        name = model.features[column]
        known = features[:, column][np.isfinite(features[:, column])]
        if len(known):
            low, high = np.percentile(known, (1, 99))
            grid = np.linspace(low, high, 40)
            means = []
            for value in grid:
                changed = features.copy()
                changed[:, column] = value
                means.append(float(model.predict(changed).mean()))
            axis.plot(grid, means, color="#2a7f62")
            axis.plot(
                np.percentile(known, np.arange(2, 100, 4)), np.full(25, 0.01), "|", color="grey"
            )
        axis.set_title(_TITLES[name], fontsize=10)
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("mean score")
    axes[0, 0].set_ylim(0, 1)
    figure.suptitle("Partial dependence (marks: percentiles of the values observed)")
    figure.savefig(path, dpi=80)
    plt.close(figure)
