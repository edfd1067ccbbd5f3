"""Holds the pairs of a published run or release in a DuckDB table, for queries with filters.

The files are read once into a database in a temporary folder. From then on every query takes a
fraction of a second, whatever happens to the files, and no query can reach another file, because
DuckDB may open none. The database takes about the disk space of the files.
"""

from __future__ import annotations

import io
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseManifest, RunManifest
from gaixie.udfs.storage.published_files import Listed

SCORES = (OUTPUTS[-1], *OUTPUTS[:-1])
TYPES = {
    "pair_id": "VARCHAR",
    "source": "VARCHAR",
    "paraphrase": "VARCHAR",
    "origin": "VARCHAR",
    "stage": "INTEGER",
    "split": "VARCHAR",
    "group": "VARCHAR",
    "method": "VARCHAR",
    "rated": "DOUBLE",
    **dict.fromkeys(SCORES, "FLOAT"),
}
"""Columns that are shown if the pairs have them."""
NEEDED = ("pair_id", "source", "paraphrase", "spscore")
BINS = 20
BATCH = 50_000
"""Rows to read at once."""
MEMORY = "2GB"
"""The most memory for DuckDB, which by default takes most of the machine's."""
PIECE = 10_000
"""Rows to export at once: 60 MB if all sentences have the greatest length."""


@dataclass(frozen=True)
class Filter:
    """Selects pairs. None or an empty text does not filter."""

    origin: str | None = None
    stage: int | None = None
    split: str | None = None
    text: str | None = None
    """Text that the source or the paraphrase contains exactly."""
    bounds: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """Lowest and highest value of each score, both inclusive."""

    def where(self) -> tuple[str, list[Any]]:
        """Returns (SQL condition, its parameters)."""
        parts, values = ["true"], []
        for name in ("origin", "stage", "split"):
            if (value := getattr(self, name)) is not None:
                parts.append(f"{name} = ?")
                values.append(value)
        if self.text:
            parts.append("(contains(source, ?) OR contains(paraphrase, ?))")
            values += [self.text, self.text]
        for name, sides in self.bounds.items():
            for sign, bound in zip((">=", "<="), sides, strict=True):
                if bound is not None:
                    parts.append(f"{_score(name)} {sign} ?::FLOAT")
                    values.append(bound)
        return " AND ".join(parts), values


def _score(name: str) -> str:
    """Returns a score's column for SQL. Raises ValueError for any other name."""
    if name not in SCORES:
        raise ValueError(f"{name}: expected one of {', '.join(SCORES)}")
    return name


