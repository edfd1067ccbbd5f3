"""Shows what a run would do: what it reads, and the scores of the first rows. Writes nothing."""

from __future__ import annotations

import pandas as pd

from gaixie.jobs.corpus.reading import read_files
from gaixie.jobs.corpus.reporting import print_table
from gaixie.jobs.scoring.job import Job
from gaixie.jobs.scoring.units import scored_rows
from gaixie.udfs.reports import number
from gaixie.udfs.spscore import JUDGEMENTS

SAMPLE = 5_000
"""Rows read from each input."""

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


def dry_run(job: Job) -> None:
    """Prints the files of each input and the results of its first rows, up to SAMPLE."""
    for source in job.inputs:
        if not source.files:
            continue
        size = sum(file.size for file in source.files) / 1e6
        print(f"{source.settings.path}: {len(source.files)} {source.kind} files, {size:,.1f} MB")
        rows = read_files(job.spark, source, source.files).limit(SAMPLE)
        scored = scored_rows(rows, job.score).select("origin", "reason", "spscore", *JUDGEMENTS)
        _print_sample(pd.DataFrame(scored.collect(), columns=scored.columns))
    print(f"signature: {job.scorer.signature}")
    print(f"would write {job.folder}; dry run: nothing was written")


def _print_sample(sample: pd.DataFrame) -> None:
    fit = sample[sample["reason"].isna()]
    print(f"of the first {len(sample):,} rows, {len(fit):,} can be scored")
    for reason, count in sample["reason"].value_counts().items():
        print(f"quarantine {reason}: {count:,}")
    head = ["origin", *(f"score at {100 * share:g} %" for share in SHARES)]
    rows = [
        [str(origin), *(number(point) for point in pairs["spscore"].quantile(list(SHARES)))]
        + [number(pairs[name].mean(), 2) for name in JUDGEMENTS]
        for origin, pairs in fit.groupby("origin")
    ]
    print_table([*head, *(f"mean {name}" for name in JUDGEMENTS)], rows)
