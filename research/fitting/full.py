"""Fits tier ``full``: heads that read tier core's outputs and the pair encoder's.

The encoder knows the ratings that it was trained on too well, and so does a model of tier core. So the heads
learn from rated pairs that the encoder never saw (its parts ``heads`` and ``test``), with the
outputs of core models that did not see them either (stacking).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gaixie.research.fitting import recipe, report
from gaixie.research.fitting.data import Config
from gaixie.research.fitting.recipe import Material
from gaixie.udfs.command_line import say
from gaixie.udfs.meaning.pair_encoder import PairEncoder
from gaixie.udfs.spscore import SHIPPED
from gaixie.udfs.spscore.columns import CORE_OUTPUTS, ENCODER_FEATURES
from gaixie.udfs.text.segmenters import Segmenter

NEGATIVES_OF = ("written_full", "mcts", "cip")
"""Kinds of pairs whose negatives the heads learn from: what the card's adversaries are made of."""
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
    core = recipe.cross_validate(material, "core", config)
    unseen = (material.rated["part"] != "encoder").to_numpy()
    kinds = material.rated["kind"].to_numpy(object)[material.negatives.pairs]
    chosen = np.isin(kinds, NEGATIVES_OF) & unseen[material.negatives.pairs]
    kept = np.concatenate([unseen, chosen])
    core = core[: len(kept)][kept]
    material = only(material, unseen, chosen)

    say(f"full: the encoder reads {len(core):,} pairs")
    texts = material.texts
    encoded = PairEncoder.load().predict(texts["source"].tolist(), texts["paraphrase"].tolist())
    columns = np.hstack([core, encoded])
    material = with_columns(material, columns)
    own_core = "core" if output.parent == SHIPPED else output.parent / "core"
    report.fit_and_save(config, "full", material, segmenter, output, own_core, folder, READ)


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
        human=None,
        known=None,
    )


def with_columns(material: Material, columns: np.ndarray) -> Material:
    """The material with further columns behind the features of core.

    columns: shape (rated pairs and negatives, 5 + tasks).
    """
    count = len(material.rows)
    parts = [
        replace(rows, features=np.hstack([rows.features, new]))
        for rows, new in (
            (material.rows, columns[:count]),
            (material.negatives, columns[count:]),
        )
    ]
    return replace(material, rows=parts[0], negatives=parts[1])
