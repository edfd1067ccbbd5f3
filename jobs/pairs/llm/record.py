"""What was asked and answered: written down before a request leaves, and as soon as its answer is there.

On a file system it is a SQLite database in WAL mode; for s3a:// a SQLite database in a temporary folder,
and each group of events an object of JSON lines below the folder, from which the next process makes the
database again. Events that wait while a group is being written make the next group.

A request that was sent and never settled, because the process was killed, may have been paid: it counts
as lost, at the most that it could have taken.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from gaixie.jobs.corpus.paths import local_path
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.answers import Answer
from gaixie.udfs.storage import storage

NAME = "answers.sqlite"

AT_ONCE = 16
"""Objects that are read from a store at a time."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY, ending TEXT NOT NULL, text TEXT, request TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    id TEXT PRIMARY KEY, building TEXT NOT NULL, model TEXT NOT NULL, state TEXT NOT NULL,
    tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
    characters_in INTEGER NOT NULL DEFAULT 0, characters_out INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
"""

Event = dict[str, Any]


class Spent(NamedTuple):
    """What the requests of a building took."""

    requests: int = 0
    """That were paid, or may have been."""
    tokens_in: int = 0
    tokens_out: int = 0
    failed: int = 0
    """Requests that were not paid, or whose answer was lost."""


class Measured(NamedTuple):
    """Means over the answered requests of a model."""

    requests: int
    tokens_in: float
    """A character of the prompt."""
    tokens_out: float
    """A character of the answer."""
    characters_out: float
    """Of the answer, a character of the prompt."""
    seconds: float
    """From sending to answer."""


def key(*parts: Any) -> bytes:
    """SHA-256 of values of JSON."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def check_place(folder: str) -> str | None:
    """The local path of a folder of answers; None in a store. Raises JobError for what is neither."""
    local = local_path(folder)
    if not local and not folder.startswith("s3a://"):
        raise JobError(f"{folder}: answers are kept on a file system or s3a://; give --cache")
    return local


class Record:
    """The answers in a folder, and what one building spent. Its methods may be called in any thread."""

    def __init__(self, folder: str, building: str):
        self.folder, self.building = folder.rstrip("/"), building
        local = check_place(self.folder)
        self._lock = threading.Lock()
        self._remote = not local
        self._temporary = (
            tempfile.TemporaryDirectory(prefix="gaixie-answers-") if not local else None
        )
        path = Path(local or self._temporary.name)  # type: ignore[union-attr]
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path / NAME, timeout=60, check_same_thread=False)
            self._database.executescript(SCHEMA)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(f"PRAGMA synchronous={'OFF' if self._remote else 'FULL'}")
            if self._remote:
                self._load()
        except (sqlite3.Error, OSError) as error:
            raise JobError(f"{self.folder}/{NAME}: {error}") from error

    def begin(self) -> None:
        """Counts what a killed process of this building left under way as lost."""
        self.write([{"killed": self.building}])

    def close(self) -> None:
        self._database.close()
        if self._temporary:
            self._temporary.cleanup()

    def _load(self) -> None:
        uris = [f.uri for f in storage.list_files(self.folder) if f.uri.endswith(".jsonl")]
        with self._database as transaction, ThreadPoolExecutor(AT_ONCE) as pool:
            for start in range(0, len(uris), 100 * AT_ONCE):  # in order of time
                for data in pool.map(storage.read_bytes, uris[start : start + 100 * AT_ONCE]):
                    for line in data.splitlines():
                        _apply(transaction, json.loads(line))

    def write(self, events: Sequence[Event]) -> None:
        """Makes a group of events last: once this returns, they are there after any kill."""
        with self._lock, self._database as transaction:
            changed = [event for event in events if _apply(transaction, event)]
            if self._remote and changed:
                name = f"{time.time_ns():020d}-{secrets.token_hex(4)}.jsonl"
                lines = (json.dumps(event, ensure_ascii=False) + "\n" for event in changed)
                storage.write(f"{self.folder}/{name}", "".join(lines))

    def answers(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Those of the keys that were answered."""
        known = {}
        with self._lock:
            for start in range(0, len(keys), 500):
                some = keys[start : start + 500]
                marks = ",".join("?" * len(some))
                rows = self._database.execute(
                    f"SELECT key, ending, text FROM answers WHERE key IN ({marks})", some
                )
                known.update({key: Answer(ending, text) for key, ending, text in rows})
        return known

    def spent(self) -> Spent:
        """What this building's requests took, in all its processes."""
        query = (
            "SELECT count(*) FILTER (WHERE state != 'failed'), total(tokens_in), total(tokens_out), "
            "count(*) FILTER (WHERE state IN ('failed', 'lost')) FROM requests WHERE building = ?"
        )
        with self._lock:
            return Spent(*map(int, self._database.execute(query, [self.building]).fetchone()))

    def measured(self, model: str) -> Measured | None:
        """What a model's requests took, whoever sent them; None before the first."""
        query = (
            "SELECT count(*), total(tokens_in) / total(characters_in), "
            "total(tokens_out) / total(characters_out), "
            "total(characters_out) / total(characters_in), avg(seconds) "
            "FROM requests WHERE model = ? AND state = 'done' AND characters_out > 0"
        )
        with self._lock:
            row = self._database.execute(query, [model]).fetchone()
        return Measured(*row) if row[0] else None


def _apply(database: sqlite3.Connection, event: Event) -> bool:
    """Takes an event into the tables; whether anything changed."""
    if "killed" in event:
        query = "UPDATE requests SET state = 'lost' WHERE building = ? AND state = 'sent'"
        return database.execute(query, [event["killed"]]).rowcount > 0
    if event["state"] == "sent":
        query = (
            "INSERT OR REPLACE INTO requests "
            "(id, building, model, state, tokens_in, tokens_out, characters_in) "
            "VALUES (:id, :building, :model, :state, :tokens_in, :tokens_out, :characters_in)"
        )
        database.execute(query, event)
        return True
    names = [name for name in event if name not in ("id", "answers")]
    changes = ", ".join(f"{name} = ?" for name in names)
    database.execute(
        f"UPDATE requests SET {changes} WHERE id = ?", [*(event[n] for n in names), event["id"]]
    )
    rows = [(bytes.fromhex(k), ending, text, event["id"]) for k, ending, text in event["answers"]]
    database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)
    return True


class Journal:
    """Writes events from the tasks of one event loop, in groups."""

    def __init__(self, record: Record):
        self._record = record
        self._waiting: list[tuple[Event, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def write(self, event: Event) -> None:
        """Returns once the event lasts."""
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((event, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())
        await written

    async def _write_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._record.write, [event for event, _ in group])
            except Exception as error:
                outcome: Exception | None = error
            else:
                outcome = None
            for _, written in group:
                if written.cancelled():
                    continue
                if outcome:
                    written.set_exception(outcome)
                else:
                    written.set_result(None)
