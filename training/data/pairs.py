"""Chooses the pairs of a stage of training, and gives them in batches of like length.

The main process writes a stage's pairs to a file, once; all processes of all machines map it into
memory. One order of batches, fixed by the seed, serves any number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from torch.utils.data import Dataset, Sampler

from gaixie.training.data.corpus import COLUMNS, Corpus
from gaixie.training.settings import PairSettings, Settings

FLOORS = ("meaning", "fluency")


def stage_pairs(corpus: Corpus, settings: Settings, stage: int) -> dict[str, pa.Table]:
    """Returns the train and validation pairs of a stage: source, paraphrase and, with a column of
    control codes, code.

    stage: its place in settings.curriculum, from 1. Raises ValueError if there are too few.
    """
    pairs, numbers = settings.pairs(stage), settings.curriculum[stage - 1]
    random = np.random.default_rng([settings.seed, stage])
    codes = [settings.data.codes] if settings.data.codes not in (None, "degree") else []
    columns = [*COLUMNS, *codes, *_columns_of(pairs)]
    found: dict[str, list[pa.Table]] = {"train": [], "validation": [], "test": []}
    for number in numbers:
        for split, table in corpus.read(number, columns):
            found[split].append(_choose(pairs, table, random) if split == "train" else table)
    train = _partners(pairs, pa.concat_tables(found["train"]), random)
    earlier = [number for before in settings.curriculum[: stage - 1] for number in before]
    if pairs.mix and earlier:
        mixed = [
            _choose(pairs, table, random)
            for number in earlier
            for split, table in corpus.read(number, columns)
            if split == "train"
        ]
        rows = round(len(train) * pairs.mix / (1 - pairs.mix))
        drawn = pa.concat_tables(mixed)
        train = pa.concat_tables([train, drawn.take(random.permutation(len(drawn))[:rows])])
    if len(train) < settings.batch.pairs:
        raise ValueError(
            f"{corpus.uri}: stage {stage} has too few training pairs for one batch: "
            f"{len(train):,} of {settings.batch.pairs:,}"
        )
    if not sum(map(len, found["validation"])):
        raise ValueError(f"{corpus.uri}: stage {stage} has no validation pair; use a larger share")
    held_out = pa.concat_tables(found["validation"])
    order = np.random.default_rng([corpus.split_seed, stage]).permutation(len(held_out))
    held_out = held_out.take(order[: settings.evaluation.pairs])
    # Columns of large strings stay in one piece, from which rows are taken without copying it.
    form = pa.schema([(name, pa.large_string()) for name in [*COLUMNS, *["code"] * bool(codes)]])
    both = {"train": train, "validation": held_out.take(np.argsort(lengths(held_out)))}
    return {
        split: table.select([*COLUMNS, *codes])
        .rename_columns(form.names)
        .cast(form)
        .combine_chunks()
        for split, table in both.items()
    }


def _columns_of(pairs: PairSettings) -> list[str]:
    floors = [name for name in FLOORS if getattr(pairs, f"min_{name}") is not None]
    return floors + ["origin"] * bool(pairs.weights)


def _choose(pairs: PairSettings, table: pa.Table, random: np.random.Generator) -> pa.Table:
    """Returns the pairs above the floors, each as often as the weight of its origin says."""
    for name in FLOORS:
        if (floor := getattr(pairs, f"min_{name}")) is not None:
            table = table.filter(pc.greater_equal(table[name], floor))
    if pairs.weights:
        weight = np.ones(len(table))
        for origin, value in pairs.weights.items():
            weight[pc.equal(table["origin"], origin).to_numpy()] = value
        times = np.floor(weight + random.random(len(table))).astype(int)
        table = table.take(np.repeat(np.arange(len(table)), times))
    return table


def _partners(pairs: PairSettings, table: pa.Table, random: np.random.Generator) -> pa.Table:
    """Returns at most max_partners pairs of each source, drawn at random."""
    if pairs.max_partners is None:
        return table
    order = random.permutation(len(table))
    source = pd.Series(pc.rank(table["source"], tiebreaker="dense").to_numpy()[order])
    before = source.groupby(source).cumcount().to_numpy()[np.argsort(order)]
    return table.filter(pa.array(before < pairs.max_partners))


def lengths(table: pa.Table) -> np.ndarray:
    """Returns the characters of the longer sentence of each pair, shape (pairs,)."""
    return np.maximum(*(pc.utf8_length(table[name]).to_numpy() for name in COLUMNS))


def write_table(table: pa.Table, path: Path) -> None:
    """Writes an Arrow file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    part.rename(path)


class PairFile(Dataset):
    """The pairs of an Arrow file, in memory that processes share."""

    def __init__(self, path: Path):
        self.table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        return self.table.take(rows).to_pylist()


class LikeLengths(Sampler):
    """Yields the rows of so many batches, epoch after epoch; the pairs of a batch have like
    lengths.

    Each epoch has its own order. The rows that fill no batch are drawn before the rows are sorted,
    and left out of this epoch. Iterating twice gives the same rows.
    """

    def __init__(self, lengths: np.ndarray, batch: int, batches: int, seed: Sequence[int]):
        self.lengths, self.batch, self.batches, self.seed = lengths, batch, batches, [*seed]

    def __len__(self) -> int:
        return self.batch * self.batches

    def __iter__(self) -> Iterator[int]:
        left, epoch = self.batches, 0
        while left > 0:
            random = np.random.default_rng([*self.seed, epoch])
            for rows in cut_batches(self.lengths, self.batch, random)[:left]:
                yield from rows.tolist()
                left -= 1
            epoch += 1


def cut_batches(lengths: np.ndarray, batch: int, random: np.random.Generator) -> list[np.ndarray]:
    """Returns the rows of each batch of an epoch."""
    rows = random.permutation(len(lengths))[: len(lengths) // batch * batch]
    rows = rows[np.argsort(lengths[rows], kind="stable")].reshape(-1, batch)
    return [rows[number] for number in random.permutation(len(rows))]
