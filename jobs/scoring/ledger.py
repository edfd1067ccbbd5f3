"""Knows which files and pairs earlier runs have scored, so that a run can take only new ones.

No extra data is kept for this. The manifest of each published run names the files it read, with
size and time, its signature, and the runs that it rescored; its scored files hold the identities of
its pairs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gaixie.jobs.corpus.parquet import CHECKED
from gaixie.jobs.corpus.publish import scored_under
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.chunks import KEPT, MAX_BROADCAST
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import RunManifest
from gaixie.udfs.storage.storage import File

Seen = tuple[str, int, str, str]
"""A file's URI, bytes and time, and how it was read."""


class Ledger:
    """What the published runs of one signature have scored."""

    def __init__(self, settings: ScoreSettings, signature: str, runs: Sequence[RunManifest]):
        """runs: those of settings.output, including other signatures."""
        alike = [run for run in runs if run.signature == signature]
        self._settings, self._signature, self._all = settings, signature, runs
        self.runs = alike if settings.new_only or settings.rescore else []

    @cached_property
    def rescored(self) -> list[RunManifest]:
        """Returns the runs of settings.rescore that have pairs without a score of this signature.

        Raises JobError for a run that is not published.
        """
        published = {run.run_id: run for run in self._all}
        for name in self._settings.rescore:
            if name not in published:
                known = ", ".join([*published][-20:]) or "none"
                raise JobError(f"--rescore {name}: not a published run; published: {known}")
        done = scored_under(self._signature, self._all)
        names = {*self._settings.rescore} - done
        return [run for run in self._all if run.run_id in names and run.files.get("scored")]

    @cached_property
    def _seen(self) -> dict[Seen, str]:
        """Maps files to the run that scored them; to "" if their pairs have scores of this
        signature, from that run or from one that rescored it."""
        own = scored_under(self._signature, self._all)
        runs = [run for run in self._all if self._settings.new_only and run.limit is None]
        runs.sort(key=lambda run: run.run_id in own)
        return {
            seen: "" if run.run_id in own else run.run_id for run in runs for seen in _files_of(run)
        }

    def is_new(self, source: Input, file: File) -> bool:
        """Returns whether a file is newer than settings.since and, with new_only, in no run.

        A file that was set aside, or cut by --limit, is in no run. Raises JobError for a file that
        only another signature has scored, unless settings.since is set.
        """
        since, written = self._settings.since, file.modified
        if since and written < datetime.fromisoformat(since).replace(tzinfo=UTC):
            return False
        how = _reading(source, self._settings.min_characters, self._settings.max_characters)
        time = written.isoformat(timespec="milliseconds")
        scored_by = self._seen.get((file.uri, file.size, time, how))
        if scored_by and not since:
            raise JobError(
                f"{file.uri}: run '{scored_by}' scored it under another signature: --rescore "
                "unreleased scores such runs' pairs again, --since skips older files, and "
                "without --new-only all files are scored"
            )
        return scored_by != ""

    def known_pairs(self, spark: SparkSession, pairs: DataFrame, count: int) -> DataFrame | None:
        """Finds the rows whose pair an earlier run has, with the columns KEPT; returns None if none
        has.

        pairs: columns pair_id and KEPT. count: their number, or more. All earlier identities are
        read, 32 bytes each, and filtered by the hashes of this run's pairs, which every executor
        holds if there are at most MAX_BROADCAST. Those that pass are compared in full.
        """
        assert self._settings.output is not None
        root = storage.join(self._settings.output, "runs")
        files = [
            storage.join(root, run.run_id, file.path)
            for run in self.runs
            for file in run.files.get("scored", [])
        ]
        if not files:
            return None
        hashed = F.xxhash64("pair_id").alias("hash")
        hashes = pairs.select(hashed)
        hashes = F.broadcast(hashes) if count <= MAX_BROADCAST else hashes
        reader = spark.read.options(**CHECKED).schema("pair_id STRING")
        earlier = reader.parquet(*files).withColumn("hash", hashed)
        met = earlier.join(hashes, "hash", "left_semi").select("pair_id").persist()
        if not (found := met.count()):
            return None
        met = F.broadcast(met) if found <= MAX_BROADCAST else met
        return pairs.join(met, "pair_id", "left_semi").select(*KEPT).persist()


def _files_of(run: RunManifest) -> list[Seen]:
    """Lists the files that a run read; none if its settings do not fit today's."""
    try:
        inputs = [Input.model_validate(given) for given in run.settings.get("inputs", [])]
    except ValidationError:
        return []
    limits = [run.settings.get(f"{which}_characters") for which in ("min", "max")]
    return [
        (file.path, file.bytes, file.modified, _reading(given, *limits))
        for given, source in zip(inputs, run.inputs, strict=False)
        for file in source.listing
    ]


def _reading(source: Input, *limits: Any) -> str:
    """Returns a text for which of a file's rows a run scores, and as what. limits: characters of a
    sentence."""
    how = source.model_dump(exclude={"path", "license", "format"})
    return json.dumps([how, *limits], sort_keys=True)
