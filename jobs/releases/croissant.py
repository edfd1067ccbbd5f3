"""Describes a release in croissant.json: MLCommons' format 1.0 for data sets.

Its specification is at docs.mlcommons.org/croissant.
"""

from __future__ import annotations

from datetime import datetime

import mlcroissant as mlc

from gaixie.jobs.releases.card import meaning_of
from gaixie.udfs.reports import HUB_LICENSES
from gaixie.udfs.storage.manifest import ReleaseManifest
from gaixie.udfs.storage.storage import to_json

PARQUET = "application/x-parquet"

TYPES = {
    "string": mlc.DataType.TEXT,
    "boolean": mlc.DataType.BOOL,
    "float": mlc.DataType.FLOAT32,
    "double": mlc.DataType.FLOAT64,
    "int": mlc.DataType.INT32,
    "bigint": mlc.DataType.INT64,
}
"""Croissant's names for Spark's types; columns of other types are not described."""


def croissant(manifest: ReleaseManifest) -> str:
    """Returns croissant.json: every data file with its SHA-256, a file set, and a record set for
    each split and subset.

    manifest: must list at least the data files.
    """
    files = [
        mlc.FileObject(
            id=file.path,
            name=file.path,
            content_url=file.path,
            content_size=f"{file.bytes} B",
            encoding_formats=[PARQUET],
            sha256=file.sha256,
        )
        for file in manifest.data_files
    ]
    parts = [(split, stage) for split, stages in manifest.counts.items() for stage in stages]
    title = f"{manifest.title}, version {manifest.version}"
    known = manifest.license.lower() in HUB_LICENSES
    metadata = mlc.Metadata(
        name=manifest.name,
        description=f"{title}: Chinese sentence pairs scored with {manifest.signature}",
        cite_as=title,
        license=[f"https://spdx.org/licenses/{manifest.license}.html"]
        if known
        else [manifest.license],
        version=".".join((manifest.version.split("-")[0] + ".0.0").split(".")[:3]),
        date_published=datetime.fromisoformat(manifest.created[:19]),
        creators=[mlc.Organization(name="Gaixie")],
        in_language=["zh"],
        distribution=files + [_file_set(*part) for part in parts],
        record_sets=[_record_set(manifest, *part) for part in parts],
    )
    return to_json(metadata.to_json())


def _file_set(split: str, stage: int) -> mlc.FileSet:
    name = f"files-{split}-stage-{stage}"
    pattern = f"data/split={split}/subset=stage-{stage}/*.parquet"
    return mlc.FileSet(id=name, name=name, encoding_formats=[PARQUET], includes=[pattern])


def _record_set(manifest: ReleaseManifest, split: str, stage: int) -> mlc.RecordSet:
    name = f"{split}-stage-{stage}"
    fields = [
        mlc.Field(
            id=f"{name}/{column}",
            name=column,
            description=meaning_of(column),
            data_types=[TYPES[kind]],
            source=mlc.Source(file_set=f"files-{name}", extract=mlc.Extract(column=column)),
        )
        for column, kind in manifest.columns.items()
        if kind in TYPES
    ]
    return mlc.RecordSet(
        id=name,
        name=name,
        description=f"Pairs of stage {stage} in the split {split}.",
        key=[f"{name}/pair_id"],
        fields=fields,
    )
