"""Renders the card of a release: README.md as the data set hub reads it.

It is written from the release's manifest before its files are listed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCardData

from gaixie.udfs.reports import license_head, render
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.manifest import ReleaseManifest

HERE = Path(__file__)

COLUMNS = dict(
    line.split("\t") for line in HERE.with_name("columns.tsv").read_text("utf-8").splitlines()
)
"""Meanings of the columns of a release."""

SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B")
"""Upper ends of the hub's size classes: 10³, 10⁴ and so on."""


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
        meaning_of=meaning_of,
    )


def _head(manifest: ReleaseManifest) -> DatasetCardData:
    """Returns the head that the hub reads."""
    power = max(len(str(manifest.pairs)) - 3, 0)
    bounds = ["", *SIZES, "100B"]
    low, high = bounds[power : power + 2]
    names: dict[str, Any] = license_head(manifest.license)
    return DatasetCardData(
        **names,
        language=["zh"],
        pretty_name=manifest.title,
        task_categories=["text-generation", "sentence-similarity"],
        tags=["paraphrase", "chinese", "curriculum", "spscore-zh"],
        size_categories=[f"{low}<n<{high}" if low else f"n<{high}"],
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
