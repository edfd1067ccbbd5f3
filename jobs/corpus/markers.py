"""Makes a job resumable: each finished part of its work leaves a marker for the next process.

FOLDER/started.json    what decides the result; without it, nothing is resumed
FOLDER/NAME.json       the part NAME is finished: what it told, and the fingerprint of its inputs
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.storage import storage

WORK = "_work"
"""Folder of the markers, and of the tables that they stand for, in the output of a job."""

STARTED = "started.json"


class Markers:
    """The markers in one folder."""

    def __init__(self, folder: str):
        self._folder = folder

    def start(self, deciding: dict[str, Any], resume: bool, output: str) -> None:
        """Clears the folder; with resume, keeps it and says whether there is anything to resume.

        deciding: values that must equal those of the killed process. What decides only some parts
        belongs in their fingerprints. Raises UserError if a value differs.
        """
        deciding = json.loads(json.dumps(deciding))
        path = f"{self._folder}/{STARTED}"
        if resume and storage.exists(path):
            before = storage.read_json(path).get("deciding", {})
            if deciding and (changes := [*_changes(before, deciding)]):
                how = "give the settings it was started with, or start over without --resume"
                raise UserError(f"{output}: cannot be resumed: {changes[0]}; {how}")
        else:
            if resume:
                say(f"{output}: nothing to resume: starting over")
            self.clear()
        note = {"host": platform.node(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
        storage.write_json(path, note | {"deciding": deciding})

    def clear(self) -> None:
        """Deletes the folder; STARTED first, so that nobody resumes what is half deleted."""
        storage.delete(f"{self._folder}/{STARTED}")
        storage.delete(self._folder)

    def once(
        self, part: str, work: Callable[[], dict[str, Any]], fingerprint: str | None = None
    ) -> dict[str, Any]:
        """Does a part of the work unless it is finished, and returns what it tells.

        fingerprint: of everything that decides the result; a part that finished under a different
        one is done again.
        """
        marker = f"{self._folder}/{part}.json"
        if storage.exists(marker):
            left = storage.read_json(marker)
            if "told" in left and left["fingerprint"] == fingerprint:
                say(f"{part}: already done")
                return left["told"]
            say(f"{part}: its files or settings have changed: done again")
            storage.delete(marker)
        told = work()
        storage.write_json(marker, {"fingerprint": fingerprint, "told": told})
        return told


def _changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            texts = (json.dumps(values.get(name), ensure_ascii=False) for values in (before, now))
            was, is_now = (text if len(text) <= 100 else f"{text[:100]}…" for text in texts)
            yield f"{name} was {was}, now {is_now}"
