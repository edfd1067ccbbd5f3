"""Says what would become of the first rows of an input, and what all of it takes where a model
writes."""

from __future__ import annotations

from pyspark.sql import Observation

from gaixie.jobs.corpus.beside import interruptible
from gaixie.jobs.corpus.unreadable import SPARK_ERRORS
from gaixie.jobs.pairs.build import BuildPairs
from gaixie.jobs.pairs.making import by_reason
from gaixie.jobs.pairs.writing import Sentences

SAMPLE = 10_000
"""Rows that are looked at."""

TRIED = 64
"""Sentences that a model may be tried on."""

EXAMPLES = 3


def dry_run(job: BuildPairs) -> None:
    """Prints counts, examples and an estimate; writes nothing."""
    method, rows = job.method, Observation()
    judged = job.judged(min(job.limit or SAMPLE, SAMPLE), rows).cache()
    try:
        made = job.made_of(judged.where("reason IS NULL")).cache()
        fit = made.where("reason IS NULL")
        counts = by_reason(judged.unionByName(made, True).where("reason IS NOT NULL"))
        pairs, groups = fit.count(), fit.select("group").distinct().count()
        first = interruptible(fit.limit(TRIED).toArrow).to_pylist()
    except SPARK_ERRORS as error:
        job.input.blame(error)
        raise
    items, seen = judged.count(), rows.get["rows"]
    what = f"pairs in {groups:,} groups"
    if isinstance(method, Sentences):
        what = f"sentences for {job.settings.method}"
    print(f"the first {seen:,} rows: {items:,} {method.unit}, {pairs:,} {what}")
    for reason, count in sorted(counts.items()):
        print(f"  {count:>12,} in quarantine: {reason}")
    if isinstance(method, Sentences):
        everything = job.input.rows.count() if seen == SAMPLE else seen
        total = pairs * min(everything, job.limit or everything) / max(seen, 1)
        cores = job.spark.sparkContext.defaultParallelism
        method.preview([row[method.reads] for row in first], total, cores)
    else:
        for row in first[:EXAMPLES]:
            print(f"  {row['source']}\n  -> {row['paraphrase']}")
    print("nothing written")
    job.spark.catalog.clearCache()
