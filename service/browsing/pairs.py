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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from fastapi import Query
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


Least = Annotated[float | None, Query(ge=0, le=1, description="minimum, inclusive")]
Most = Annotated[float | None, Query(ge=0, le=1, description="maximum, inclusive")]
Stage = Annotated[int | None, Query(ge=-(2**31), lt=2**31, description="stage of the pairs")]


@dataclass(frozen=True)
class Filter:
    """Selects pairs; also the query parameters that do so. None or an empty text selects all."""

    origin: Annotated[str | None, Query(description="origin of the pairs")] = None
    stage: Stage = None
    split: Annotated[str | None, Query(description="split of a release")] = None
    text: Annotated[str | None, Query(description="exact text in source or paraphrase")] = None
    min_spscore: Least = None
    max_spscore: Most = None
    min_structure: Least = None
    max_structure: Most = None
    min_synonyms: Least = None
    max_synonyms: Most = None
    min_meaning: Least = None
    max_meaning: Most = None
    min_fluency: Least = None
    max_fluency: Most = None

    def columns(self) -> list[str]:
        """Returns the columns that it asks about, beside the sentences."""
        given = [name for name, value in vars(self).items() if value is not None and name != "text"]
        return [name.removeprefix("min_").removeprefix("max_") for name in given]

    def where(self) -> tuple[str, list[Any]]:
        """Returns (SQL condition, its parameters)."""
        parts, values = ["true"], []
        for name, value in vars(self).items():
            if value is None or name == "text":
                continue
            side, _, score = name.partition("_")
            sign = {"min": ">=", "max": "<="}.get(side)
            parts.append(f"{score} {sign} ?::FLOAT" if sign else f"{name} = ?")
            values.append(value)
        if self.text:
            parts.append("(contains(source, ?) OR contains(paraphrase, ?))")
            values += [self.text, self.text]
        return " AND ".join(parts), values


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
                table = pa.Table.from_batches([batch])
                for name, value in constants.items():
                    table = table.append_column(name, pa.repeat(value, len(table)))
                if not made:
                    made = [name for name in TYPES if name in table.column_names]
                    if missing := [name for name in NEEDED if name not in made]:
                        raise ValueError(f"{uri}: no column {missing[0]}")
                    types = ", ".join(f'"{name}" {TYPES[name]}' for name in made)
                    self._database.execute(f"CREATE TABLE pairs ({types})")
                cast = ", ".join(
                    f'TRY_CAST("{name}" AS {TYPES[name]}) AS "{name}"'
                    for name in made
                    if name in table.column_names
                )
                self._database.register("batch", table)
                self._database.execute(f"INSERT INTO pairs BY NAME SELECT {cast} FROM batch")
                progress(len(table))
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
        after: str | None = None,
    ) -> list[dict[str, Any]]:
        """Returns pairs ordered by a score, one of SCORES, then by pair_id. after: pair_id of the
        last pair on the previous page.
        """
        where, values = wanted.where()
        sign = "<" if descending else ">"
        if after is not None:
            where += f" AND ({sort} {sign} $last OR {sort} = $last AND pair_id > ?)".replace(
                "$last", f"(SELECT {sort} FROM pairs WHERE pair_id = ?)"
            )
            values += [after, after, after]
        order = f"{sort} {'DESC' if descending else 'ASC'}, pair_id"
        sql = f"SELECT * FROM pairs WHERE {where} AND {sort} IS NOT NULL ORDER BY {order} LIMIT ?"
        return _rows(cursor.execute(sql, [*values, limit]))

    def sample(
        self, cursor: duckdb.DuckDBPyConnection, wanted: Filter, count: int, seed: int
    ) -> list[dict[str, Any]]:
        """Returns random pairs, the same ones for the same seed."""
        where, values = wanted.where()
        sql = f"SELECT * FROM pairs WHERE {where} ORDER BY hash(pair_id || ?), pair_id LIMIT ?"
        return _rows(cursor.execute(sql, [*values, str(seed), count]))

    def histograms(
        self, cursor: duckdb.DuckDBPyConnection, wanted: Filter
    ) -> tuple[int, dict[str, list[int]]]:
        """Returns (number of pairs, for each score the counts in BINS bins of [0, 1])."""
        where, values = wanted.where()
        counts = {}
        for name in self.scores:
            sql = (
                f"SELECT least({BINS - 1}, floor({name} * {BINS}))::INTEGER, count(*) "
                f"FROM pairs WHERE {where} AND {name} IS NOT NULL GROUP BY 1"
            )
            found = dict(cursor.execute(sql, values).fetchall())
            counts[name] = [found.get(k, 0) for k in range(BINS)]
        [(count,)] = cursor.execute(f"SELECT count(*) FROM pairs WHERE {where}", values).fetchall()
        return int(count), counts

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
