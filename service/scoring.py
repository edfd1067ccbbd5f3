"""Serves SPScore-zh of sentence pairs over HTTP: POST /v1/score, /v1/score-table,
/v1/table-facts."""

import asyncio
import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, Field

from gaixie.service.batching import Batcher
from gaixie.service.changes import Changes, changes
from gaixie.service.part import Part, json_response, while_connected
from gaixie.service.settings import ServiceSettings
from gaixie.service.uploads import XLSX, Reading, Upload, read_upload
from gaixie.udfs.meaning.core_features import Resources
from gaixie.udfs.meaning.explain import explain_pairs
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.records import whole
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter
from gaixie.udfs.text.validate import REASONS

MOST, MOST_ENCODED = 2_000, 32
"""Pairs of a batch, for about a second: of most tiers, of tier full."""
DECIMALS = 6
"""Decimals of a score in an answer; the metric's own scores have seven digits."""
BAD = "去年他花了３０００元买下这座房子，没有后悔。", "这座的的房子，去年产量减少了，他后悔。"
"""A pair whose every judgement is low."""
Verdict = Literal[
    "no_paraphrase", "other_meaning", "near_copy", "poor", "light", "clear", "thorough"
]
LEVELS: tuple[Verdict, ...] = ("no_paraphrase", "poor", "light", "clear", "thorough")
NO_COUNTERPART = re.compile("“(.+)” has no counterpart in the")
BOUNDS = (0.1, 0.3, 0.42, 0.54)
"""Scores at which the raters' levels begin, but the lowest, for sentences that people write."""
SAME_MEANING, LITTLE_CHANGE = 0.5, 0.3
"""Meaning below which a poor pair has another one; structure and synonyms of a near-copy."""
Pair = tuple[str, str]
Given = tuple[str | None, str | None]
Options = tuple[bool, bool]
"""(explain, changes)."""
Text = Annotated[str, AfterValidator(whole)]
"""A sentence, or another text, of a request; half a surrogate pair makes it undecodable."""
Judged = Annotated[float | None, Field(ge=0, le=1)]
Read = Annotated[Reading, Depends()]


class PairIn(Strict):
    """A sentence and its paraphrase."""

    source: Text = Field(examples=["市图书馆将于下周二举办古籍修复体验活动。"])
    """the original sentence"""
    paraphrase: Text = Field(examples=["下周二，市图书馆会办一场修复古籍的体验活动。"])
    """its paraphrase"""


class ScoreRequest(Strict):
    pairs: list[PairIn] = Field(min_length=1)
    """at most max_pairs of /v1/about"""
    explain: bool = False
    """give reasons for low judgements"""
    changes: bool = False
    """mark what was moved, replaced, added and lost"""


class Judgements(Strict):
    structure: Judged
    """how much word order and constructions changed"""
    synonyms: Judged
    """how much of the wording was replaced by words that say the same"""
    meaning: Judged
    """whether the meaning was kept"""
    fluency: Judged
    """whether the paraphrase is good Chinese"""
    spscore: Judged
    """one score for all four, fitted to ratings by language models and people"""
    verdict: Verdict | None
    """the scores in a word"""
    reasons: list[str] | None = None
    """with explain: reasons for low judgements"""
    changes: Changes | None = None
    """with changes: what changed"""


class Score(Judgements):
    """The judgements of a pair; null if `reason` says why there are none."""

    reason: Literal[REASONS] | None  # type: ignore[valid-type]
    """why it is not judged; too_short pairs are judged anyway, but less reliably"""


class ScoreAnswer(Strict):
    signature: str
    """only scores with the same signature are comparable"""
    scores: list[Score]
    """one for each pair, in order"""


