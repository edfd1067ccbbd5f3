"""Shows a published run or release in a browser, for jobs/show_run.py --serve: the paths below
/v1/run. Needs gaixie[browse].

The files are read once into a DuckDB database in a temporary folder. From then on every query takes
a fraction of a second, whatever happens to the files, and no query can reach another file, because
DuckDB may open none. The database takes about the disk space of the files.
"""

import asyncio
import codecs
import io
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pyarrow import csv

from gaixie.service.changes import changes as mark
from gaixie.service.part import Part, busy, json_response, while_connected
from gaixie.service.scoring import unmarked, verdict
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.meaning.explain import Why
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseManifest, RunManifest
from gaixie.udfs.storage.tables import opened
from gaixie.udfs.text.segmenters import load_segmenter

SCORES = (OUTPUTS[-1], *OUTPUTS[:-1])
NEEDED = ("pair_id", "source", "paraphrase", "spscore")
TYPES = {
    **dict.fromkeys(("pair_id", "source", "paraphrase", "origin"), "VARCHAR"),
    "stage": "INTEGER",
    **dict.fromkeys(("split", "group", "method"), "VARCHAR"),
    "rated": "DOUBLE",
    **dict.fromkeys(SCORES, "FLOAT"),
}
"""Columns that are shown if the pairs have them."""
BINS = 20
BATCH = 50_000
"""Rows to read at once."""
PIECE = 10_000
"""Rows to export at once: 60 MB if all sentences have the greatest length."""
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}

