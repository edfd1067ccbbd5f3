"""Fits a tier of SPScore-zh from beginning to end, and writes the folder with its card.

Tier ``full`` reads tier core's outputs and the pair encoder's. The encoder knows the ratings that
it was trained on too well, and so does a model of tier core. So the heads learn from rated pairs
that the encoder never saw (its parts ``heads`` and ``test``), with the outputs of core models that
did not see them either (stacking).
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.research.fitting import evaluation
from gaixie.research.fitting.data import Config, Rows, known_rows, pairs_for_full
from gaixie.research.fitting.recipe import Material, cross_validate, fit, rows_to_fit, weighted
from gaixie.research.pair_encoder.sets import JUDGED
from gaixie.research.ratings.rated import DRAFT, TRANSLATED
from gaixie.udfs.command_line import say
from gaixie.udfs.meaning.core_features import FAMILIES
from gaixie.udfs.meaning.pair_encoder import DESCRIPTION, PairEncoder
from gaixie.udfs.meaning.pair_encoder import SHIPPED as SHIPPED_ENCODER
from gaixie.udfs.reports import render
from gaixie.udfs.spscore import OUTPUTS, SHIPPED, TIERS, VERSION, SPScore
from gaixie.udfs.spscore.model import CORE_OUTPUTS, ENCODER_FEATURES
from gaixie.udfs.spscore.stages import RATED_MIN_MEANING, stage
from gaixie.udfs.text.segmenters import Segmenter

TEMPLATE = Path(__file__).with_name("card.md.j2")
PAPER_GROUPS = {
    "structure (ACS, SPA, PMD, WPA)": ("acs", "spa", "pmd", "wpa"),
    "synonym replacement (LIS, SBLEU)": ("lis", "sbleu"),
    "consistency (SL, LR)": ("sl", "lr"),
}
"""The paper's three groups of features."""
NEGATIVES_OF = ("written_full", "mcts", "cip")
"""Kinds of pairs whose negatives the heads learn from: what the card's adversaries are made of."""
STACKED = 1
"""Fits of each head of the core models that are stacked: one, for time."""
READ = (*CORE_OUTPUTS, *ENCODER_FEATURES, "lr", "words_repeated")
"""What the heads read. The encoder does not mind a sentence that is said twice, so the last two are
there; with all features of core the heads would learn the few ratings by heart."""


