"""Chooses the pairs that a stage learns from, how often, and the degree of change told to the
model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gaixie.training.settings import PairSettings
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.self_bleu import SelfBLEU

FLOORS = ("meaning", "fluency")
CHANGE = ("structure", "synonyms")
UNTOLD = 0.15
"""Share of the training pairs whose degree is not told, so that the model works without it."""
DEGREE_EDGES = (0.08, 0.15, 0.22, 0.3)
"""Lower bounds of degrees 2, 3, 4 and 5."""


def columns_of(settings: PairSettings) -> list[str]:
    """Returns the columns that the settings need besides source and paraphrase."""
    names = [name for name in FLOORS if getattr(settings, f"min_{name}") is not None]
    names += CHANGE if settings.degrees else ()
    return names + ["origin"] * bool(settings.weights)


def choose(settings: PairSettings, table: pa.Table, random: np.random.Generator) -> pa.Table:
    """Returns the pairs above the floors, each as often as the weight of its origin says."""
    for name in FLOORS:
        if (floor := getattr(settings, f"min_{name}")) is not None:
            table = table.filter(pc.greater_equal(table[name], floor))
    if settings.max_self_bleu is not None:
        texts = (
            table[name].combine_chunks().cast(pa.string()) for name in ("source", "paraphrase")
        )
        copied = SelfBLEU(tokenize="zh-word").sentence_scores(Pairs(*texts))
        table = table.filter(pa.array(copied <= settings.max_self_bleu))
    if settings.weights:
        weight = np.ones(len(table))
        for origin, value in settings.weights.items():
            weight[pc.equal(table["origin"], origin).to_numpy()] = value
        times = np.floor(weight + random.random(len(table))).astype(int)
        table = table.take(np.repeat(np.arange(len(table)), times))
    if settings.max_partners is not None:
        table = table.filter(pa.array(_partners(table["source"], random) < settings.max_partners))
    return table


def degree_of(structure: np.ndarray, synonyms: np.ndarray) -> np.ndarray:
    """Returns the degree of change, 1 to 5, from the mean of the two judgements of change."""
    return 1 + np.searchsorted(DEGREE_EDGES, (structure + synonyms) / 2, side="right")


def _partners(source: pa.ChunkedArray, random: np.random.Generator) -> np.ndarray:
    """Returns, for each row, how many rows of the same source precede it in a random order."""
    order = random.permutation(len(source))
    before = pd.Series(pc.rank(source, tiebreaker="dense").to_numpy()[order])
    return before.groupby(before).cumcount().to_numpy()[np.argsort(order)]
