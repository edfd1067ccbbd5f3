"""POST /v1/score and /v1/score-table: SPScore-zh of sentence pairs, by HTTP."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query, Request, Response
from pydantic import AfterValidator, Field
from pydantic_core import to_json

from gaixie.service import telemetry
from gaixie.service.batching import Batcher
from gaixie.service.changes import changes
from gaixie.service.connected import while_connected
from gaixie.service.part import Part
from gaixie.service.refusals import Refused
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.validated import validated_features
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter
from gaixie.udfs.text.validate import REASONS

csv.field_size_limit(2**31 - 1)  # bodies are bounded; a sentence that is too long says so itself

MOST = 2_000
"""Pairs of a batch: a tenth of a second of one core."""
DECIMALS = 6
"""Of a score in an answer; the metric's own have seven digits."""
Pair = tuple[str, str]
Options = tuple[bool, bool]
"""(explain, changes)."""


def characters(text: str) -> str:
    """The text, if it has characters alone: JSON can write what no encoding of text has."""
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds an unpaired surrogate") from None
    return text


Text = Annotated[str, AfterValidator(characters)]
"""A sentence, or another text, of a request."""


class PairIn(Strict):
    source: Text = Field(examples=["市图书馆将于下周二举办古籍修复体验活动。"])
    paraphrase: Text = Field(examples=["下周二，市图书馆会办一场修复古籍的体验活动。"])


class ScoreRequest(Strict):
    pairs: list[PairIn] = Field(min_length=1)
    explain: bool = Field(default=False, description="say in words what pulls low judgements down")
    changes: bool = Field(
        default=False, description="mark what was moved, replaced, added and lost"
    )


class Segment(Strict):
    text: str
    kind: str = Field(description="same, moved, replaced, added or lost")
    partner: int | None = Field(description="place of the segment on the other side")


class Changed(Strict):
    source: list[Segment]
    paraphrase: list[Segment]


class Score(Strict):
    """The judgements of a pair; null where `reason` says why there are none."""

    structure: float | None
    synonyms: float | None
    meaning: float | None
    fluency: float | None
    spscore: float | None
    reason: str | None = Field(
        description=f"{', '.join(REASONS)}; too_short is judged all the same, but not reliably"
    )
    reasons: list[str] | None = None
    changes: Changed | None = None


class ScoreAnswer(Strict):
    signature: str
    scores: list[Score]