def fit_and_save(
    config: Config,
    tier: str,
    material: Material,
    segmenter: Segmenter,
    output: Path,
    core: Path | str = "core",
    folder: Path | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Cross-validates and fits a tier; the model is written last, when nothing can fail any more.

    core: the model of tier core that tier full reads. folder: where sets lie that nothing is fitted
    on. columns: features that the heads read, by default all of the tier.
    """
    rated = material.rated
    if tier == "paper":  # its eight features cannot tell a counterpart from a paraphrase
        others = {name: rows for name, rows in material.others.items() if name != "known"}
        material = replace(material, others=others)
    say(f"{tier}: cross-validation in {config.folds} folds")
    outputs = cross_validate(material, tier, config, columns)
    real = np.flatnonzero(~material.written)
    points = evaluation.calibration_points(outputs[real, -1], material.rows.targets[real, -1])
    if points:
        outputs[:, -1] = np.interp(outputs[:, -1], *np.array(points).T)
    nothing = dict.fromkeys(("ablation", "encoder", "counterparts", "entailment"))
    figures: dict[str, Any] = {**nothing, **measure(material, outputs)}
    for part, row in figures["correlations"].items():
        rhos = [f"{output} {row[output]['spearman']:.3f}" for output in OUTPUTS]
        say(f"  {part}: {', '.join(rhos)}")
    if config.ablation:
        say(f"{tier}: ablation")
        figures["ablation"] = ablate(material, tier, config, columns or TIERS[tier])
    if tier == "full":  # how it was trained, and what it sees on pairs it never saw
        path = SHIPPED_ENCODER / DESCRIPTION
        figures["encoder"] = json.loads(path.read_text("utf-8"))["summary"]
    summary = {
        "rated": {config.rated.name: len(rated)},
        "raters": config.rated.raters,
        "negatives": len(material.negatives),
        "thresholds": figures["thresholds"],
    }
    rows = weighted(material, tier, config)[rows_to_fit(material, config)]
    cutter = f"{segmenter.name}-{segmenter.version}"
    model = fit(rows, tier, config, columns, segmenter=cutter, summary=summary)
    model.calibration = [[*point] for point in points]
    if tier == "full":
        model.bind(core)
    if folder:
        say(f"{tier}: sets that nothing was fitted on")
        figures |= evaluation.unseen_figures(model, folder)
    figures |= describe(config, material, tier, model.signature(segmenter)) | {"points": points}
    output.mkdir(parents=True, exist_ok=True)
    write_card(output, figures)
    model.save(output)
    print(f"{model.signature(segmenter)}\n{output}")


def fit_full(
    config: Config, material: Material, folder: Path, segmenter: Segmenter, output: Path
) -> None:
    """Cross-validates core, reads the pairs that the encoder never saw, and saves the tier.

    folder: of the sets. Tier core must have been fitted into the folder beside output.
    """
    say("full: tier core, cross-validated")
    stacked = config.model_copy(update={"seeds": STACKED})
    fitted_core = output.parent / "core"
    core_model, outputs = SPScore.load(str(fitted_core)), cross_validate(material, "core", stacked)
    outputs[:, -1] = core_model.calibrated(outputs[:, -1])
    core = material.parts(outputs)
    unseen = (material.rated["part"] != "encoder").to_numpy()
    kinds = material.rated["kind"].to_numpy(object)[material.negatives.pairs]
    chosen = np.isin(kinds, NEGATIVES_OF) & unseen[material.negatives.pairs]
    negatives = material.negatives[chosen]
    places = np.cumsum(unseen) - 1

    say(f"full: the encoder reads {unseen.sum() + chosen.sum():,} pairs")
    others = {}
    for human in config.human:
        if human.path not in JUDGED:
            rows = material.others[human.name]
            rows = replace(rows, weight=rows.weight * unseen.mean())  # so many are left
            others[human.name] = with_encoder(rows, core[human.name])
    if config.known:  # written groups that neither the encoder nor tier core has learned from
        rows = known_rows(pairs_for_full(), config.known, material.rated[unseen], segmenter)
        others["known"] = with_encoder(rows, core_model.predict(rows.features))
    material = replace(
        material,
        rated=material.rated[unseen].reset_index(drop=True),
        written=material.written[unseen],
        rows=with_encoder(material.rows[unseen], core["rated"][unseen]),
        negatives=with_encoder(
            replace(negatives, pairs=places[negatives.pairs]), core["negatives"][chosen]
        ),
        others=others,
    )
    core_name = "core" if output.parent == SHIPPED else fitted_core
    fit_and_save(config, "full", material, segmenter, output, core_name, folder, READ)


def with_encoder(rows: Rows, judged: np.ndarray) -> Rows:
    """The rows with the columns of tier full: also tier core's outputs, and the encoder's."""
    encoded = PairEncoder.load().predict(*rows.texts.T.tolist())
    return replace(rows, features=np.hstack([rows.features, judged, encoded]))


def measure(material: Material, outputs: np.ndarray) -> dict[str, Any]:
    """The figures of the card from out-of-fold outputs."""
    rows, count, found = material.rows, len(material.rows), material.parts(outputs)
    own, negative = found["rated"], found["negatives"]
    parts = parts_of(material)
    origins = material.rated["origin"].to_numpy(object)
    scores, overall = own[:, -1], rows.targets[:, -1]
    thresholds = evaluation.choose_thresholds(scores, overall, origins)
    meaning = own[:, OUTPUTS.index("meaning")]
    least = {origin: RATED_MIN_MEANING[origin] for origin in thresholds}
    number = np.zeros(count, int)
    for origin, points in thresholds.items():
        inside = origins == origin
        number[inside] = stage(scores[inside], points, meaning[inside], least[origin])
    known = np.isin(origins, list(thresholds))
    return {
        "correlations": evaluation.correlations(own, rows.targets, rows.groups, parts),
        "people": [
            evaluation.with_people(name, material.others[name], found[name][:, -1])
            for name in material.human_lines
            if name in material.others
        ],
        "by_kind": evaluation.by_kind(own, rows.targets, rows.kinds),
        "adversaries": evaluation.adversaries(rows, own, material.negatives, negative),
        "thresholds": thresholds,
        "min_meaning": least,
        "stage_ratings": evaluation.STAGE_RATINGS,
        "stages": evaluation.stages(number, rows.targets, rows.groups, known),
        "stages_by_origin": {
            origin: evaluation.stages(number, rows.targets, rows.groups, origins == origin)
            for origin in thresholds
        },
        "top": evaluation.top(scores, overall, rows.groups, ~material.written),
        "calibration": evaluation.calibration(scores, overall, origins),
    }


def parts_of(material: Material) -> dict[str, np.ndarray]:
    """The pairs that figures are given for apart: real ones, those of later rounds and of the
    newest, written ones, drafts of a language model."""
    newest, drafts = ((material.rated["kind"] == kind).to_numpy() for kind in (TRANSLATED, DRAFT))
    later = (material.rated["rater"].fillna("") != "").to_numpy() & ~newest
    written = material.written
    real = ~written & ~later & ~newest
    parts = {"real": real, "later": ~written & later, "newest": newest}
    parts |= {"written": written & ~drafts, "drafts": drafts}
    return {name: rows for name, rows in parts.items() if rows.any()}


def ablate(
    material: Material, tier: str, config: Config, columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Spearman and Pearson of spscore with all features, then without each one or each family.

    CSPC's Table 3 does so for its eight features. Every row, the first too, is fitted with the same
    single seed, and has 95 % intervals by group. columns: the features that the heads read
    otherwise.
    """
    if tier == "paper":
        left_out = {name: (name,) for name in TIERS["paper"]} | PAPER_GROUPS
    else:
        left_out = {f"udfs/meaning/{family}.py": names for family, names in FAMILIES.items()}
        left_out["the eight features"] = TIERS["paper"]
    rows, table, parts = material.rows, [], parts_of(material)
    fewer = config.model_copy(update={"seeds": 1})
    for label, names in {"nothing": (), **left_out}.items():
        kept = [name for name in columns if name not in names]
        scores = cross_validate(material, tier, fewer, kept)[: len(rows), -1]
        row: dict[str, Any] = {"label": label}
        for part, inside in parts.items():
            own = scores[inside], rows.targets[inside, -1], rows.groups[inside]
            row[part] = evaluation.both_correlations(*own)
        table.append(row)
        found = ", ".join(f"{row[part]['spearman']:.3f} {part}" for part in parts)
        say(f"  without {label}: {found}")
    return table


def describe(config: Config, material: Material, tier: str, signature: str) -> dict[str, Any]:
    """What the card says beside its figures."""
    rated = config.rated.model_dump(include={"name", "licence", "raters"})
    rated |= {"pairs": len(material.rated), "groups": int(material.rated["group"].nunique())}
    human = [
        given.model_dump(include={"name", "licence"})
        | {"pairs": len(material.others[given.name]), **material.human_lines[given.name]}
        for given in config.human
        if given.name in material.others
    ]
    return {
        "version": VERSION,
        "tier": tier,
        "signature": signature,
        "columns": list(TIERS[tier]),
        "outputs": list(OUTPUTS),
        "folds": config.folds,
        "note": config.note,
        "rated": rated,
        "human": human,
        "negatives": {"pairs": len(material.negatives), "kinds": len({*material.negatives.kinds})},
    }


def write_card(folder: Path, figures: dict[str, Any]) -> None:
    """card.md and evaluation.json, which hold the same figures."""
    text = json.dumps(figures, ensure_ascii=False, indent=1, default=float)
    (folder / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    card = render(TEMPLATE, percent=lambda x: "–" if x is None else f"{100 * x:.1f} %", **figures)
    (folder / "card.md").write_text(card, encoding="utf-8")
