"""Makes the steps of a job resumable: each finished step leaves a marker for the next process."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from gaixie.udfs.command_line import UserError, say
from gaixie.udfs.storage import storage


class Steps:
    """The finished steps of a run or of a building of pairs, each with a marker in its _work."""

    def __init__(self, folder: str):
        self._folder = folder

    def start(
        self, deciding: dict[str, Any], resume: bool, output: str, by_step: bool = False
    ) -> None:
        """Clears _work; with resume, keeps it and says whether there is anything to resume.

        deciding: everything that decides the result. by_step: whether each step has its own
        fingerprint, so that a step with a different one runs again. Without by_step, raises
        UserError if the killed process had other values.
        """
        deciding = json.loads(json.dumps(deciding))
        path = f"{self._folder}/started.json"
        if resume and storage.exists(path):
            before = storage.read_json(path).get("deciding", {})
            for change in _changes(before, deciding):
                if not by_step:
                    raise UserError(
                        f"{output}: cannot be resumed: {change}; give the settings it was started "
                        "with, or start over without --resume"
                    )
                say(f"{output}: {change}: the finished steps that depend on it run again")
        else:
            if resume:
                say(f"{output}: nothing to resume: starting over")
            storage.delete(self._folder)
        note = {"host": platform.node(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
        storage.write_json(path, note | {"deciding": deciding})

    def is_done(self, step: str) -> bool:
        """Returns whether a step is finished."""
        return storage.exists(self._marker(step))

    def once(
        self, step: str, work: Callable[[], dict[str, Any]], fingerprint: str | None = None
    ) -> dict[str, Any]:
        """Runs a step unless it is finished, and returns the result of its work.

        fingerprint: of everything that decides the result; a step that finished under a different
        one runs again.
        """
        marker = self._marker(step)
        if storage.exists(marker):
            left = storage.read_json(marker)
            if "told" in left and left["fingerprint"] == fingerprint:
                say(f"{step}: already done")
                return left["told"]
            storage.delete(marker)
        told = work()
        storage.write_json(marker, {"fingerprint": fingerprint, "told": told})
        return told

    def _marker(self, step: str) -> str:
        return f"{self._folder}/{step}.json"


def _changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            texts = (json.dumps(values.get(name), ensure_ascii=False) for values in (before, now))
            was, is_now = (text if len(text) <= 100 else f"{text[:100]}…" for text in texts)
            yield f"{name} was {was}, now {is_now}"
