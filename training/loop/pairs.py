"""Chooses the pairs of a stage of training from a published run or release, and gives them in
batches of like length.

The main process writes a stage's pairs to a file, once; all processes of all machines map it into
memory. One order of batches, fixed by the seed, serves any number of processes.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import feather
from torch.utils.data import Dataset, Sampler

from gaixie.training.settings import Data, PairSettings, Settings
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, ReleaseManifest, read_manifest
from gaixie.udfs.storage.tables import check_columns, opened
from gaixie.udfs.text.splits import GROUP, SPLITS, splits_of

COLUMNS = ("source", "paraphrase")
FLOORS = ("meaning", "fluency")


class Corpus:
    """The pairs of a published run or release.

    Shares and seed of the split mean the same as in jobs/release_dataset.py, and are ignored for a
    release that is already split. Raises OSError or ValueError, here and when pairs are read, with
    one line that names the file.
    """

    def __init__(self, data: Data):
        self.uri, self.seed = data.uri, data.split_seed
        self.shares = (1 - data.validation - data.test, data.validation, data.test)
        self.manifest = read_manifest(self.uri)
        self.digest = storage.sha256(storage.join(self.uri, MANIFEST))
        """SHA-256 of the manifest, which identifies the data."""
        self.is_split = False
        """Whether it is a release with its own splits."""
        if isinstance(self.manifest, ReleaseManifest):
            self.name = f"release {self.manifest.version} of {self.manifest.name}"
            self.is_split = sum(share > 0 for share in self.manifest.settings.split.values()) > 1
            self._folder = "subset=stage-"
            files = [f"{self.manifest.build}/{file.path}" for file in self.manifest.data_files]
        else:
            self.name, self._folder = f"run {self.manifest.run_id}", "stage="
            files = [file.path for file in self.manifest.files.get("scored", [])]
        self._files = sorted(files)

    def read(self, stage: int, columns: Sequence[str] = COLUMNS) -> Iterator[tuple[str, pa.Table]]:
        """Yields (split, its pairs) of each file of a stage.

        columns: ``origin`` may come from the files' paths. Raises ValueError if the stage has no
        pairs.
        """
        paths = [path for path in self._files if f"{self._folder}{stage}" in path.split("/")]
        if not paths:
            raise ValueError(f"{self.uri}: stage {stage} has no pairs")
        for path in paths:
            uri = storage.join(self.uri, path)
            above = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
            with opened(uri) as file:
                reader = pq.ParquetFile(file, pre_buffer=True, page_checksum_verification=True)
                names = reader.schema_arrow.names
                check_columns(uri, columns, [*dict.fromkeys([*names, *above])])
                table = reader.read([one for one in names if one in (*columns, "source", GROUP)])
            for name in {*columns} - {*names}:
                table = table.append_column(name, pa.array([above[name]] * len(table)))
            if self.is_split:
                yield above["split"], table.select(columns)
                continue
            key = table["source"]
            if GROUP in names:
                key = pc.coalesce(table[GROUP].cast(pa.string()), key)
            split = splits_of(key, self.shares, self.seed)
            for number, name in enumerate(SPLITS):
                yield name, table.select(columns).filter(pa.array(split == number))


def stage_pairs(corpus: Corpus, settings: Settings, stage: int) -> dict[str, pa.Table]:
    """Returns the train and validation pairs of a stage: source, paraphrase and, with a column of
    control codes, code.

    stage: its place in settings.curriculum, from 1. Raises ValueError if there are too few.
    """
    pairs, random = settings.pairs(stage), np.random.default_rng([settings.seed, stage])
    if odd := {*pairs.weights} - {*corpus.manifest.rows}:
        there = ", ".join(corpus.manifest.rows)
        raise ValueError(f"weights: {corpus.uri} has no origin {min(odd)!r}, it has: {there}")
    codes = [settings.data.codes] if settings.data.codes not in (None, "degree") else []
    floors = [name for name in FLOORS if getattr(pairs, f"min_{name}") is not None]
    columns = [*COLUMNS, *codes, *floors, *["origin"] * bool(pairs.weights)]

    def read(numbers: Sequence[int]) -> dict[str, list[pa.Table]]:
        found = defaultdict(list)
        for number in numbers:
            for split, table in corpus.read(number, columns):
                found[split].append(_choose(pairs, table, random) if split == "train" else table)
        return found

    found = read(settings.curriculum[stage - 1])
    train = _partners(pairs, pa.concat_tables(found["train"]), random)
    earlier = [number for before in settings.curriculum[: stage - 1] for number in before]
    if pairs.mix and earlier:
        rows = round(len(train) * pairs.mix / (1 - pairs.mix))
        drawn = pa.concat_tables(read(earlier)["train"])
        train = pa.concat_tables([train, drawn.take(random.permutation(len(drawn))[:rows])])
    if len(train) < settings.batch.pairs:
        fault = f"too few training pairs for one batch: {len(train):,} of {settings.batch.pairs:,}"
        raise ValueError(f"{corpus.uri}: stage {stage} has {fault}")
    if not sum(map(len, found["validation"])):
        raise ValueError(f"{corpus.uri}: stage {stage} has no validation pair; use a larger share")
    held_out = pa.concat_tables(found["validation"])
    order = np.random.default_rng([corpus.seed, stage]).permutation(len(held_out))
    held_out = held_out.take(order[: settings.evaluation.pairs])
    held_out = held_out.take(np.argsort(lengths(held_out)))
    # Columns of large strings stay in one piece, from which rows are taken without copying it.
    form = pa.schema([(name, pa.large_string()) for name in [*COLUMNS, *["code"] * bool(codes)]])

    def formed(table: pa.Table) -> pa.Table:
        named = table.select([*COLUMNS, *codes]).rename_columns(form.names)
        return named.cast(form).combine_chunks()

    return {"train": formed(train), "validation": formed(held_out)}


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


def pair_file(output: Path, stage: int, split: str) -> Path:
    """Returns the file of a stage's pairs in a run's folder."""
    return output / f"pairs/stage-{stage}-{split}.arrow"


def write_pairs(table: pa.Table, path: Path) -> None:
    """Writes the file of a PairFile, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    feather.write_feather(table, str(part), compression="uncompressed", chunksize=len(table))
    part.rename(path)


class PairFile(Dataset):
    """The pairs of an Arrow file, in memory that processes share."""

    def __init__(self, path: Path):
        self.table = feather.read_table(str(path), memory_map=True)

    def __len__(self) -> int:
        return len(self.table)

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
