"""Serves the pairs of a run or release over HTTP: GET /v1/run and the paths below it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import duckdb
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from gaixie.service.browsing.pairs import Filter, Pairs
from gaixie.service.changes import changes as mark
from gaixie.service.part import Part, json_response, while_connected
from gaixie.service.refusals import Refused
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.meaning.why import Why
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseManifest, RunManifest
from gaixie.udfs.text.segmenters import load_segmenter

Result = TypeVar("Result")
Score = Literal["spscore", "structure", "synonyms", "meaning", "fluency"]
Least = Annotated[float | None, Query(ge=0, le=1, description="minimum")]
Most = Annotated[float | None, Query(ge=0, le=1, description="maximum")]
Column = Annotated[Score, Query(description="the score to sort by")]
Marked = Annotated[bool, Query(description="add what changed in each pair")]
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
PAGE = 50
LONGEST_PAGE = 1_000
REPORT = "report.html"
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The report contains its styles and figures; scripts are blocked."""


@dataclass
class Wanted:
    """The filter as query parameters. min_ and max_ of each score are inclusive."""

    origin: Annotated[str | None, Query(description="origin of the pairs")] = None
    stage: Annotated[int | None, Query(ge=-(2**31), lt=2**31, description="stage of the pairs")] = (
        None
    )
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


