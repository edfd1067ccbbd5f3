"""The card of a release: README.md as the data set hub reads it.

It is written from the release's manifest before its files are listed.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from gaixie.udfs.reports import license_head, render
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.manifest import ReleaseManifest

TEMPLATE = Path(__file__).with_name("card.md.j2")

MEANINGS = {
    "pair_id": "128-bit hash of source, paraphrase and origin, 32 hexadecimal digits",
    "source": "the sentence",
    "paraphrase": "its paraphrase",
    "acs": "characters that stand at the same place, share of the longer sentence",
    "spa": "how far shared substrings moved",
    "pmd": "how far shared clauses changed places",
    "wpa": "how far shared words moved",
    "lis": "longest identical substring, share of the source",
    "sbleu": "BLEU against the source, character n-grams of 4 to 7",
    "sl": "length of the source in characters",
    "lr": "length of the paraphrase over that of the source",
    "structure": "how far the structure was changed, 0 to 1, as SPScore-zh judges it",
    "synonyms": "how far words were replaced by others, 0 to 1",
    "meaning": "how far the meaning was kept, 0 to 1",
    "fluency": "how readable the paraphrase is, 0 to 1",
    "spscore": "SPScore-zh in [0, 1]: all of this in one score",
    "origin": f"where the pair comes from: {', '.join(ORIGINS)}",
    "stage": "stage of the curriculum: 1 is easy, 3 the best; 0 is below the cut",
    "group": "what pairs of one foreign sentence, document or cluster share",
    "method": "how the pair was made",
    "model": "by which model, where one wrote the paraphrase",
    "version": "of that model",
    "parameters": "of the method, as JSON",
    "license": "under which the pair's corpus came",
    "run": "the source run that the pair was taken from",
}

_ENDS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B")
SIZES = {
    f"{low}<n<{end}" if low else f"n<{end}": 10 ** (3 + power)
    for power, (low, end) in enumerate(zip(("", *_ENDS), _ENDS, strict=False))
}
"""The hub's classes of size, and where each ends."""

SEES = {
    "paper": "It sees the surface of both sentences alone, and guesses the meaning from there.",
    "core": "It sees words and characters kept, added, lost and moved, how near in meaning the others "
    "are, numbers, dates, names and negation, and how usual each character is after those before it. "
    "It does not see who did what to whom.",
    "full": "It sees words and characters kept, added, lost and moved, numbers, dates, names and "
    "negation, how usual each character is after those before it, and what a Chinese encoder, fine-tuned "
    "to such ratings, reads in both sentences.",
}
"""By tier of the metric."""


def configs_of(manifest: ReleaseManifest) -> list[dict[str, Any]]:
    """Subsets of the data set as the hub's card states them: all stages, then each alone."""
    subsets: dict[str, tuple[str, int | None]] = {"default": ("*", None)}
    for stage in manifest.settings.stages:
        subsets[f"stage-{stage}"] = (f"subset=stage-{stage}", stage)
    configs = []
    for name, (folder, subset) in subsets.items():
        files = [
            {"split": split, "path": f"data/split={split}/{folder}/*.parquet"}
            for split, stages in manifest.counts.items()
            if subset is None or stages.get(subset)
        ]
        if files:
            configs.append({"config_name": name, "data_files": files})
    return configs


def card(manifest: ReleaseManifest) -> str:
    """README.md: a head of YAML, then Markdown."""
    splits, stages = [*manifest.counts], manifest.settings.stages
    origins = [origin for origin in ORIGINS if origin in manifest.rows]
    by_origin = [_counts(origin, manifest, splits, origin) for origin in origins]
    by_origin.append(_counts("total", manifest, splits))
    shares = [*next(iter(manifest.quantiles.values()))]
    return render(
        TEMPLATE,
        manifest=manifest,
        head=yaml.safe_dump(_head(manifest), allow_unicode=True, sort_keys=False),
        stages=[f"stage {stage}" for stage in stages],
        by_origin=by_origin,
        by_split=[_counts(split, manifest, [split]) for split in splits],
        by_lineage=_by_lineage(manifest),
        removed=sum(rows.duplicates for rows in manifest.rows.values()),
        outputs=[*OUTPUTS],
        judgements=[
            [str(stage), *[f"{means[name]:.3f}" for name in OUTPUTS]]
            for stage, means in manifest.judgements.items()
        ],
        sees=SEES[_tier(manifest.signature)],
        shares=[f"{100 * share:g} %" for share in shares],
        quantiles=[
            [origin, *[f"{manifest.quantiles[origin][share]:.3f}" for share in shares]]
            for origin in origins
        ],
        runs=[
            [f"`{run.run_id}`", run.created, f"{run.rows:,}", f"`{run.manifest_sha256}`"]
            for run in manifest.runs
        ],
        columns=[
            [f"`{name}`", kind, MEANINGS.get(name, "as the input had it")]
            for name, kind in manifest.columns.items()
        ],
        first=f"stage-{stages[0]}",
        split=splits[0],
    )


def _head(manifest: ReleaseManifest) -> dict[str, Any]:
    """What the hub reads of a card."""
    sizes = (size for size, end in SIZES.items() if manifest.pairs < end)
    return license_head(manifest.license) | {
        "language": ["zh"],
        "pretty_name": manifest.title,
        "task_categories": ["text-generation", "sentence-similarity"],
        "tags": ["paraphrase", "chinese", "curriculum", "spscore-zh"],
        "size_categories": [next(sizes, "10B<n<100B")],
        "configs": configs_of(manifest),
    }


def _by_lineage(manifest: ReleaseManifest) -> list[list[str]]:
    """Pairs by method, model and licence, and by stage; none where the runs say nothing of them."""
    if not any(entry.method or entry.model or entry.license for entry in manifest.lineage):
        return []
    counts: dict[tuple[str, ...], Counter[int]] = {}
    for entry in manifest.lineage:
        key = tuple(value or "not stated" for value in (entry.method, entry.model, entry.license))
        counts.setdefault(key, Counter()).update(entry.pairs)
    return [
        [*key, *[f"{count[stage]:,}" for stage in manifest.settings.stages], f"{count.total():,}"]
        for key, count in sorted(counts.items())
    ]


def _tier(signature: str) -> str:
    match = re.search(r"\|tier:(\w+)\|", signature)
    if match is None:
        raise ValueError(f"{signature}: a signature without a tier")
    return match[1]


def _counts(
    name: str, manifest: ReleaseManifest, splits: list[str], origin: str | None = None
) -> list[str]:
    """A row of the tables: a name, the pairs of each stage, and of all of them. origin: None is
    all."""
    by_stage: Counter[int] = Counter()
    for split in splits:
        for stage, counts in manifest.counts[split].items():
            by_stage[stage] += counts.get(origin, 0) if origin else sum(counts.values())
    pairs = [by_stage[stage] for stage in manifest.settings.stages]
    return [name, *[f"{count:,}" for count in (*pairs, sum(pairs))]]
