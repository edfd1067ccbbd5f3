"""What would become of the first rows of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from gaixie.jobs.corpus.unreadable import SPARK_ERRORS
from gaixie.jobs.pairs.dry_run import EXAMPLES, SAMPLE

if TYPE_CHECKING:
    from gaixie.jobs.pairs.cluster.build import ClusterPairs


def dry_run(job: ClusterPairs) -> None:
    """Prints counts and clusters; writes nothing. Of all rows, more sentences find another that says the same."""
    from gaixie.jobs.pairs.making import by_reason

    job.dry, rows = True, Observation()
    judged = job.judged(min(job.limit or SAMPLE, SAMPLE), rows).cache()
    try:
        counts = by_reason(judged.where("reason IS NOT NULL"))
        job.link(judged.where("reason IS NULL").select("source", "group", "keys"))
        counts += by_reason(job.leftovers())
        pairs = job.known["linked"].where("reason IS NULL")
        groups = pairs.groupBy("group").agg(F.collect_list(F.struct("source", "paraphrase")))
        number, first = pairs.count(), groups.orderBy("group").limit(EXAMPLES).collect()
    except SPARK_ERRORS as error:
        job.input.blame(error)
        raise
    items, seen = judged.count(), rows.get["count"]
    print(
        f"the first {seen:,} rows: {items:,} sentences, {number:,} pairs in {groups.count():,} clusters"
    )
    for reason, count in sorted(counts.items()):
        print(f"  {count:>12,} in quarantine: {reason}")
    for row in first:
        for source, paraphrase in row[1][:EXAMPLES]:
            print(f"  {source}\n  -> {paraphrase}")
    print("nothing written")
    for table in (judged, *job.known.values()):
        table.unpersist()
