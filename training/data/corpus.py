"""Reads the pairs of a published run or release by stage and split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, ReleaseManifest, read_manifest
from gaixie.udfs.text.splits import GROUP, SPLITS, splits_of

COLUMNS = ("source", "paraphrase")


class Corpus:
    """The pairs of a published run or release.

    uri: ROOT/runs/RUN_ID or ROOT/releases/VERSION. validation, test: shares of the groups to hold
    out, or of the sources if pairs have no group. split_seed: seed of the hash that decides. All
    three mean the same as in jobs/release_dataset.py, and are ignored for a release that is already
    split.

    Raises OSError or ValueError, here and when pairs are read, with one line that names the file.
    """

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
        self.digest = storage.sha256(storage.join(uri, MANIFEST))
        """SHA-256 of the manifest, which identifies the data."""
        self.is_release = isinstance(manifest, ReleaseManifest)
        self.is_split = False
        """Whether it is a release with its own splits."""
        if isinstance(manifest, ReleaseManifest):
            self.name = f"release {manifest.version}"
            self.is_split = sum(share > 0 for share in manifest.settings.split.values()) > 1
            files = [f"{manifest.build}/{file.path}" for file in manifest.data_files]
        else:
            self.name = f"run {manifest.run_id}"
            files = [file.path for file in manifest.files.get("scored", [])]
        self._files = sorted(files)

    def read(self, stage: int, columns: Sequence[str] = COLUMNS) -> Iterator[tuple[str, pa.Table]]:
        """Yields (split, its pairs) of each row group of a stage.

        columns: ``origin`` may come from the files' paths. Raises ValueError if the stage has no
        pairs.
        """
        part = f"subset=stage-{stage}" if self.is_release else f"stage={stage}"
        paths = [path for path in self._files if part in path.split("/")]
        if not paths:
            raise ValueError(f"{self.uri}: stage {stage} has no pairs")
        for path in paths:
            uri = storage.join(self.uri, path)
            folders = dict(f.split("=", 1) for f in path.split("/") if "=" in f)
            for table in _row_groups(uri, columns, folders.get("origin")):
                if self.is_split:
                    yield folders["split"], table.select(columns)
                    continue
                key = table["source"]
                if GROUP in table.column_names:
                    key = pc.coalesce(table[GROUP].cast(pa.string()), key)
                split = splits_of(key, self.shares, self.split_seed)
                for number, name in enumerate(SPLITS):
                    yield name, table.select(columns).filter(pa.array(split == number))


def _row_groups(uri: str, columns: Sequence[str], origin: str | None) -> Iterator[pa.Table]:
    """Yields the row groups of a file with these columns, and its groups if it has some.

    Errors become one line that names the file.
    """
    try:
        with storage.open_file(uri) as file:
            reader = pq.ParquetFile(file, pre_buffer=True, page_checksum_verification=True)
            names = reader.schema_arrow.names
            for name in columns:
                if name not in names and (name != "origin" or origin is None):
                    raise ValueError(f"{uri}: no column '{name}', it has: {', '.join(names)}")
            wanted = [name for name in names if name in (*columns, "source", GROUP)]
            for number in range(reader.num_row_groups):
                table = reader.read_row_group(number, wanted)
                if "origin" in columns and "origin" not in names:  # a run has it in its paths
                    column = pa.array([origin] * len(table), pa.string())
                    table = table.append_column("origin", column)
                yield table
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{uri}: the manifest names this file, but it does not exist"
        ) from None
    except (OSError, pa.ArrowException) as error:
        if str(error).startswith(uri):
            raise
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise OSError(f"{uri}: not a whole Parquet file: {first_line}") from None
