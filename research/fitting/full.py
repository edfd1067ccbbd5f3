"""Fits tier ``full``: trains the pair encoder, and heads that read it beside the features of core.

An encoder knows the ratings that it was trained on too well, and so does a model of tier core. So the
heads learn from what encoders and models of the other folds say of a pair (stacking), and those that ship
are trained on all pairs.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.research.fitting import held_out, pair_encoder, recipe, report
from gaixie.research.fitting.data import Config
from gaixie.research.fitting.encoder_examples import EncoderConfig, Example, Reader
from gaixie.research.fitting.pair_encoder import Network, example_of
from gaixie.research.fitting.recipe import Material
from gaixie.udfs.command_line import say
from gaixie.udfs.meaning.pair_encoder import TASKS, write_folder
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.spscore.columns import CORE_OUTPUTS, ENCODER_FEATURES
from gaixie.udfs.spscore.fit import group_folds
from gaixie.udfs.text.segmenters import Segmenter

NEGATIVES_OF = ("written_full", "mcts", "cip")
"""Kinds of pairs whose negatives the heads learn from: what the card's adversaries are made of."""
READ = (*CORE_OUTPUTS, *ENCODER_FEATURES)
"""What the heads read. With all features of core beside them they learn the few ratings by heart."""


def fit_full(
    config: Config,
    settings: EncoderConfig,
    material: Material,
    folder: Path,
    segmenter: Segmenter,
    output: Path,
) -> None:
    """Everything from sets to the saved folder; what was trained is kept in output/work."""
    rated, work = material.rated, output / "work"
    kinds = rated["kind"].to_numpy(object)[material.negatives.pairs]
    read = np.isin(kinds, NEGATIVES_OF)
    everything, material = material, material.with_negatives(read)

    say("full: the encoder, on judgements of others")
    tagger = lambda text: segmenter.tag([text])[0]  # noqa: E731
    banned = set(rated["source"]) | set(rated["paraphrase"])
    examples = Reader(settings, folder, banned, tagger).examples()
    say(f"  {len(examples):,} examples")
    base = pair_encoder.new_network(settings.encoder)
    pair_encoder.train(
        base, [examples] * settings.first.epochs, settings.first, settings.seed, work / "first.pt"
    )
    columns = out_of_fold(base, config, settings, material, work)
    say("full: the encoder, on all rated pairs")
    network = second(base, material, np.arange(len(rated)), settings, work / "all.pt")
    summary = {"encoder": settings.encoder, "examples": len(examples), "rated": len(rated)}
    encoder = output / "encoder"
    write_folder(encoder, network.network, network.config, network.tokenizer, TASKS, summary)

    say("full: tier core, cross-validated")
    core = recipe.cross_validate(everything, "core", config)
    core = core[: len(material.rows) + len(read)]
    core = core[np.append(np.ones(len(material.rows), bool), read)]
    material = with_columns(material, np.hstack([core, columns]))
    model = fit_core(config, everything, segmenter, output)
    more = describe_encoder(
        base, len(examples), config.human.name if config.human else "", everything, settings, work
    )
    report.fit_and_save(config, "full", material, segmenter, output, encoder, model, more, READ)


def out_of_fold(
    base: Network, config: Config, settings: EncoderConfig, material: Material, work: Path
) -> np.ndarray:
    """What encoders say of the rated pairs and negatives of the folds that they did not see.

    float32, shape (rated pairs and negatives, tasks).
    """
    columns = np.full((len(material.texts), len(ENCODER_FEATURES)), np.nan, np.float32)
    folds = list(group_folds(material.rows.groups.tolist(), config.folds, seed=0))
    masks = list(recipe.folds_of(material, config.folds))
    for number, ((fitted, _), (_, hidden)) in enumerate(zip(folds, masks, strict=True)):
        say(f"full: the encoder, without fold {number + 1} of {len(folds)}")
        network = second(base, material, fitted, settings, work / f"fold-{number}.pt")
        rows = np.flatnonzero(hidden[: len(columns)])
        pairs = list(material.texts.iloc[rows].itertuples(index=False, name=None))
        columns[rows] = pair_encoder.predict(network, pairs)
    return columns


def describe_encoder(
    base: Network, examples: int, name: str, material: Material, settings: EncoderConfig, work: Path
) -> dict[str, Any]:
    """What the card says of the encoder, and what it is worth on human scores."""
    figures: dict[str, Any] = {
        "encoder": {
            "name": Path(settings.encoder).name,
            "tasks": len(TASKS),
            "examples": examples,
            "sets": settings.paths(),
            "note": settings.note,
        }
    }
    if material.human is not None:
        say("full: human scores, cross-validated by source")
        human = held_out.human_scores(base, material, settings, work)
        figures["human_scores"] = human | {"name": name}
    return figures


def fit_core(config: Config, material: Material, segmenter: Segmenter, output: Path) -> str | Path:
    """What tier full reads as core: the model that ships where it is this one, else output/core."""
    rows = recipe.weighted(material, "core", config)[recipe.rows_to_fit(material, config)]
    name = f"{segmenter.name}-{segmenter.version}"
    model = recipe.fit(rows, "core", config, segmenter=name)
    if model.digest == SPScore.load("core").digest:
        return "core"
    model.save(output / "core")
    return output / "core"


def second(
    base: Network, material: Material, fitted: np.ndarray, settings: EncoderConfig, path: Path
) -> Network:
    """A copy of the network, trained on the rated pairs of rows fitted and their negatives."""
    network = replace(base, network=copy.deepcopy(base.network))
    rows, negatives = material.rows, material.negatives
    count = len(rows)
    texts: list[tuple[str, str]] = [*material.texts.itertuples(index=False, name=None)]
    targets, weights = rows.targets, rows.weight
    pairs = [example_of(texts[k][0], texts[k][1], targets[k], weights[k]) for k in fitted]
    seen = np.isin(negatives.pairs, fitted)
    made = [example_of(*texts[count + k], negatives.targets[k], 0.5) for k in np.flatnonzero(seen)]
    human: list[Example] = []
    if material.human is not None:
        hidden = set(rows.groups.tolist()) - set(rows.groups[fitted].tolist())
        human = [
            Example(source, paraphrase, {"human": score}, None, 0.5)
            for source, paraphrase, score, group in zip(
                *(material.human_texts[name] for name in ("source", "paraphrase", "human")),
                material.human.groups,
                strict=True,
            )
            if group not in hidden
        ]
    epochs = pair_encoder.second_phase(pairs, made, human, settings)
    pair_encoder.train(network, epochs, settings.second, settings.seed, path)
    return network


def with_columns(material: Material, columns: np.ndarray) -> Material:
    """The material with the outputs of core and the encoder's columns behind the features of core.

    columns: shape (rated pairs and negatives, 5 + tasks). Human scores, which no encoder read, are left
    out: a head of this tier cannot learn from them.
    """
    count = len(material.rows)
    parts = []
    for rows, new in ((material.rows, columns[:count]), (material.negatives, columns[count:])):
        new = new[: len(rows)]
        parts.append(replace(rows, features=np.hstack([rows.features, new])))
    return replace(material, rows=parts[0], negatives=parts[1], human=None)
