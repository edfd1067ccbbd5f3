"""Renders the cards of a release: README.md as the data set hub reads it, and croissant.json in
MLCommons' format 1.0 (docs.mlcommons.org/croissant).

They are written from the release's manifest; only its data files are listed in it by then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import mlcroissant as mlc
from huggingface_hub import DatasetCardData

from gaixie.udfs.reports import HUB_LICENSES, license_head, render
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.manifest import ReleaseManifest
from gaixie.udfs.storage.storage import to_json

HERE = Path(__file__)

COLUMNS = dict(
    line.split("\t") for line in HERE.with_name("columns.tsv").read_text("utf-8").splitlines()
)
"""Meanings of the columns of a release."""

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


def meaning_of(column: str) -> str:
    return COLUMNS.get(column, "unchanged from the input")


def card(manifest: ReleaseManifest) -> str:
    """Returns README.md: a YAML head, then Markdown."""
    tier = re.search(r"\|tier:(\w+)\|", manifest.signature)
    stages = manifest.settings.stages

    def counts(split: str | None = None, origin: str | None = None) -> list[str]:
        """Returns the pairs of each stage, and their sum; None covers all splits or origins."""
        return [f"{manifest.pairs_of(split, stage, origin):,}" for stage in (*stages, None)]

    return render(
        HERE.with_name("card.md.j2"),
        manifest=manifest,
        head=_head(manifest).to_yaml(),
        tier=tier and tier[1],
        stage_names=[f"stage {stage}" for stage in stages],
        origins=[origin for origin in ORIGINS if origin in manifest.rows],
        outputs=[*OUTPUTS],
        counts=counts,
        cut_apart=cut_apart([run.cuts for run in manifest.runs]),
        meaning_of=meaning_of,
    )


def cut_apart(cuts: Sequence[Mapping[str, Sequence[float | None]]]) -> list[str]:
    """Returns the origins of which two runs have different cut points. cuts: of each run."""
    return [o for o in ORIGINS if len({tuple(run[o]) for run in cuts if o in run}) > 1]


def _head(manifest: ReleaseManifest) -> DatasetCardData:
    """Returns the head that the hub reads."""
    names: dict[str, Any] = license_head(manifest.license)
    return DatasetCardData(
        **names,
        language=["zh"],
        pretty_name=manifest.title,
        task_categories=["text-generation", "sentence-similarity"],
        tags=["paraphrase", "chinese", "curriculum", "spscore-zh"],
        configs=_configs(manifest),
    )


def _configs(manifest: ReleaseManifest) -> list[dict[str, Any]]:
    """Returns the subsets in the hub's form: all stages, then each alone."""
    configs = []
    for stage in (None, *manifest.settings.stages):
        folder = "*" if stage is None else f"subset=stage-{stage}"
        files = [
            {"split": split, "path": f"data/split={split}/{folder}/*.parquet"}
            for split in manifest.counts
            if manifest.pairs_of(split, stage)
        ]
        if files:
            name = "default" if stage is None else f"stage-{stage}"
            configs.append({"config_name": name, "data_files": files})
    return configs


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
    licence = manifest.license
    if licence.lower() in HUB_LICENSES:
        licence = f"https://spdx.org/licenses/{licence}.html"
    metadata = mlc.Metadata(
        name=manifest.name,
        description=f"{title}: Chinese sentence pairs scored with {manifest.signature}",
        cite_as=title,
        license=[licence],
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
