"""Pairs whose label is known without a rating: groups written to say the same, and their
counterparts.

Nobody rated most of them. But a counterpart was written to be wrong in one way, and pairs of its
kind were rated: their mean is its target, for ``meaning`` and ``spscore`` alone. Held-out groups
stay out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gaixie.research.fitting.data import ROOT, Known, Rows
from gaixie.research.pair_encoder.evaluation import KINDS
from gaixie.research.pair_encoder.ratings import RATINGS, read_json_lines
from gaixie.research.pair_encoder.sets import for_heads, held_out
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter

TAUGHT = [OUTPUTS.index(name) for name in ("meaning", "spscore")]


Pair = tuple[str, str, str]
"""(source, paraphrase, kind)."""


def known_rows(
    pairs: Iterable[Pair], weight: float, rated: pd.DataFrame, segmenter: Segmenter
) -> Rows:
    """The rows of the pairs whose kind was rated; all together they weigh so much of the rated
    pairs.

    A group that has rated pairs keeps its number there, and so its side of a split.
    """
    table = pd.DataFrame([*pairs], columns=["source", "paraphrase", "kind"])
    table = table[table["kind"].isin(set(rated["kind"]))]
    table[["source", "paraphrase"]] = table[["source", "paraphrase"]].map(normalise)
    means = rated.groupby("kind")[list(RATINGS)].mean()
    targets = np.full((len(table), len(OUTPUTS)), np.nan)
    targets[:, TAUGHT] = means.loc[table["kind"]].to_numpy()[:, TAUGHT]
    group_of = dict(zip(rated["source"], rated["group"], strict=True))
    table["group"] = [group_of.get(source, source) for source in table["source"]]
    return Rows.of(table, targets, weight * len(rated) / max(len(table), 1), segmenter)


def pairs_for_core(settings: Known, folder: Path) -> Iterator[Pair]:
    """Of the groups that came with the data, and of the free rewrites."""
    broken = {row["group"]: row for row in read_json_lines(folder / settings.broken)}
    for row in read_json_lines(folder / settings.groups):
        if row["group"] in broken and not held_out(row["group"]):
            yield from _of_group(row, broken[row["group"]])
    for row in read_json_lines(ROOT / settings.rewritten):
        if not held_out(row["group"]):
            for text in row["same"]:
                yield row["source"], text, "written_rewrite"
            for kind, text in zip(row["kinds"], row["wrong"], strict=True):
                yield row["source"], text, f"written_rewrite_{kind}"


def pairs_for_full(settings: Known) -> Iterator[Pair]:
    """Of groups that the pair encoder has not learned from."""
    broken = {row["group"]: row for row in read_json_lines(ROOT / settings.own_broken)}
    for row in read_json_lines(ROOT / settings.own_groups):
        if row["group"] in broken and for_heads(row["group"]):
            yield from _of_group(row, broken[row["group"]])


def _of_group(row: dict[str, Any], broken: dict[str, str]) -> Iterator[Pair]:
    source, *others = row["texts"]
    for number, text in enumerate(others, 1):
        yield source, text, f"written_S{number}"
    for kind in KINDS:
        yield source, broken[kind], f"written_{kind}"
