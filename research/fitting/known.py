"""Pairs whose label is known without a rating: groups written to say the same, and their counterparts.

Nobody rated most of them. But a counterpart was written to be wrong in one way, and pairs of its kind
were rated: their mean is its target, for ``meaning`` and ``spscore`` alone. Held-out groups stay out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from gaixie.research.fitting.data import ROOT, Known, Rows, extract
from gaixie.research.pair_encoder.evaluation import KINDS
from gaixie.research.pair_encoder.examples import held_out
from gaixie.research.pair_encoder.ratings import RATINGS, read_json_lines
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import Segmenter

TAUGHT = [OUTPUTS.index(name) for name in ("meaning", "spscore")]


def known_rows(settings: Known, folder: Path, rated: pd.DataFrame, segmenter: Segmenter) -> Rows:
    """The rows. A group that has rated pairs keeps its number there, and so its side of a split."""
    pairs = pd.DataFrame(
        [*_written(settings, folder), *_rewritten(settings)],
        columns=["source", "paraphrase", "kind"],
    )
    pairs = pairs[pairs["kind"].isin(set(rated["kind"]))]
    pairs[["source", "paraphrase"]] = pairs[["source", "paraphrase"]].map(normalise)
    means = rated.groupby("kind")[list(RATINGS)].mean()
    targets = np.full((len(pairs), len(OUTPUTS)), np.nan)
    targets[:, TAUGHT] = means.loc[pairs["kind"]].to_numpy()[:, TAUGHT]
    group_of = dict(zip(rated["source"], rated["group"], strict=True))
    return Rows(
        extract(pairs["source"], pairs["paraphrase"], segmenter),
        targets,
        np.full(len(pairs), settings.weight * len(rated) / max(len(pairs), 1)),
        pairs["source"].map(lambda source: group_of.get(source, source)).to_numpy(object),
        pairs["kind"].to_numpy(object),
        np.full(len(pairs), -1),
    )


def _written(settings: Known, folder: Path) -> Iterator[tuple[str, str, str]]:
    broken = {row["group"]: row for row in read_json_lines(folder / settings.broken)}
    for row in read_json_lines(folder / settings.groups):
        group, (source, *others) = row["group"], row["texts"]
        if group in broken and not held_out(group):
            for number, text in enumerate(others, 1):
                yield source, text, f"written_S{number}"
            for kind in KINDS:
                yield source, broken[group][kind], f"written_{kind}"


def _rewritten(settings: Known) -> Iterator[tuple[str, str, str]]:
    for row in read_json_lines(ROOT / settings.rewritten):
        if not held_out(row["group"]):
            for text in row["same"]:
                yield row["source"], text, "written_rewrite"
            for kind, text in zip(row["kinds"], row["wrong"], strict=True):
                yield row["source"], text, f"written_rewrite_{kind}"
