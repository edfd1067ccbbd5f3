"""Reads a published run or release as row groups by stage, and holds out validation and test
pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseManifest, read_manifest
from gaixie.udfs.text.splits import GROUP, SPLITS, splits_of

COLUMNS = ["source", "paraphrase"]


class RowGroup(NamedTuple):
    """A row group of a Parquet file."""

    uri: str
    number: int
    """Number in its file, from 0."""
    rows: int


class Corpus:
    """The pairs of a published run or release.

    uri: ROOT/runs/RUN_ID or ROOT/releases/VERSION. validation, test: shares of the groups to hold
    out, or of the sources if pairs have no group. split_seed: seed of the hash that decides. All
    three mean the same as in jobs/release_dataset.py, and are ignored for a release that is already
    split.

    Raises OSError or ValueError, here and when pairs are read, with one line that names the file.
    """

    is_noisy = False
    """Whether sources get noise, each with its own seed, before a model reads them."""

    def __init__(
        self, uri: str, validation: float = 0.01, test: float = 0.01, split_seed: int = 13
    ):
        train = 1 - validation - test
        if min(validation, test) < 0 or train <= 0:
            raise ValueError(
                f"validation {validation:g} and test {test:g}: expected shares that leave some "
                "train"
            )
        self.uri, self.split_seed = uri, split_seed
        self.shares = (train, validation, test)
        manifest = read_manifest(uri)
        self.is_release = isinstance(manifest, ReleaseManifest)
        if isinstance(manifest, ReleaseManifest):
            self.name = f"release {manifest.version}"
            self.is_split = sum(share > 0 for share in manifest.settings.split.values()) > 1
            files = [f"{manifest.build}/{file.path}" for file in manifest.data_files]
        else:
            self.name = f"run {manifest.run_id}"
            self.is_split = False
            files = [file.path for file in manifest.files.get("scored", [])]
        self._paths = sorted(files)

    def _files(self, stage: int, split: str) -> list[str]:
        folders = {f"stage={stage}"}
        if self.is_release:
            folders = {f"subset=stage-{stage}", f"split={split if self.is_split else 'train'}"}
        return [path for path in self._paths if folders <= {*path.split("/")}]

    def has(self, stage: int) -> bool:
        """Returns whether a stage has training pairs."""
        return bool(self._files(stage, "train"))

    def groups(self, stage: int, split: str = "train") -> list[RowGroup]:
        """Returns the row groups that hold a split's pairs, from the footers of the stage's
        files."""
        files = [storage.join(self.uri, path) for path in self._files(stage, split)]
        with ThreadPoolExecutor(16) as pool:
            row_groups = [group for own in pool.map(parquet_row_groups, files) for group in own]
        if not row_groups:
            what = f"{split} pairs" if self.is_split else "pairs"
            raise ValueError(f"{self.uri}: stage {stage} has no {what}")
        return row_groups

    def read(self, group: RowGroup, split: str, columns: Sequence[str] = COLUMNS) -> pa.Table:
        """Returns the pairs of a row group that belong to a split."""
        if self.is_split:
            return read_rows(group, columns)
        table = read_rows(group, [*dict.fromkeys([*columns, "source"])], optional=[GROUP])
        key = table["source"]
        if GROUP in table.column_names:
            key = pc.coalesce(table[GROUP].cast(pa.string()), key)
        split_of = splits_of(key, self.shares, self.split_seed)
        return table.select([*columns]).filter(pa.array(split_of == SPLITS.index(split)))

    def held_out(self, stage: int, split: str, rows: int) -> pa.Table:
        """Returns at most so many pairs of "validation" or "test", the same at every call.

        It takes whole row groups, in an order that the split's seed decides, until there are
        enough. Raises ValueError if there are none.
        """
        groups = self.groups(stage, split)
        parts: list[pa.Table] = []
        for index in random_of(self.split_seed, stage).permutation(len(groups)):
            parts.append(self.read(groups[index], split))
            if sum(map(len, parts)) >= rows:
                break
        table = pa.concat_tables(parts).slice(0, rows).combine_chunks()
        if not len(table):
            pairs = sum(group.rows for group in groups)
            raise ValueError(
                f"{self.uri}: stage {stage} has no {split} pair among its {pairs:,}; use a larger "
                f"share than {self.shares[SPLITS.index(split)]:g}"
            )
        return table


@contextmanager
def _named(uri: str) -> Iterator[None]:
    """Turns errors of pyarrow and of missing files into one line that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{uri}: the manifest names this file, but it does not exist"
        ) from None
    except (OSError, pa.ArrowException) as error:
        if str(error).startswith(uri):
            raise
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise OSError(f"{uri}: not a whole Parquet file: {first_line}") from None


def read_rows(group: RowGroup, columns: Sequence[str], optional: Sequence[str] = ()) -> pa.Table:
    """Reads columns of a row group, and the optional ones that the file has; ``origin`` may come
    from its path."""
    with _named(group.uri), storage.open_file(group.uri) as file:
        reader = pq.ParquetFile(file, pre_buffer=True, page_checksum_verification=True)
        names = reader.schema_arrow.names
        asked = [*columns, *(name for name in optional if name in names)]
        for name in asked:
            if name not in (*names, "origin"):
                raise ValueError(f"{group.uri}: no column '{name}', it has: {', '.join(names)}")
        table = reader.read_row_group(group.number, [name for name in asked if name in names])
    if "origin" in asked and "origin" not in names:  # a run has it in its paths
        folders = [part for part in group.uri.split("/") if part.startswith("origin=")]
        if not folders:
            raise ValueError(f"{group.uri}: no column 'origin', it has: {', '.join(names)}")
        table = table.append_column(
            "origin", pa.array([folders[-1].removeprefix("origin=")] * len(table), pa.string())
        )
    return table.select(asked)


def parquet_row_groups(uri: str, columns: Sequence[str] = COLUMNS) -> list[RowGroup]:
    """Returns the row groups of a file. Raises ValueError if it lacks a column."""
    with _named(uri), storage.open_file(uri) as file:
        footer = pq.read_metadata(file)
    for name in columns:
        if name not in footer.schema.names:
            raise ValueError(f"{uri}: no column '{name}', it has: {', '.join(footer.schema.names)}")
    return [RowGroup(uri, k, footer.row_group(k).num_rows) for k in range(footer.num_row_groups)]


def random_of(*numbers: int) -> np.random.Generator:
    """Returns a generator that depends only on these numbers. 1 is added to each, since numpy would
    ignore a final 0."""
    return np.random.default_rng([number + 1 for number in numbers])