class ScoringPart(Part):
    """SPScore-zh of a tier, which many requests share."""

    name = "score"

    def __init__(self, tier: str, settings: ServiceSettings):
        self.tier, self.settings = tier, settings
        self.router = APIRouter(prefix="/v1")
        self.router.post("/score", response_model=ScoreAnswer)(self.score)
        self.router.post(
            "/score-table",
            response_class=Response,
            responses={200: {"content": {"text/csv": {}}}},
            openapi_extra={
                "requestBody": {
                    "required": True,
                    "content": {"text/csv": {"schema": {"type": "string"}}},
                }
            },
        )(self.score_table)
        self._batcher: Batcher[Options, Pair, dict[str, Any]] | None = None

    async def start(self) -> None:
        def load() -> None:
            self.spscore, self.segmenter = SPScore.load(self.tier), load_segmenter()
            self.signature = self.spscore.signature(self.segmenter)
            self.judge(
                (False, False), [("今天天气很好，我们去公园吧。", "我们去公园吧，今天天气不错。")]
            )

        await asyncio.to_thread(load)
        self._batcher = Batcher(self.judge, most=MOST, queue=self.settings.queue, seen=self._seen)

    async def stop(self) -> None:
        if self._batcher is not None:
            await self._batcher.close()

    def about(self) -> dict[str, Any]:
        return {"tier": self.tier, "signature": self.signature}

    def _seen(self, items: int, seconds: float) -> None:
        telemetry.ITEMS.labels(self.name).inc(items)
        telemetry.BATCH.labels(self.name).observe(items)
        telemetry.BATCH_SECONDS.labels(self.name).observe(seconds)

    def judge(self, options: Options, pairs: list[Pair]) -> list[dict[str, Any]]:
        """An answer's Score for each pair. What the scoring job would set aside is not judged, but short ones are."""
        sources, paraphrases = zip(*pairs, strict=True)
        codes, fit, values = validated_features(
            pa.array(sources, pa.string()),
            pa.array(paraphrases, pa.string()),
            self.spscore,
            self.segmenter,
            self.settings.min_characters,
            self.settings.max_characters,
            read_short=True,
        )
        outputs = np.full((len(pairs), len(OUTPUTS)), None, object)
        outputs[fit] = self.spscore.predict(values).astype(np.float64).round(DECIMALS)
        reasons = np.array([None, *REASONS], object)[codes]
        names = (*OUTPUTS, "reason")
        answers: list[dict[str, Any]] = [
            dict(zip(names, (*row, reason), strict=True))
            for row, reason in zip(outputs.tolist(), reasons, strict=True)
        ]
        with_reasons(
            [pair for pair, own in zip(pairs, fit, strict=True) if own],
            [answer for answer, own in zip(answers, fit, strict=True) if own],
            options,
            self.spscore,
            self.segmenter,
        )
        return answers

    async def judged(
        self, request: Request, pairs: list[Pair], options: Options = (False, False)
    ) -> list[dict[str, Any]]:
        """The answers of pairs, through the queue. Raises Refused."""
        assert self._batcher is not None
        request.state.items = len(pairs)
        request.state.account.spend(0, len(pairs))
        work = self._batcher.submit(options, pairs, self.settings.timeout)
        telemetry.QUEUE.labels(self.name).set(self._batcher.length + len(pairs))
        try:
            return await while_connected(request, work)
        finally:
            telemetry.QUEUE.labels(self.name).set(self._batcher.length)

    async def score(self, request: Request, given: ScoreRequest) -> Response:
        """Judges pairs: how far structure and words were changed, whether the meaning was kept, whether it reads well."""
        most = self.settings.max_pairs
        if len(given.pairs) > most:
            raise Refused(413, f"{len(given.pairs):,} pairs: at most {most:,} a request")
        most = self.settings.max_explained
        if (given.explain or given.changes) and len(given.pairs) > most:
            raise Refused(
                413, f"{len(given.pairs):,} pairs: at most {most:,} with explain or changes"
            )
        pairs = [(pair.source, pair.paraphrase) for pair in given.pairs]
        scores = await self.judged(request, pairs, (given.explain, given.changes))
        return Response(
            to_json({"signature": self.signature, "scores": scores}, inf_nan_mode="null"),
            media_type="application/json",
        )

    async def score_table(
        self,
        request: Request,
        encoding: str = Query("utf-8", pattern="^(utf-8|gb18030)$", description="utf-8 or gb18030"),
    ) -> Response:
        """Judges the pairs of a CSV file, or a TSV one by its Content-Type, with columns source and paraphrase.

        All its columns come back, with the judgements, spscore and reason behind them. In UTF-8.
        """
        tabs = "tab-separated" in request.headers.get("content-type", "")
        header, rows = _table(await request.body(), encoding, "\t" if tabs else ",")
        if len(rows) > self.settings.max_rows:
            raise Refused(413, f"{len(rows):,} rows: at most {self.settings.max_rows:,} a table")
        places = [header.index(name) for name in ("source", "paraphrase")]
        pairs = [(row[places[0]], row[places[1]]) for row in rows]
        scores = await self.judged(request, pairs)
        file = io.StringIO()
        write = csv.writer(file, delimiter="\t" if tabs else ",", lineterminator="\n").writerow
        names = [*OUTPUTS, "reason"]
        write([*header, *names])
        for row, score in zip(rows, scores, strict=True):
            write([*row, *(score[name] for name in names)])
        kind = "text/tab-separated-values" if tabs else "text/csv"
        headers = {"X-Signature": self.signature}
        return Response(file.getvalue(), media_type=f"{kind}; charset=utf-8", headers=headers)


def with_reasons(
    pairs: Sequence[Pair],
    answers: Sequence[dict[str, Any]],
    options: Options,
    spscore: SPScore,
    segmenter: Segmenter,
) -> None:
    """Adds to the answer of each pair what options ask for: reasons, and what changed."""
    explain, mark = options
    for (source, paraphrase), answer in zip(pairs, answers, strict=True):
        if explain:
            answer["reasons"] = spscore.explain(source, paraphrase, segmenter)
        if mark:
            answer["changes"] = changes(source, paraphrase, segmenter)


def _table(body: bytes, encoding: str, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """(header, rows) of a table. Raises Refused, which names the line."""
    try:
        text = body.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        other = "gb18030" if encoding == "utf-8" else "utf-8"
        raise Refused(422, f"line {line:,}: not {encoding}; perhaps ?encoding={other}") from None
    if "\0" in text:
        raise Refused(
            422, f"line {text.count(chr(10), 0, text.index(chr(0))) + 1:,}: a NUL character"
        )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    header: list[str] = []
    try:
        for row in reader:
            if not row:
                continue
            if not header:
                header = [name.strip() for name in row]
                continue
            if len(row) != len(header):
                raise Refused(
                    422, f"line {reader.line_num:,}: {len(row)} cells, but {len(header)} columns"
                )
            rows.append(row)
    except csv.Error as error:
        raise Refused(422, f"line {reader.line_num:,}: {error}") from None
    for name in ("source", "paraphrase"):
        if header.count(name) != 1:
            found = ", ".join(header[:20])[:200] or "none"
            raise Refused(422, f"expected one column {name}, found {found}")
    for name in (*OUTPUTS, "reason"):
        if name in header:
            raise Refused(422, f"column {name}: the answer has one of this name")
    if not rows:
        raise Refused(422, "no rows below the header")
    return header, rows
