"""Reads labelled pairs and splits them by source."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field

from gaixie.research.comparison.datasets import DataSet, read_data_set
from gaixie.research.ratings.tables import source_share
from gaixie.udfs.storage.settings import Strict

HELD_OUT, TEST = 0.15, 0.2
"""Shares of the sources: to choose thresholds and λ; to test on, if a set has no test file."""


class PairSet(DataSet):
    """A set of labelled pairs. ``path`` is all of it, or the training part beside ``test``."""

    test: str | None = None
    positive: float = 1.0
    """Human score from which a pair counts as a paraphrase: of six crowd judgements, 4 (MultiPIT,
    section 3.1)."""
    tie: float | None = None
    """Human score of pairs that are left out, such as 3 of six judgements."""


class Config(Strict):
    """conf/identification.yaml."""

    sets: list[PairSet] = Field(min_length=1)


class Labelled(NamedTuple):
    """Pairs and their labels. label: float64, 1 for a paraphrase, 0 otherwise, or in between."""

    source: np.ndarray
    paraphrase: np.ndarray
    label: np.ndarray

    def take(self, rows: np.ndarray) -> Labelled:
        return Labelled(self.source[rows], self.paraphrase[rows], self.label[rows])

    def join(self, other: Labelled) -> Labelled:
        return Labelled(*(np.concatenate(both) for both in zip(self, other, strict=True)))

    def __len__(self) -> int:
        """Returns the number of pairs, not of columns."""
        return len(self.label)


class Parts(NamedTuple):
    """Pairs to train on, to choose thresholds and λ on, and to report; they share no source."""

    train: Labelled
    held_out: Labelled
    test: Labelled


def read_parts(pairs: PairSet, folder: Path, limit: int = 0) -> Parts:
    """Reads the parts of a set. limit: training pairs, held-out ones included; 0 is all.

    Raises FileNotFoundError, or ValueError that names the file, if a part cannot be read or has
    only one class.
    """
    whole = read_pairs(pairs, folder)
    if pairs.test:
        test = read_pairs(pairs.model_copy(update={"path": pairs.test}), folder)
        whole = whole.take(np.flatnonzero(~np.isin(whole.source, test.source)))
    else:
        on_test = share(whole, "test") < TEST
        whole, test = whole.take(np.flatnonzero(~on_test)), whole.take(np.flatnonzero(on_test))
    whole = limited(whole, limit)
    out = share(whole, "held-out") < HELD_OUT
    parts = Parts(whole.take(np.flatnonzero(~out)), whole.take(np.flatnonzero(out)), test)
    for name, part in zip(Parts._fields, parts, strict=True):
        if len({*(part.label >= 0.5)}) < 2:
            raise ValueError(
                f"{folder / pairs.path}: {len(part)} {name} pairs, expected some of both classes"
            )
    return parts


def limited(pairs: Labelled, limit: int) -> Labelled:
    """Returns at most ``limit`` pairs, chosen by a hash of their sources; all if limit is 0."""
    return pairs.take(np.argsort(share(pairs, "limit"), kind="stable")[: limit or None])


def read_pairs(pairs: PairSet, folder: Path) -> Labelled:
    """Reads all pairs of a file except ties. Raises FileNotFoundError or ValueError."""
    table = read_data_set(pairs, folder)
    table = table[table["human"] != pairs.tie] if pairs.tie is not None else table
    label = (table["human"].to_numpy(float) >= pairs.positive).astype(float)
    return Labelled(table["source"].to_numpy(object), table["paraphrase"].to_numpy(object), label)


def share(pairs: Labelled, salt: str) -> np.ndarray:
    """Returns a hash in [0, 1) for each pair, equal for pairs of one source."""
    return source_share(pairs.source, salt)