Filtered = Annotated[Wanted, Depends()]


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
        self.folder = pairs.folder
        self.has_report = storage.exists(storage.join(self.folder, REPORT))
        self.segmenter = load_segmenter()
        self.router = APIRouter(prefix="/v1/run")
        add = self.router.get
        add("")(self.facts)
        add("/pairs")(self.page)
        add("/sample")(self.sample)
        add("/histograms")(self.histograms)
        add("/pair/{pair_id}")(self.one)
        add("/export", response_class=Response)(self.export)
        add("/report", response_class=HTMLResponse)(self.report)

    async def stop(self) -> None:
        self.pairs.close()

    def about(self) -> dict[str, Any]:
        own = self.manifest
        is_run = isinstance(own, RunManifest)
        return {
            "name": own.run_id if isinstance(own, RunManifest) else own.name,
            "kind": "run" if is_run else "release",
            "created": own.created,
            "signature": own.signature,
            "columns": self.pairs.columns,
            "scores": self.pairs.scores,
            "origins": self.pairs.values("origin"),
            "stages": self.pairs.values("stage"),
            "splits": self.pairs.values("split"),
            "report": self.has_report,
        }

    def facts(self) -> dict[str, Any]:
        """Returns the manifest without its list of files and the settings of the job."""
        return self.about() | {
            "manifest": self.manifest.model_dump(mode="json", exclude={"files", "settings"})
        }

    async def page(
        self,
        request: Request,
        given: Filtered,
        sort: Column = "spscore",
        order: Annotated[Literal["asc", "desc"], Query(description="order of the score")] = "desc",
        limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="maximum rows")] = PAGE,
        after: Annotated[str | None, Query(description="next of the previous page")] = None,
        changes: Marked = False,
    ) -> Response:
        """Returns pairs in the order of a score, one page at a time."""
        wanted, start = self._filter(given, sort), _place(after)
        rows = await self._ask(
            request,
            lambda cursor: self._marked(
                self.pairs.page(cursor, wanted, sort, order == "desc", limit, start), changes
            ),
        )
        next_ = f"{rows[-1][sort]!r}:{rows[-1]['pair_id']}" if len(rows) == limit else None
        return json_response({"rows": rows, "next": next_})

    async def sample(
        self,
        request: Request,
        given: Filtered,
        n: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="number of pairs")] = PAGE,
        seed: Annotated[int, Query(description="the same seed draws the same pairs")] = 1,
        changes: Marked = False,
    ) -> Response:
        """Returns random pairs; the same seed gives the same pairs."""
        wanted = self._filter(given)
        rows = await self._ask(
            request,
            lambda cursor: self._marked(self.pairs.sample(cursor, wanted, n, seed), changes),
        )
        return json_response({"rows": rows})

    async def histograms(self, request: Request, given: Filtered) -> Response:
        """Returns a histogram of every score, and the number of pairs."""
        wanted = self._filter(given)

        def work(cursor: duckdb.DuckDBPyConnection) -> dict[str, Any]:
            counts = {
                name: self.pairs.histogram(cursor, wanted, name) for name in self.pairs.scores
            }
            return {"counts": counts, "count": self.pairs.count(cursor, wanted)}

        return json_response(await self._ask(request, work))

    async def one(
        self, request: Request, pair_id: Annotated[str, Path(description="its pair_id")]
    ) -> Response:
        """Returns a pair, with what changed in it and the reasons for its judgements."""
        row = await self._ask(request, lambda cursor: self.pairs.one(cursor, pair_id))
        if row is None:
            raise Refused(404, "no such pair")
        source, paraphrase = row["source"], row["paraphrase"]
        judged = all(row.get(name) is not None for name in self.pairs.scores)
        row |= {
            "reason": None,
            "reasons": self.why(source, paraphrase, row) if judged else [],
            "changes": mark(source, paraphrase, self.segmenter),
        }
        return json_response(row)

    async def export(
        self,
        given: Filtered,
        format: Annotated[Literal["csv", "parquet"], Query(description="file format")] = "csv",
    ) -> Response:
        """Returns all pairs that match the filter, as a file that is streamed."""
        pieces = self.pairs.export(self.pairs.cursor(), self._filter(given), format)
        name = f"{self.about()['name']}-selection.{format}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(pieces, media_type=FORMATS[format], headers=headers)

    def report(self) -> Response:
        """Returns the report of the run, as published."""
        uri = storage.join(self.folder, REPORT)
        if not self.has_report:
            raise Refused(404, "this run or release has no report")
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return HTMLResponse(storage.read_bytes(uri), headers=headers)

    def _marked(self, rows: list[dict[str, Any]], wanted: bool) -> list[dict[str, Any]]:
        for row in rows if wanted else ():
            row["changes"] = mark(row["source"], row["paraphrase"], self.segmenter)
        return rows

    def _filter(self, given: Wanted, *scores: str) -> Filter:
        """Raises Refused for a column that these pairs do not have."""
        bounds = {}
        for name in Score.__args__:  # type: ignore[attr-defined]
            sides = getattr(given, f"min_{name}"), getattr(given, f"max_{name}")
            if sides != (None, None):
                bounds[name] = sides
        named = [name for name in ("origin", "stage", "split") if getattr(given, name) is not None]
        for name in (*named, *bounds, *scores):
            if name not in self.pairs.columns:
                raise Refused(422, f"{name}: these pairs have no such column")
        if given.text and "\0" in given.text:
            raise Refused(422, "text: contains a NUL character")
        return Filter(given.origin, given.stage, given.split, given.text, bounds)

    async def _ask(
        self,
        request: Request,
        work: Callable[[duckdb.DuckDBPyConnection], Result],
    ) -> Result:
        """Runs work in a thread and returns its result. Interrupts it if it takes too long or the
        client leaves.
        """
        cursor = self.pairs.cursor()
        done = False
        try:
            async with asyncio.timeout(self.settings.timeout):
                result = await while_connected(request, asyncio.to_thread(work, cursor))
                done = True
                return result
        except TimeoutError:
            message = f"not done within {self.settings.timeout:g} s: a narrower filter may help"
            raise Refused(503, message, retry_after=1) from None
        finally:
            if done:
                cursor.close()
            else:
                cursor.interrupt()  # this ends its thread, and the cursor


def _place(after: str | None) -> tuple[float, str] | None:
    if after is None:
        return None
    value, _, pair_id = after.partition(":")
    try:
        return float(value), pair_id
    except ValueError:
        raise Refused(422, "after: expected next of the previous page") from None
