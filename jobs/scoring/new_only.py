"""Tells which files published runs have scored, for --new-only: their manifests are the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from gaixie.jobs.corpus.input import Input
from gaixie.jobs.scoring.settings import ScoreSettings
from gaixie.udfs.storage.manifest import RunManifest
from gaixie.udfs.storage.storage import File

Seen = tuple[str, int, str, str]
"""A file's URI, bytes and time, and how it was read."""


def unseen_by(
    runs: Sequence[RunManifest], settings: ScoreSettings
) -> Callable[[Input, File], bool]:
    """Returns a function that tells whether none of the runs has scored a file of an input whole,
    as the settings say."""
    seen = {one for run in runs if run.limit is None for one in _files_of(run)}
    limits = (settings.min_characters, settings.max_characters)

    def is_new(source: Input, file: File) -> bool:
        time = file.modified.isoformat(timespec="milliseconds")
        return (file.uri, file.size, time, _reading(source, limits)) not in seen

    return is_new


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
