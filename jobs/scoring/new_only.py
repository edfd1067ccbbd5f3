"""Tells which files published runs have scored, for --new-only: their manifests are the record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from gaixie.jobs.corpus.settings import Input
from gaixie.udfs.storage.manifest import RunManifest
from gaixie.udfs.storage.storage import File

Seen = tuple[str, int, str, str]
"""A file's URI, bytes and time, and how it was read."""


def files_of(runs: Sequence[RunManifest]) -> set[Seen]:
    """Returns the files that runs have scored whole."""
    return {seen for run in runs if run.limit is None for seen in _files_of(run)}


def seen_as(source: Input, file: File, limits: Sequence[Any]) -> Seen:
    """Returns how files_of names a file. limits: minimum and maximum characters of a sentence."""
    time = file.modified.isoformat(timespec="milliseconds")
    return file.uri, file.size, time, _reading(source, limits)


def _files_of(run: RunManifest) -> list[Seen]:
    """Lists the files that a run read; none if its settings do not fit today's."""
    try:
        inputs = [Input.model_validate(given) for given in run.settings.get("inputs", [])]
    except ValidationError:
        return []
    limits = [run.settings.get(f"{which}_characters") for which in ("min", "max")]
    return [
        (file.path, file.bytes, file.modified, _reading(given, limits))
        for given, source in zip(inputs, run.inputs, strict=False)
        for file in source.listing
    ]


def _reading(source: Input, limits: Sequence[Any]) -> str:
    """Returns a text for which of a file's rows a run scores, and as what."""
    how = source.model_dump(exclude={"path", "license", "format"})
    return json.dumps([how, *limits], sort_keys=True)
