"""croissant.json of a release: MLCommons' format 1.0 for data sets (docs.mlcommons.org/croissant)."""

from __future__ import annotations

from typing import Any

from gaixie.jobs.releases.card import MEANINGS
from gaixie.udfs.reports import HUB_LICENSES
from gaixie.udfs.storage.manifest import ReleaseManifest
from gaixie.udfs.storage.storage import to_json

_OWN = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}
CONTEXT = {
    name: _OWN.get(name, f"cr:{name}")
    for name in (
        *("@language", "@vocab", "citeAs", "column", "conformsTo", "cr", "rai", "data", "dataType"),
        *("dct", "equivalentProperty", "examples", "extract", "field", "fileObject"),
        *("fileProperty", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key"),
        *("md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
        *("samplingRate", "sc", "separator", "source", "subField", "transform"),
    )
}

TYPES = {
    "string": "sc:Text",
    "boolean": "sc:Boolean",
    "float": "cr:Float32",
    "double": "cr:Float64",
    "int": "cr:Int32",
    "bigint": "cr:Int64",
}
"""Croissant's names of Spark's types; columns of any other are not described."""


def croissant(manifest: ReleaseManifest) -> str:
    """croissant.json: every data file with its SHA-256, a file set and a record set for each subset
    and split.

    manifest: with its data files at least; this file is another of them.
    """
    numbers = (manifest.version.split("-")[0] + ".0.0").split(".")[:3]
    distribution: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": file.path,
            "name": file.path,
            "contentUrl": file.path,
            "contentSize": f"{file.bytes} B",
            "encodingFormat": "application/x-parquet",
            "sha256": file.sha256,
        }
        for file in manifest.data_files
    ]
    record_sets = []
    for split, stages in manifest.counts.items():
        for stage in stages:
            name = f"{split}-stage-{stage}"
            distribution.append(
                {
                    "@type": "cr:FileSet",
                    "@id": f"files-{name}",
                    "name": f"files-{name}",
                    "encodingFormat": "application/x-parquet",
                    "includes": f"data/split={split}/subset=stage-{stage}/*.parquet",
                }
            )
            record_sets.append(_record_set(manifest, name, split, stage))
    title = f"{manifest.title}, version {manifest.version}"
    return to_json(
        {
            "@context": CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "name": manifest.name,
            "description": f"{title}: Chinese sentence pairs scored with {manifest.signature}",
            "alternateName": manifest.title,
            "license": _license_url(manifest.license),
            "version": ".".join(numbers),
            "datePublished": manifest.created[:19],
            "creator": {"@type": "Organization", "name": "Gaixie"},
            "citeAs": title,
            "inLanguage": "zh",
            "distribution": distribution,
            "recordSet": record_sets,
        }
    )


def _record_set(manifest: ReleaseManifest, name: str, split: str, stage: int) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Pairs of stage {stage} in the split {split}.",
        "key": {"@id": f"{name}/pair_id"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": MEANINGS.get(column, "as the input had it"),
                "dataType": TYPES[kind],
                "source": {"fileSet": {"@id": f"files-{name}"}, "extract": {"column": column}},
            }
            for column, kind in manifest.columns.items()
            if kind in TYPES
        ],
    }


def _license_url(text: str) -> str:
    if text.lower() in HUB_LICENSES:
        return f"https://spdx.org/licenses/{text}.html"
    return text
