"""Reads the output of jobs/build_pairs.py for tests."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from gaixie.udfs.storage.manifest import PairsManifest

HIVE = ds.HivePartitioning(pa.schema([("reason", pa.string())]))


def manifest(output: Path) -> PairsManifest:
    return PairsManifest.model_validate_json((output / "manifest.json").read_text("utf-8"))


def table(output: Path, name: str) -> pd.DataFrame:
    """Reads a table of the output, its rows sorted."""
    partitioning = HIVE if name == "quarantine" else None
    files = ds.dataset(output / name, partitioning=partitioning, format="parquet")
    rows = files.to_table().to_pandas()
    return rows.sort_values([*rows.columns[:2]], ignore_index=True)
