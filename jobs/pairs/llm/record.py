"""Records requests before they leave, and answers as soon as they arrive.

On a file system, the record is a SQLite database in WAL mode. For s3a:// it is a SQLite database in
a temporary folder and, in the folder of the answers, an object of JSON lines for each group of
events, from which the next process rebuilds the database. Events that arrive while a group is being
written make the next group.

A request that was sent and never settled, because the process was killed, may have been paid: it
counts as lost, at the most that it could have taken.
"""

from __future__ import annotations

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
"""Objects read from a store at a time."""

COLUMNS = (
    *("id", "building", "model", "state", "tokens_in", "tokens_out"),
    *("characters_in", "characters_out", "seconds"),
)
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
    """Requests that were paid, or may have been."""
    tokens_in: int = 0
    tokens_out: int = 0
    failed: int = 0
    """Requests that were not paid, or whose answer was lost."""


class Measured(NamedTuple):
    """Means over the answered requests of a model."""

    requests: int
    tokens_in: float
    """Tokens per character of the prompt."""
    tokens_out: float
    """Tokens per character of the answer."""
    seconds: float
    """Seconds from request to answer."""


def key(*parts: Any) -> bytes:
    """Returns the SHA-256 of JSON values."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def check_place(folder: str) -> str | None:
    """Returns the local path of an answers folder; None for a store.

    Raises JobError for any other place.
    """
    local = local_path(folder)
    if not local and not folder.startswith("s3a://"):
        raise JobError(f"{folder}: answers need a file system or s3a://; give --cache")
    return local


class Record:
    """The recorded answers of a folder, and what one building spent. Any thread may call its
    methods."""

    def __init__(self, folder: str, building: str):
        self.folder, self.building = folder.rstrip("/"), building
        local = check_place(self.folder)
        self._lock, self._waiting, self._remote = threading.Lock(), list[Event](), not local
        self._temporary = tempfile.TemporaryDirectory(prefix="gaixie-answers-")
        path = Path(local or self._temporary.name)
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
        """Marks the requests that a killed process of this building left under way as lost."""
        self.write({"killed": self.building})

    def close(self) -> None:
        self._database.close()
        self._temporary.cleanup()

    def _load(self) -> None:
        uris = [f.uri for f in storage.list_files(self.folder) if f.uri.endswith(".jsonl")]
        with self._database as transaction, ThreadPoolExecutor(AT_ONCE) as pool:
            for start in range(0, len(uris), 100 * AT_ONCE):  # in order of time
                for data in pool.map(storage.read_bytes, uris[start : start + 100 * AT_ONCE]):
                    for line in data.splitlines():
                        _apply(transaction, json.loads(line))

    def write(self, event: Event) -> None:
        """Records an event: once this returns, the event survives any kill."""
        self._waiting.append(event)
        with self._lock:  # its holder also writes the events of the waiting threads
            group = self._waiting[:]
            if event in group:
                self._write(group)
                del self._waiting[: len(group)]

    def _write(self, group: Sequence[Event]) -> None:
        with self._database as transaction:
            changed = [event for event in group if _apply(transaction, event)]
            if self._remote and changed:
                name = f"{time.time_ns():020d}-{secrets.token_hex(4)}.jsonl"
                lines = (json.dumps(event, ensure_ascii=False) + "\n" for event in changed)
                storage.write(f"{self.folder}/{name}", "".join(lines))

    def answers(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Returns the recorded answers of those keys that have one."""
        query, known = "SELECT ending, text FROM answers WHERE key = ?", {}
        with self._lock:
            for name in keys:
                if row := self._database.execute(query, [name]).fetchone():
                    known[name] = Answer(*row)
        return known

    def spent(self) -> Spent:
        """Returns what the requests of all this building's processes took."""
        query = (
            "SELECT count(*) FILTER (WHERE state != 'failed'), total(tokens_in), "
            "total(tokens_out), count(*) FILTER (WHERE state IN ('failed', 'lost')) "
            "FROM requests WHERE building = ?"
        )
        with self._lock:
            return Spent(*map(int, self._database.execute(query, [self.building]).fetchone()))

    def measured(self, model: str) -> Measured | None:
        """Returns what a model's requests took, whoever sent them; None before the first."""
        query = (
            "SELECT count(*), total(tokens_in) / total(characters_in), "
            "total(tokens_out) / total(characters_out), avg(seconds) "
            "FROM requests WHERE model = ? AND state = 'done' AND characters_out > 0"
        )
        with self._lock:
            row = self._database.execute(query, [model]).fetchone()
        return Measured(*row) if row[0] else None


def _apply(database: sqlite3.Connection, event: Event) -> bool:
    """Applies an event to the tables. Returns whether anything changed."""
    if "killed" in event:
        query = "UPDATE requests SET state = 'lost' WHERE building = ? AND state = 'sent'"
        return database.execute(query, [event["killed"]]).rowcount > 0
    query = "SELECT * FROM requests WHERE id = ?"
    before = database.execute(query, [event["id"]]).fetchone() or [0] * len(COLUMNS)
    request = dict(zip(COLUMNS, before, strict=True)) | event
    values = ", ".join(f":{name}" for name in COLUMNS)
    database.execute(f"INSERT OR REPLACE INTO requests VALUES ({values})", request)
    rows = [(bytes.fromhex(key), *answer, event["id"]) for key, *answer in event.get("answers", ())]
    database.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)
    return True
