"""Makes whole manifests for tests that need only some of their keys."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage.manifest import MANIFEST, ReleaseManifest, RunManifest

RUN = {
    "run_id": "tiny",
    "created": "2025-01-01T00:00:00+00:00",
    "gaixie": "0.1.0",
    "spark": "4.1.2",
    "signature": "SPScore-zh|v:0.2|tier:paper|seg:jieba-0.42.1|model:lightgbm-0123456789ab",
    "settings": {"segmenter": "jieba"},
    "limit": None,
    "inputs": [],
    "rows": {},
    "stages": {},
    "quarantine": {},
    "cuts": {},
    "min_meaning": {},
    "quantiles": {},
    "seconds": {},
    "files": {},
}


RELEASE = {
    "version": "1.0",
    "name": "gaixie-1.0",
    "title": "Pairs",
    "license": "MIT",
    "created": "2025-01-01T00:00:00.000000+00:00",
    "gaixie": "0.1.0",
    "spark": "4.1.2",
    "signature": RUN["signature"],
    "build": "build-0",
    "settings": {
        "stages": [1, 2, 3],
        "split": {"train": 1.0},
        "seed": 13,
        "shards_mb": 128,
        "shards": None,
        "keep_columns": [],
    },
    "runs": [],
    "columns": {},
    "rows": {},
    "counts": {},
    "quantiles": {},
    "judgements": {},
    "files": [],
}


def run_manifest(**changes: Any) -> RunManifest:
    return RunManifest.model_validate(RUN | changes)


def release_manifest(**changes: Any) -> ReleaseManifest:
    return ReleaseManifest.model_validate(RELEASE | changes)


def write_scored(folder: Path, tables: dict[tuple[str, int], pa.Table], **options: Any) -> str:
    """Publishes a run with one file per origin and stage. Returns its URI."""
    files = []
    for (origin, stage), table in tables.items():
        files.append(folder / f"scored/origin={origin}/stage={stage}/part-00000.parquet")
        files[-1].parent.mkdir(parents=True)
        pq.write_table(table, files[-1], **options)
    return write_manifest(folder, files)


def write_manifest(folder: Path, files: list[Path]) -> str:
    """Publishes a run of these scored files. Returns its URI."""
    folder.mkdir(parents=True, exist_ok=True)
    scored = [
        {"path": file.relative_to(folder).as_posix(), "bytes": file.stat().st_size}
        for file in files
    ]
    manifest = run_manifest(run_id=folder.name, files={"scored": scored})
    (folder / MANIFEST).write_text(manifest.to_json(), "utf-8")
    return str(folder)
