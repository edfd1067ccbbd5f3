"""Serves the pairs of a run or release over HTTP, by the paths below /v1/run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import duckdb
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from gaixie.service.browsing.pairs import Filter, Pairs
from gaixie.service.changes import changes as mark
from gaixie.service.part import Part, json_response, while_connected
from gaixie.service.refusals import busy
from gaixie.service.scoring import verdict
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.meaning.explain import Why
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ReleaseManifest, RunManifest
from gaixie.udfs.text.segmenters import load_segmenter

Result = TypeVar("Result")
Score = Literal["spscore", "structure", "synonyms", "meaning", "fluency"]
Filtered = Annotated[Filter, Depends()]
Column = Annotated[Score, Query(description="the score to sort by")]
Order = Annotated[Literal["asc", "desc"], Query(description="order of the score")]
Marked = Annotated[bool, Query(description="add what changed in each pair")]
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
PAGE, LONGEST_PAGE = 50, 1_000
REPORT = "report.html"
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The report contains its styles and figures; scripts are blocked."""


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
        self.report_uri = storage.join(pairs.folder, REPORT)
        self.has_report = storage.exists(self.report_uri)
        self.segmenter = load_segmenter()
        self.router = APIRouter(prefix="/v1/run")
        add = self.router.get
        add("/pairs")(self.page)
        add("/sample")(self.sample)
        add("/histograms")(self.histograms)
        add("/pair/{pair_id}")(self.one)
        add("/export", response_class=Response)(self.export)
        add("/report", response_class=HTMLResponse)(self.report)

    async def stop(self) -> None:
        self.pairs.close()

    def about(self) -> dict[str, Any]:
        manifest = self.manifest
        return {
            "name": manifest.run_id if isinstance(manifest, RunManifest) else manifest.name,
            "created": manifest.created,
            "signature": manifest.signature,
            "columns": self.pairs.columns,
            "scores": self.pairs.scores,
            "origins": self.pairs.values("origin"),
            "stages": self.pairs.values("stage"),
            "splits": self.pairs.values("split"),
            "report": self.has_report,
        }

    async def page(
        self,
        request: Request,
        wanted: Filtered,
        sort: Column = "spscore",
        order: Order = "desc",
        limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="maximum rows")] = PAGE,
        after: Annotated[str | None, Query(description="next of the previous page")] = None,
        changes: Marked = False,
    ) -> Response:
        """Returns pairs in the order of a score, one page at a time."""
        self._check(wanted, sort)
        rows = await self._ask(
            request,
            lambda cursor: self._marked(
                self.pairs.page(cursor, wanted, sort, order == "desc", limit, after), changes
            ),
        )
        next_ = rows[-1]["pair_id"] if len(rows) == limit else None
        return json_response({"rows": rows, "next": next_})

    async def sample(
        self,
        request: Request,
        wanted: Filtered,
        n: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="number of pairs")] = PAGE,
        seed: Annotated[int, Query(description="the same seed draws the same pairs")] = 1,
        changes: Marked = False,
    ) -> Response:
        """Returns random pairs; the same seed gives the same pairs."""
        self._check(wanted)
        rows = await self._ask(
            request,
            lambda cursor: self._marked(self.pairs.sample(cursor, wanted, n, seed), changes),
        )
        return json_response({"rows": rows})

    async def histograms(self, request: Request, wanted: Filtered) -> Response:
        """Returns a histogram of every score, and the number of pairs."""
        self._check(wanted)
        count, counts = await self._ask(
            request, lambda cursor: self.pairs.histograms(cursor, wanted)
        )
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
            "reasons": self.why(source, paraphrase, row) if judged else [],
            "changes": mark(source, paraphrase, self.segmenter),
        }
        return json_response(row)

    async def export(
        self,
        wanted: Filtered,
        format: Annotated[Literal["csv", "parquet"], Query(description="file format")] = "csv",
    ) -> Response:
        """Returns all pairs that match the filter, as a file that is streamed."""
        self._check(wanted)
        pieces = self.pairs.export(self.pairs.cursor(), wanted, format)
        name = f"{self.about()['name']}-selection.{format}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(pieces, media_type=FORMATS[format], headers=headers)

    def report(self) -> Response:
        """Returns the report of the run, as published."""
        if not self.has_report:
            raise HTTPException(404, "this run or release has no report")
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return HTMLResponse(storage.read_bytes(self.report_uri), headers=headers)

    def _marked(self, rows: list[dict[str, Any]], wanted: bool) -> list[dict[str, Any]]:
        for row in rows if wanted else ():
            row["changes"] = mark(row["source"], row["paraphrase"], self.segmenter)
        return rows

    def _check(self, wanted: Filter, *scores: str) -> None:
        """Raises HTTPException for a column that these pairs do not have."""
        for name in (*wanted.columns(), *scores):
            if name not in self.pairs.columns:
                raise HTTPException(422, f"{name}: these pairs have no such column")
        if wanted.text and "\0" in wanted.text:
            raise HTTPException(422, "text: contains a NUL character")

    async def _ask(
        self, request: Request, work: Callable[[duckdb.DuckDBPyConnection], Result]
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
            seconds = self.settings.timeout
            message = f"not done within {seconds:g} s: a narrower filter may help"
            raise busy(503, message) from None
        finally:
            if done:
                cursor.close()
            else:
                cursor.interrupt()  # this ends its thread, and the cursor