class ScoringPart(Part):
    """Scores with SPScore-zh of a tier; many requests share the model."""

    name = "score"

    def __init__(self, tier: str, settings: ServiceSettings):
        self.tier, self.settings = tier, settings
        self.router = APIRouter(prefix="/v1")
        add = self.router.post
        add("/score", response_model=ScoreAnswer)(self.score)
        kinds = ("text/csv", "text/tab-separated-values", XLSX)
        content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in kinds}
        body = {"required": True, "content": content}
        more: dict[str, Any] = {"openapi_extra": {"requestBody": body}}
        csv: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}}}}
        add("/score-table", response_class=Response, responses=csv, **more)(self.score_table)
        add("/table-facts", **more)(self.table_facts)

    async def start(self) -> None:
        await asyncio.to_thread(self._load)
        self._batcher = Batcher(self.judge, most=self._most, queue=self.settings.queue)

    async def stop(self) -> None:
        await self._batcher.close()

    def _load(self) -> None:
        self.spscore, self.segmenter = SPScore.load(self.tier), load_segmenter()
        self._most = MOST_ENCODED if self.spscore.tier == "full" else MOST
        self.signature = self.spscore.signature(self.segmenter)
        self.judge((True, True), [BAD])  # reads every table that reasons need

    def about(self) -> dict[str, Any]:
        return {"tier": self.tier, "signature": self.signature, "levels": BOUNDS}

    def judge(self, options: Options, pairs: list[Given]) -> list[dict[str, Any]]:
        """Returns a Score for each pair. Pairs that the scoring job would quarantine are not
        judged, except short ones.
        """
        codes, fit, values = self.spscore.validated(
            pa.array([source for source, _ in pairs], pa.string()),
            pa.array([paraphrase for _, paraphrase in pairs], pa.string()),
            self.segmenter,
            self.settings.min_characters,
            self.settings.max_characters,
            read_short=True,
        )
        outputs = np.full((len(pairs), len(OUTPUTS)), None, object)
        outputs[fit] = self.spscore.predict(values).astype(np.float64).round(DECIMALS)
        reasons = np.array([None, *REASONS], object)[codes]
        answers = [dict(zip(OUTPUTS, row, strict=True)) for row in outputs.tolist()]
        for answer, reason in zip(answers, reasons, strict=True):
            answer |= {"verdict": verdict(answer), "reason": reason}
        read = [(str(a), str(b)) for (a, b), is_fit in zip(pairs, fit, strict=True) if is_fit]
        judged = [answers[place] for place in np.flatnonzero(fit)]
        with_reasons(read, judged, options, self.spscore, self.segmenter)
        return answers

    async def score(self, request: Request, given: ScoreRequest) -> Response:
        """Judges pairs: how much structure and words changed, whether the meaning was kept, and
        whether the paraphrase reads well.
        """
        pairs = [(pair.source, pair.paraphrase) for pair in given.pairs]
        if len(pairs) > (most := self.settings.max_pairs):
            raise HTTPException(413, f"{len(pairs):,} pairs: at most {most:,} a request")
        work = self._batcher.submit((given.explain, given.changes), pairs, self.settings.timeout)
        scores = await while_connected(request, work)
        return json_response({"signature": self.signature, "scores": scores})

    async def score_table(self, request: Request, reading: Read) -> Response:
        """Judges the pairs of a CSV, TSV or XLSX file.

        Streams all its columns, followed by the judgements, spscore, verdict and reason, as CSV in
        UTF-8.
        """
        table = await self._table(request, reading)
        pairs = table.pairs()
        headers = {"X-Signature": self.signature, "X-Encoding": table.encoding}
        for side in ("source", "paraphrase"):
            headers[f"X-Column-{side.title()}"] = quote(getattr(table, side))
        kind = "text/csv; charset=utf-8"
        return StreamingResponse(self._scored(table, pairs), media_type=kind, headers=headers)

    async def _scored(self, table: Upload, pairs: list[Given]) -> AsyncIterator[str]:
        for start in range(0, len(pairs), self._most):
            part = pairs[start : start + self._most]
            scores = await self._batcher.submit((False, False), part, self.settings.timeout)
            yield table.lines(start, scores)

    async def table_facts(self, request: Request, reading: Read) -> Response:
        """Says how /v1/score-table would read a file: its encoding (utf-8, gb18030, utf-16, big5 or
        xlsx), its columns, which of them hold source and paraphrase (null: none was recognised),
        the number of rows below the header, and the sheets that have rows; these are facts of the
        first of them unless one is named.
        """
        table = await self._table(request, reading, first=True)
        names = ("encoding", "source", "paraphrase", "sheet", "sheets")
        facts = {name: getattr(table, name) for name in names}
        return json_response({**facts, "columns": [*table.table], "rows": len(table.table)})

    async def _table(self, request: Request, reading: Reading, first: bool = False) -> Upload:
        kind, body = request.headers.get("content-type", ""), await request.body()
        table = await asyncio.to_thread(read_upload, body, kind, reading, first)
        if (rows := len(table.table)) > (most := self.settings.max_rows):
            raise HTTPException(413, f"{rows:,} rows: at most {most:,} a table")
        return table


def verdict(scores: Mapping[str, Any]) -> Verdict | None:
    """Puts scores into a word; None if there are none. Old runs have no judgements."""
    if scores.get("spscore") is None:
        return None
    level = bisect_right(BOUNDS, scores["spscore"])
    if level < 2:
        if scores.get("meaning", 1.0) < SAME_MEANING:
            return "other_meaning" if level else "no_paraphrase"
        if max(scores.get("structure", 1.0), scores.get("synonyms", 1.0)) < LITTLE_CHANGE:
            return "near_copy"
    return LEVELS[level]


def with_reasons(
    pairs: Sequence[Pair],
    answers: Sequence[dict[str, Any]],
    options: Options,
    spscore: SPScore,
    segmenter: Segmenter,
) -> None:
    """Adds reasons and changes to the answer of each judged pair, as options ask."""
    explained, marked = options
    if explained:
        reasons: list[list[str]] = [[] for _ in pairs]
        if spscore.tier != "paper":  # tier paper sees nothing to name
            reasons = explain_pairs(pairs, segmenter, Resources.load(), answers)
        for answer, found in zip(answers, reasons, strict=True):
            answer["reasons"] = found
    if marked:
        for (source, paraphrase), answer in zip(pairs, answers, strict=True):
            answer["changes"] = marks = changes(source, paraphrase, segmenter)
            if explained:
                answer["reasons"] = unmarked(answer["reasons"], marks)


def unmarked(reasons: Sequence[str], marks: Changes) -> list[str]:
    """Leaves out the reasons that say that a word has no counterpart where the marks show one."""
    segments = [*marks["source"], *marks["paraphrase"]]
    shown = "\n".join(own["text"] for own in segments if own["kind"] in ("moved", "replaced"))
    said = {why: found[1] for why in reasons if (found := NO_COUNTERPART.search(why))}
    return [why for why in reasons if why not in said or said[why] not in shown]