class Pairs:
    """The table of pairs. Each query has its own cursor, so that several can run at once."""

    def __init__(
        self,
        folder: str,
        manifest: RunManifest | ReleaseManifest,
        progress: Callable[[int], None] = lambda rows: None,
    ):
        """Reads the files. folder: the manifest's. Raises one-line OSError or ValueError for
        files that cannot be read.
        """
        self.folder = folder
        self._folder = tempfile.mkdtemp(prefix="gaixie-browse-")
        try:
            database = Path(self._folder, "pairs.duckdb")
            self._database = duckdb.connect(str(database), config={"memory_limit": MEMORY})
            self.columns = self._fill(files_of(folder, manifest), progress)
            self._database.execute(
                "SET enable_external_access = false; SET lock_configuration = true"
            )
        except BaseException:
            self.close()
            raise
        self.scores = [name for name in SCORES if name in self.columns]

    def close(self) -> None:
        """Deletes the database."""
        if hasattr(self, "_database"):
            self._database.close()
            del self._database  # else DuckDB reports it as leaked when the process ends
        shutil.rmtree(self._folder, ignore_errors=True)

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self._database.cursor()

    def _fill(
        self, files: list[tuple[str, dict[str, str]]], progress: Callable[[int], None]
    ) -> list[str]:
        """Fills the table from files, and returns its columns."""
        made: list[str] = []
        for uri, constants in files:
            for batch in _batches(uri):
                there = {*batch.schema.names, *constants}
                if not made:
                    made = [name for name in TYPES if name in there]
                    if missing := [name for name in NEEDED if name not in made]:
                        raise ValueError(f"{uri}: no column {missing[0]}")
                    types = ", ".join(f'"{name}" {TYPES[name]}' for name in made)
                    self._database.execute(f"CREATE TABLE pairs ({types})")
                given = {name: constants[name] for name in made if name in constants}
                cells = [
                    "?" if name in given else f'"{name}"' if name in there else "NULL"
                    for name in made
                ]
                wanted = ", ".join(
                    f"TRY_CAST({cell} AS {TYPES[name]})"
                    for name, cell in zip(made, cells, strict=True)
                )
                self._database.register("batch", pa.Table.from_batches([batch]))
                self._database.execute(
                    f"INSERT INTO pairs SELECT {wanted} FROM batch", [*given.values()]
                )
                progress(batch.num_rows)
        if not made:
            raise ValueError("no pairs")
        return made

    def values(self, name: str) -> list[Any]:
        """Returns the sorted distinct values of origin, stage or split; none without the column."""
        if name not in self.columns:
            return []
        rows = self.cursor().execute(f"SELECT DISTINCT {name} FROM pairs ORDER BY 1").fetchall()
        return [value for (value,) in rows if value is not None]

    def page(
        self,
        cursor: duckdb.DuckDBPyConnection,
        wanted: Filter,
        sort: str,
        descending: bool,
        limit: int,
        after: tuple[float, str] | None = None,
    ) -> list[dict[str, Any]]:
        """Returns pairs ordered by a score, then by pair_id. after: (score, pair_id) of the last
        pair on the previous page.
        """
        where, values = wanted.where()
        name, sign = _score(sort), "<" if descending else ">"
        if after is not None:
            where += f" AND ({name} {sign} ?::FLOAT OR {name} = ?::FLOAT AND pair_id > ?)"
            values += [after[0], after[0], after[1]]
        order = f"{name} {'DESC' if descending else 'ASC'}, pair_id"
        sql = f"SELECT * FROM pairs WHERE {where} AND {name} IS NOT NULL ORDER BY {order} LIMIT ?"
        return _rows(cursor.execute(sql, [*values, limit]))

    def sample(
        self, cursor: duckdb.DuckDBPyConnection, wanted: Filter, count: int, seed: int
    ) -> list[dict[str, Any]]:
        """Returns random pairs, the same ones for the same seed."""
        where, values = wanted.where()
        sql = f"SELECT * FROM pairs WHERE {where} ORDER BY hash(pair_id || ?), pair_id LIMIT ?"
        return _rows(cursor.execute(sql, [*values, str(seed), count]))

    def histogram(
        self, cursor: duckdb.DuckDBPyConnection, wanted: Filter, column: str
    ) -> list[int]:
        """Counts pairs by score, in BINS bins of [0, 1]."""
        where, values = wanted.where()
        name = _score(column)
        sql = (
            f"SELECT least({BINS - 1}, floor({name} * {BINS}))::INTEGER, count(*) "
            f"FROM pairs WHERE {where} AND {name} IS NOT NULL GROUP BY 1"
        )
        counts = dict(cursor.execute(sql, values).fetchall())
        return [counts.get(k, 0) for k in range(BINS)]

    def count(self, cursor: duckdb.DuckDBPyConnection, wanted: Filter) -> int:
        """Returns how many pairs a filter keeps."""
        where, values = wanted.where()
        [(count,)] = cursor.execute(f"SELECT count(*) FROM pairs WHERE {where}", values).fetchall()
        return int(count)

    def one(self, cursor: duckdb.DuckDBPyConnection, pair_id: str) -> dict[str, Any] | None:
        """Returns the pair with an id."""
        rows = _rows(cursor.execute("SELECT * FROM pairs WHERE pair_id = ? LIMIT 1", [pair_id]))
        return rows[0] if rows else None

    def export(
        self, cursor: duckdb.DuckDBPyConnection, wanted: Filter, form: str
    ) -> Iterator[bytes]:
        """Yields all pairs of a filter as a file, csv or parquet, a piece at a time."""
        where, values = wanted.where()
        # execute() would hold the whole result; a relation is read piece by piece.
        asked = cursor.sql(f"SELECT * FROM pairs WHERE {where}", params=values)
        batches = asked.to_arrow_reader(PIECE)
        made = io.BytesIO()
        kind = csv.CSVWriter if form == "csv" else pq.ParquetWriter
        with kind(made, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                yield made.getvalue()
                made.seek(0)
                made.truncate()
        yield made.getvalue()


def files_of(
    folder: str, manifest: RunManifest | ReleaseManifest
) -> list[tuple[str, dict[str, str]]]:
    """Returns (URI, the values in its path that all of its rows share) of each file of pairs."""
    listed: list[Listed]
    if isinstance(manifest, RunManifest):
        listed = [*manifest.files.get("scored", [])]
    else:
        folder = storage.join(folder, manifest.build)
        listed = [*manifest.data_files]
    found = []
    for file in listed:
        steps = [step.partition("=") for step in file.path.split("/")]
        constants = {name: value for name, equals, value in steps if equals and name in TYPES}
        found.append((storage.join(folder, file.path), constants))
    random.Random(0).shuffle(found)  # for even progress
    return found


def _batches(uri: str) -> Iterator[pa.RecordBatch]:
    """Yields those columns of TYPES that a file has. Raises OSError that names the file."""
    system, path = storage.arrow_filesystem(uri)
    try:
        with system.open_input_file(path) as opened:
            file = pq.ParquetFile(opened, page_checksum_verification=True)
            names = [name for name in TYPES if name in file.schema_arrow.names]
            yield from file.iter_batches(BATCH, columns=names)
    except FileNotFoundError:
        raise FileNotFoundError(f"{uri}: no such file") from None
    except (OSError, pa.ArrowException) as error:
        raise OSError(f"{uri}: {' '.join(str(error).split())}") from None


def _rows(answer: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [one[0] for one in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
