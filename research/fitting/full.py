"""Fits tier ``full``: heads that read tier core's outputs and the pair encoder's.

The encoder knows the ratings that it was trained on too well, and so does a model of tier core. So
the heads learn from rated pairs that the encoder never saw (its parts ``heads`` and ``test``), with
the outputs of core models that did not see them either (stacking).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gaixie.research.fitting import recipe, report
from gaixie.research.fitting.data import Config, Known, Rows, known_rows, pairs_for_full
from gaixie.research.fitting.recipe import Material
from gaixie.udfs.command_line import say
from gaixie.udfs.meaning.pair_encoder import PairEncoder
from gaixie.udfs.spscore import SHIPPED, SPScore
from gaixie.udfs.spscore.columns import CORE_OUTPUTS, ENCODER_FEATURES
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter

NEGATIVES_OF = ("written_full", "mcts", "cip")
"""Kinds of pairs whose negatives the heads learn from: what the card's adversaries are made of."""
STACKED = 1
"""Fits of each head of the core models that are stacked: one, for time."""
READ = (*CORE_OUTPUTS, *ENCODER_FEATURES, "lr", "words_repeated")
"""What the heads read. The encoder does not mind a sentence that is said twice, so the last two are
there; with all features of core the heads would learn the few ratings by heart."""


def fit_full(
    config: Config, material: Material, folder: Path, segmenter: Segmenter, output: Path
) -> None:
    """Cross-validates core, reads the pairs that the encoder never saw, and saves the tier.

    folder: of the sets. Tier core must have been fitted into the folder beside output.
    """
    say("full: tier core, cross-validated")
    core = recipe.cross_validate(material, "core", config.model_copy(update={"seeds": STACKED}))
    unseen = (material.rated["part"] != "encoder").to_numpy()
    kinds = material.rated["kind"].to_numpy(object)[material.negatives.pairs]
    chosen = np.isin(kinds, NEGATIVES_OF) & unseen[material.negatives.pairs]
    kept = np.concatenate([unseen, chosen])
    core = core[: len(kept)][kept]
    material = only(material, unseen, chosen)
    fitted_core = SHIPPED / "core" if output.parent == SHIPPED else output.parent / "core"

    say(f"full: the encoder reads {len(core):,} pairs")
    texts = material.texts
    encoded = PairEncoder.load().predict(texts["source"].tolist(), texts["paraphrase"].tolist())
    columns, count = np.hstack([core, encoded]), len(material.rows)
    material = replace(
        material,
        rows=_wider(material.rows, columns[:count]),
        negatives=_wider(material.negatives, columns[count:]),
    )
    if config.known:
        known = _known(config.known, material, fitted_core, segmenter)
        material = replace(material, others={"known": known})
    core_name = "core" if output.parent == SHIPPED else fitted_core
    report.fit_and_save(config, "full", material, segmenter, output, core_name, folder, READ)


def _known(settings: Known, material: Material, core: Path, segmenter: Segmenter) -> Rows:
    """Written groups that neither the encoder nor tier core has learned from."""
    kinds = set(material.rated["kind"])
    pairs = [pair for pair in pairs_for_full(settings) if pair[2] in kinds]
    rows = known_rows(pairs, settings.weight, material.rated, segmenter)
    sources = [normalise(source) for source, _, _ in pairs]
    paraphrases = [normalise(paraphrase) for _, paraphrase, _ in pairs]
    encoded = PairEncoder.load().predict(sources, paraphrases)
    judged = SPScore.load(str(core)).predict(rows.features)
    return _wider(rows, np.hstack([judged, encoded]))


def _wider(rows: Rows, columns: np.ndarray) -> Rows:
    return replace(rows, features=np.hstack([rows.features, columns]))


def only(material: Material, rated: np.ndarray, negatives: np.ndarray) -> Material:
    """The material with some of the rated pairs and some of their negatives, and nothing else."""
    places = np.cumsum(rated) - 1
    chosen = material.negatives[negatives]
    return replace(
        material,
        rated=material.rated[rated].reset_index(drop=True),
        written=material.written[rated],
        rows=material.rows[rated],
        negatives=replace(chosen, pairs=places[chosen.pairs]),
        texts=material.texts[np.concatenate([rated, negatives])],
        others={},
    )
