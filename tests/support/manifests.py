"""Makes whole manifests for tests that need only some of their keys."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage import storage
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
}
RUN |= {key: {} for key in ("rows", "stages", "quarantine", "cuts", "quantiles", "seconds")}
RUN["files"] = {}

RELEASE = {key: RUN[key] for key in ("created", "gaixie", "spark", "signature")} | {
    "version": "1.0",
    "name": "gaixie-1.0",
    "title": "Pairs",
    "license": "MIT",
    "build": "build-0",
    "settings": {"stages": [1, 2, 3], "split": {"train": 1.0}, "seed": 13, "shards_mb": 128},
    "runs": [],
    "files": [],
}
RELEASE["settings"]["keep_columns"] = []
RELEASE |= {key: {} for key in ("columns", "rows", "counts", "quantiles", "judgements")}


UNSCORED = {"quarantined": 0, "duplicates": 0}


def run_manifest(**changes: Any) -> RunManifest:
    return RunManifest.model_validate(RUN | changes)


def release_manifest(**changes: Any) -> ReleaseManifest:
    return ReleaseManifest.model_validate(RELEASE | changes)


def write_scored(folder: Path, tables: dict[tuple[str, int], pa.Table], **options: Any) -> str:
    """Publishes a run with one file per origin and stage. Returns its URI."""
    files, stages = [], defaultdict(dict)
    for (origin, stage), table in tables.items():
        path = f"scored/origin={origin}/stage={stage}/part-00000.parquet"
        (folder / path).parent.mkdir(parents=True)
        pq.write_table(table, folder / path, **options)
        digest = storage.sha256(str(folder / path))
        files.append({"path": path, "bytes": (folder / path).stat().st_size, "sha256": digest})
        stages[origin][stage] = len(table)
    sums = {origin: sum(counts.values()) for origin, counts in stages.items()}
    rows = {origin: {"read": n, "scored": n} | UNSCORED for origin, n in sums.items()}
    given = {"files": {"scored": files}, "stages": stages, "rows": rows}
    (folder / MANIFEST).write_text(run_manifest(run_id=folder.name, **given).to_json(), "utf-8")
    return str(folder)
