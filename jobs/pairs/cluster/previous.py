"""The clusters of the months before, which a new month joins."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from gaixie.jobs.corpus.parquet import CHECKED
from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.cluster.sentences import PUBLISHED
from gaixie.jobs.pairs.cluster.settings import ClusterSettings
from gaixie.udfs.storage.manifest import NAME


def read_previous(spark: SparkSession, storage: Storage, settings: ClusterSettings) -> DataFrame:
    """Table PUBLISHED of the output that settings.clusters names.

    Raises JobError where none is published there, or its keys are others.
    """
    root = str(settings.clusters).rstrip("/")
    if not storage.exists(f"{root}/{NAME}"):
        raise JobError(f"--clusters {root}: no {NAME}, so nothing is published there")
    manifest = storage.read_json(f"{root}/{NAME}")
    if manifest.get("method") != "cluster" or not storage.exists(f"{root}/clusters"):
        raise JobError(
            f"--clusters {root}: pairs of the method {manifest.get('method')}, expected cluster"
        )
    keys = tuple(manifest["settings"]["cluster"]["key_columns"])
    if keys != settings.key_columns:
        before, now = (", ".join(names) or "none" for names in (keys, settings.key_columns))
        raise JobError(
            f"--clusters {root}: its keys are {before}, but now {now}; give the same ones"
        )
    return spark.read.options(**CHECKED).schema(PUBLISHED).parquet(f"{root}/clusters")
