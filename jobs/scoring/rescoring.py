"""Reads the pairs of published runs for --rescore. It does not judge again what those runs
quarantined or dropped as duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from gaixie.jobs.corpus.inputs import InputFiles, check_extra_columns
from gaixie.jobs.corpus.parquet import footer_reader
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.pipeline import SCORED_COLUMNS
from gaixie.udfs.storage.manifest import RunManifest

TEXTS = [StructField(name, StringType()) for name in ("source", "paraphrase")]


def scored_pairs(
    spark: SparkSession, files: Storage, root: str, runs: Sequence[RunManifest]
) -> list[InputFiles]:
    """Returns the pairs of runs as inputs, one for each origin and set of further columns.

    Raises JobError for a run whose files differ from its manifest.
    """
    inputs: dict[tuple[str, str], InputFiles] = {}
    read = footer_reader(spark)
    for run in runs:
        folder = f"{root.rstrip('/')}/runs/{run.run_id}/scored"
        found = files.list_files(folder)
        names = [f"scored/{file.uri.rpartition('/scored/')[2]}" for file in found]
        listed = {file.path: file.bytes for file in run.files["scored"]}
        if dict(zip(names, (file.size for file in found), strict=True)) != listed:
            raise JobError(f"{folder}: its files differ from the run's manifest")
        with ThreadPoolExecutor(16) as pool:
            footers = list(pool.map(read, found))
        for name, file, footer in zip(names, found, footers, strict=True):
            if isinstance(footer, str):
                raise JobError(f"{file.uri}: not a readable Parquet file: {footer}")
            origin = name.split("/")[1].removeprefix("origin=")
            extra = [field for field in footer.schema if field.name not in SCORED_COLUMNS]
            schema = StructType([*TEXTS, *extra])
            settings = Input(path=folder.rpartition("/runs/")[0] + "/runs", origin=origin)
            new = InputFiles(settings, "parquet", schema, [])
            source = inputs.setdefault((origin, schema.json()), new)
            source.files.append(file)
            source.rows[file.uri], source.row_groups[file.uri] = footer.rows, footer.row_groups
    check_extra_columns([*inputs.values()])
    return [*inputs.values()]