Result = TypeVar("Result")
Row = dict[str, Any]
Cursor = duckdb.DuckDBPyConnection
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

    def where(self) -> tuple[list[str], str, list[Any]]:
        """Returns (columns, SQL condition, its parameters)."""
        columns, parts, values = list[str](), ["true"], list[Any]()
        for name, value in vars(self).items():
            side, _, score = name.partition("_")
            if value is not None and name != "text":
                columns.append(column := score or name)
                sign = {"min": ">=", "max": "<="}.get(side, "=")
                parts.append(f"{column} {sign} ?::{TYPES[column]}")
                values.append(value)
        if self.text:
            parts.append("(contains(source, ?) OR contains(paraphrase, ?))")
            values += [self.text, self.text]
        return columns, " AND ".join(parts), values


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
        self._temporary = tempfile.TemporaryDirectory(prefix="gaixie-browse-")
        try:
            path = f"{self._temporary.name}/pairs.duckdb"
            # By default DuckDB takes most of the machine's memory.
            self._database = duckdb.connect(path, config={"memory_limit": "2GB"})
            self.columns = self._fill(manifest, progress)
            locked = "SET enable_external_access = false; SET lock_configuration = true"
            self._database.execute(locked)
        except BaseException:
            self.close()
            raise
        self.scores = [name for name in SCORES if name in self.columns]
        self._select = f"SELECT {', '.join(map(_quoted, self.columns))} FROM pairs WHERE "

    def close(self) -> None:
        """Deletes the database."""
        if database := vars(self).pop("_database", None):  # else DuckDB reports it as leaked
            database.close()
        self._temporary.cleanup()

    def cursor(self) -> Cursor:
        return self._database.cursor()

    def _fill(
        self, manifest: RunManifest | ReleaseManifest, progress: Callable[[int], None]
    ) -> list[str]:
        """Fills the table, and returns which of its columns the pairs have."""
        types = ", ".join(f"{_quoted(name)} {TYPES[name]}" for name in TYPES)
        self._database.execute(f"CREATE TABLE pairs ({types})")
        there: set[str] = set()
        for uri, above in files_of(self.folder, manifest):
            with opened(uri) as source:
                file = pq.ParquetFile(source, page_checksum_verification=True)
                names = [name for name in TYPES if name in {*file.schema_arrow.names} - {*above}]
                values = {name: _quoted(name) for name in names} | dict.fromkeys(above, "?")
                if missing := [name for name in NEEDED if name not in values]:
                    raise ValueError(f"{uri}: no column {missing[0]}")
                there |= {*values}
                cast = ", ".join(
                    f"TRY_CAST({value} AS {TYPES[name]}) AS {_quoted(name)}"
                    for name, value in values.items()
                )
                for batch in file.iter_batches(BATCH, columns=names):
                    self._database.register("batch", pa.Table.from_batches([batch]))
                    insert = f"INSERT INTO pairs BY NAME SELECT {cast} FROM batch"
                    self._database.execute(insert, [*above.values()])
                    progress(len(batch))
        if not there:
            raise ValueError("no pairs")
        return [name for name in TYPES if name in there]

    def values(self, name: str) -> list[Any]:
        """Returns the sorted distinct values of origin, stage or split."""
        sql = f"SELECT DISTINCT {name} FROM pairs WHERE {name} IS NOT NULL ORDER BY 1"
        return [value for (value,) in self.cursor().execute(sql).fetchall()]

    def page(
        self,
        cursor: Cursor,
        wanted: Filter,
        limit: int,
        sort: str = "spscore",
        descending: bool = True,
        start: int = 0,
        seed: int | None = None,
    ) -> list[Row]:
        """Returns pairs from start on, ordered by a score, one of SCORES, then by pair_id; with a
        seed, random ones, the same for the same seed."""
        _, where, values = wanted.where()
        order = f"{sort} {'DESC' if descending else 'ASC'}"
        if seed is not None:
            order, values = "hash(pair_id || ?)", [*values, str(seed)]
        rest = f"{where} AND {sort} IS NOT NULL ORDER BY {order}, pair_id LIMIT ? OFFSET ?"
        return self._rows(cursor, rest, [*values, limit, start])

    def histograms(self, cursor: Cursor, wanted: Filter) -> tuple[int, dict[str, list[int]]]:
        """Returns (number of pairs, for each score the counts in BINS bins of [0, 1])."""
        _, where, values = wanted.where()
        counts = {}
        for name in self.scores:
            number = f"least({BINS - 1}, floor({name} * {BINS}))::INTEGER"
            rows = f"FROM pairs WHERE {where} AND {name} IS NOT NULL GROUP BY 1"
            found = dict(cursor.execute(f"SELECT {number}, count(*) {rows}", values).fetchall())
            counts[name] = [found.get(k, 0) for k in range(BINS)]
        [(count,)] = cursor.execute(f"SELECT count(*) FROM pairs WHERE {where}", values).fetchall()
        return int(count), counts

    def one(self, cursor: Cursor, pair_id: str) -> Row | None:
        """Returns the pair with an id."""
        return next(iter(self._rows(cursor, "pair_id = ? LIMIT 1", [pair_id])), None)

    def _rows(self, cursor: Cursor, where: str, values: list[Any]) -> list[Row]:
        return cursor.sql(self._select + where, params=values).to_arrow_table().to_pylist()

    def export(self, cursor: Cursor, wanted: Filter, form: str) -> Iterator[bytes]:
        """Yields all pairs of a filter as a file, csv or parquet, a piece at a time."""
        _, where, values = wanted.where()
        # execute() would hold the whole result; a relation is read piece by piece.
        batches = cursor.sql(self._select + where, params=values).to_arrow_reader(PIECE)
        made = io.BytesIO()
        kind = csv.CSVWriter if form == "csv" else pq.ParquetWriter
        made.write(codecs.BOM_UTF8 if form == "csv" else b"")  # which Excel needs
        with kind(made, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                yield made.getvalue()
                made.seek(0)
                made.truncate()
        yield made.getvalue()


def files_of(
    folder: str, manifest: RunManifest | ReleaseManifest
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields (URI, the values in its path that all of its rows share) of each file of pairs."""
    if isinstance(manifest, RunManifest):
        paths = [file.path for file in manifest.files.get("scored", [])]
    else:
        paths = [f"{manifest.build}/{file.path}" for file in manifest.data_files]
    for path in paths:
        steps = [step.partition("=") for step in path.split("/")]
        above = {name: value for name, equals, value in steps if equals and name in TYPES}
        yield storage.join(folder, path), above


def _quoted(name: str) -> str:
    return f'"{name}"'


# HTTP

Score = Literal["spscore", "structure", "synonyms", "meaning", "fluency"]
Filtered = Annotated[Filter, Depends()]
Format = Annotated[Literal["csv", "parquet"], Query(description="file format")]


class BrowsingPart(Part):
    """One run or release."""

    name = "run"

    def __init__(
        self,
        pairs: Pairs,
        manifest: RunManifest | ReleaseManifest,
        why: Why,
        settings: ServiceSettings,
    ):
        self.pairs, self.manifest, self.why, self.settings = pairs, manifest, why, settings
        self.segmenter = load_segmenter()
        self.router = APIRouter(prefix="/v1/run")
        add = self.router.get
        add("/pairs")(self.page)
        add("/histograms")(self.histograms)
        add("/pair/{pair_id}")(self.one)
        add("/export", response_class=Response)(self.export)

    async def stop(self) -> None:
        self.pairs.close()

    def about(self) -> Row:
        manifest = self.manifest
        return {
            "name": manifest.run_id if isinstance(manifest, RunManifest) else manifest.name,
            "created": manifest.created,
            "signature": manifest.signature,
            "columns": self.pairs.columns,
            "scores": self.pairs.scores,
            **{f"{name}s": self.pairs.values(name) for name in ("origin", "stage", "split")},
        }

    async def page(
        self,
        request: Request,
        wanted: Filtered,
        sort: Annotated[Score, Query(description="the score to sort by")] = "spscore",
        order: Annotated[Literal["asc", "desc"], Query(description="of the score")] = "desc",
        limit: Annotated[int, Query(ge=1, le=1_000, description="maximum rows")] = 50,
        after: Annotated[int, Query(ge=0, lt=2**31, description="next of the previous page")] = 0,
        seed: Annotated[int | None, Query(description="draws pairs, instead of sorting")] = None,
        changes: Annotated[bool, Query(description="add what changed in each pair")] = False,
    ) -> Response:
        """Returns pairs in the order of a score, one page at a time; or drawn by a seed."""
        self._check(wanted, sort)

        def work(cursor: Cursor) -> list[Row]:
            rows = self.pairs.page(cursor, wanted, limit, sort, order == "desc", after, seed)
            for row in rows if changes else ():
                row["changes"] = mark(row["source"], row["paraphrase"], self.segmenter)
            return rows

        rows = await self._ask(request, work)
        more = seed is None and len(rows) == limit
        return json_response({"rows": rows, "next": after + limit if more else None})

    async def histograms(self, request: Request, wanted: Filtered) -> Response:
        """Returns a histogram of every score, and the number of pairs."""
        self._check(wanted)
        count, counts = await self._ask(request, lambda at: self.pairs.histograms(at, wanted))
        return json_response({"counts": counts, "count": count})

    async def one(
        self, request: Request, pair_id: Annotated[str, Path(description="its pair_id")]
    ) -> Response:
        """Returns a pair, with what changed in it and the reasons for its judgements."""
        row = await self._ask(request, lambda cursor: self.pairs.one(cursor, pair_id))
        if row is None:
            raise HTTPException(404, "no such pair")
        source, paraphrase = row["source"], row["paraphrase"]
        judged = all(row.get(name) is not None for name in self.pairs.scores)
        row |= {
            "verdict": verdict(row),
            "reason": None,
            "changes": (marks := mark(source, paraphrase, self.segmenter)),
            "reasons": unmarked(self.why(source, paraphrase, row), marks) if judged else [],
        }
        return json_response(row)

    async def export(self, wanted: Filtered, format: Format = "csv") -> Response:
        """Returns all pairs that match the filter, as a file that is streamed."""
        self._check(wanted)
        pieces = self.pairs.export(self.pairs.cursor(), wanted, format)
        name = f"{self.about()['name']}-selection.{format}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(pieces, media_type=FORMATS[format], headers=headers)

    def _check(self, wanted: Filter, *scores: str) -> None:
        """Raises HTTPException for a column that these pairs do not have."""
        for name in (*wanted.where()[0], *scores):
            if name not in self.pairs.columns:
                raise HTTPException(422, f"{name}: these pairs have no such column")
        if wanted.text and "\0" in wanted.text:
            raise HTTPException(422, "text: contains a NUL character")

    async def _ask(self, request: Request, work: Callable[[Cursor], Result]) -> Result:
        """Runs work in a thread and returns its result. Interrupts it if it takes too long or the
        client leaves.
        """
        cursor, seconds = self.pairs.cursor(), self.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                return await while_connected(request, asyncio.to_thread(work, cursor))
        except TimeoutError:
            message = f"not done within {seconds:g} s: a narrower filter may help"
            raise busy(503, message) from None
        finally:
            cursor.interrupt()  # which ends a thread that still works
