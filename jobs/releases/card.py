"""The card of a release: README.md as the data set hub reads it.

It is written from the release's record, which is its manifest before the files are listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any

import yaml

from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.stages import ORIGINS

HUB_LICENSES = {
    "apache-2.0", "mit", "bsd-3-clause", "cc0-1.0", "odbl", "odc-by", "unlicense",
    "cc-by-3.0", "cc-by-sa-3.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nd-4.0",
    "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0",
}  # fmt: skip
"""Licences that the hub knows by name; any other is 'other' with its own name beside it."""

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
}

SIZES = [("n<1K", 10**3), ("1K<n<10K", 10**4), ("10K<n<100K", 10**5), ("100K<n<1M", 10**6),
         ("1M<n<10M", 10**7), ("10M<n<100M", 10**8), ("100M<n<1B", 10**9), ("1B<n<10B", 10**10)]  # fmt: skip


def configs_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Subsets of the data set as the hub's card states them: all stages, then each alone."""
    subsets = {"default": "*"}
    for stage in record["settings"]["stages"]:
        subsets[f"stage-{stage}"] = f"subset=stage-{stage}"
    configs = []
    for name, folder in subsets.items():
        files = [
            {"split": split, "path": f"data/split={split}/{folder}/*.parquet"}
            for split, stages in record["counts"].items()
            if folder == "*" or stages.get(name.removeprefix("stage-"))
        ]
        if files:
            configs.append({"config_name": name, "data_files": files})
    return configs


def card(record: Mapping[str, Any]) -> str:
    """README.md: a head of YAML, then Markdown."""
    known = record["license"].lower() in HUB_LICENSES
    total = sum(row["released"] for row in record["rows"].values())
    head: dict[str, Any] = {"license": record["license"].lower() if known else "other"}
    if not known:
        head["license_name"] = re.sub(r"[^a-z0-9.]+", "-", record["license"].lower()).strip("-")
    head |= {
        "language": ["zh"],
        "pretty_name": record["title"],
        "task_categories": ["text-generation", "sentence-similarity"],
        "tags": ["paraphrase", "chinese", "curriculum", "spscore-zh"],
        "size_categories": [next((name for name, end in SIZES if total < end), "10B<n<100B")],
        "configs": configs_of(record),
    }
    settings, rows = record["settings"], record["rows"]
    splits, stages = [*record["counts"]], settings["stages"]
    origins = [origin for origin in ORIGINS if origin in rows]
    counts = [
        [origin, *[f"{_count(record, splits, [stage], origin):,}" for stage in stages],
         f"{rows[origin]['released']:,}"]
        for origin in origins
    ]  # fmt: skip
    counts.append(
        ["total", *[f"{_count(record, splits, [stage]):,}" for stage in stages], f"{total:,}"]
    )
    by_split = [
        [split, *[f"{_count(record, [split], [stage]):,}" for stage in stages],
         f"{_count(record, [split], stages):,}"]
        for split in splits
    ]  # fmt: skip
    shares = [*next(iter(record["quantiles"].values()))]
    quantiles = [
        [origin, *[f"{record['quantiles'][origin][share]:.3f}" for share in shares]]
        for origin in origins
    ]
    runs = [[f"`{run['run_id']}`", run["created"], f"{run['rows']:,}", f"`{run['manifest_sha256']}`"]
            for run in record["runs"]]  # fmt: skip
    columns = [
        [f"`{name}`", kind, MEANINGS.get(name, "as the input had it")]
        for name, kind in record["columns"].items()
    ]
    names = [f"stage {stage}" for stage in stages]
    removed = sum(row["duplicates"] for row in rows.values())
    return "---\n" + yaml.safe_dump(head, allow_unicode=True, sort_keys=False) + "---\n" + PAGE.substitute(
        title=record["title"],
        version=record["version"],
        created=record["created"][:10],
        gaixie=record["gaixie"],
        total=f"{total:,}",
        signature=record["signature"],
        license=record["license"],
        removed=f"{removed:,}",
        counts=_table(["origin", *names, "all"], counts),
        splits=_table(["split", *names, "all"], by_split),
        split_rule=SPLIT_RULE if len(splits) > 1 else "Everything is in the split `train`.",
        judgements=_table(["stage", *OUTPUTS], _judgements(record)),
        sees=SEES[re.search(r"\|tier:(\w+)\|", record["signature"])[1]],
        quantiles=_table(["origin", *[f"{100 * float(share):g} %" for share in shares]], quantiles),
        runs=_table(["run", "created", "pairs", "SHA-256 of its manifest"], runs),
        columns=_table(["column", "type", "meaning"], columns),
        first=f"stage-{stages[0]}",
        split=splits[0],
    )  # fmt: skip


def _judgements(record: Mapping[str, Any]) -> list[list[str]]:
    return [
        [stage, *[f"{means[name]:.3f}" for name in OUTPUTS]]
        for stage, means in record["judgements"].items()
    ]


def _count(
    record: Mapping[str, Any],
    splits: Iterable[str],
    stages: Iterable[int],
    origin: str | None = None,
) -> int:
    counts: Counter[str] = Counter()
    for split in splits:
        for stage in stages:
            counts.update(record["counts"][split].get(str(stage), {}))
    return counts[origin] if origin else counts.total()


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


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

SPLIT_RULE = (
    "A hash of the normalised source decides the split, so no source sentence is in two of them, "
    "whatever its origin."
)

PAGE = Template("""
# $title

Version $version of $created: $total pairs of a Chinese sentence and its paraphrase, scored with
SPScore-zh and sorted into the stages of a training curriculum. Made with Gaixie $gaixie.

## Pairs

$counts

$splits

$split_rule
Of pairs that several source runs had, $removed were left out.

Stage 1 holds the pairs from the lowest cut point up, stage 3 the best; stage 0, where it is
released, is what lies below the cut. Cut points are per origin: at the same score, pairs of a language
model are better than back-translations, and those better than pairs of a parallel corpus.

Mean judgement of each stage, from 0 to 1:

$judgements

![Scores by origin and stage](scores.png)
![Judgements by stage](judgements.png)
![Lengths by origin and stage](lengths.png)

## Load it

```python
from datasets import load_dataset

load_dataset("FOLDER_OR_REPOSITORY", "$first", split="$split")  # one stage
load_dataset("FOLDER_OR_REPOSITORY", split="$split")  # all of them
load_dataset("parquet", data_files="s3://BUCKET/ROOT/releases/$version/BUILD/data/split=$split/subset=$first/*.parquet")
```

The files of a stage are of like size, and inside each the pairs are shuffled: they can be handed out
to machines as they are. `manifest.json`, one folder up, lists every file with its rows and SHA-256.

## How it was scored

SPScore-zh judges a pair by four criteria (how far the structure was changed, how far words were
replaced by others, how far the meaning was kept, how readable the paraphrase is) and gives one score
for all of them. It is fitted to ratings that a large language model gave by the guideline of *Chinese
Sentence Paraphrasing*. $sees Scores compare only under one signature:

    $signature

Score below which this share of the origin's pairs lies:

$quantiles

## Columns

$columns

The features are missing (NaN) where they are not defined, such as `pmd` without shared clauses.

## Source runs

$runs

## Limits

- Judgements and score are estimates of a regression. A pair with a high score may still be wrong.
- The pairs are as their corpora had them. Nobody read them one by one, and nothing was done about
  bias, offence or personal data in them.
- Pairs with sentences that are very short or long, not Chinese or not text are left out.

## Licence

$license
""")
