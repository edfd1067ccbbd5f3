"""Serves SPScore-zh of sentence pairs over HTTP: POST /v1/score and /v1/score-table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from fastapi import Query, Request, Response
from pydantic import AfterValidator, Field

from gaixie.service.changes import changes
from gaixie.service.part import QueuedPart, json_response
from gaixie.service.refusals import Refused
from gaixie.service.settings import ServiceSettings
from gaixie.service.synonyms import rewordings
from gaixie.service.tables import ENCODINGS, XLSX, Table, read_table
from gaixie.udfs.meaning.explain import explain_pairs
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.validated import validated_features
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter
from gaixie.udfs.text.validate import REASONS

MOST = 2_000
"""Pairs of a batch: a tenth of a second on one core."""
DECIMALS = 6
"""Decimals of a score in an answer; the metric's own scores have seven digits."""
Pair = tuple[str, str]
BAD = "去年他花了３０００元买下这座房子，没有后悔。", "这座的的房子，去年产量减少了，他后悔。"
"""A pair whose every judgement is low."""
Options = tuple[bool, bool]
"""(explain, changes)."""
Encoding = Annotated[
    str | None,
    Query(
        pattern=f"^({'|'.join(ENCODINGS)})$",
        description=f"{', '.join(ENCODINGS)}; detected if not given",
    ),
]
Column = Annotated[
    str | None,
    Query(description="name of its column; detected if not given: source, 原句, 原文, 改写, …"),
]


def characters(text: str) -> str:
    """Returns the text if it is valid: JSON can hold lone surrogates, which no encoding can."""
    if "\0" in text:
        raise ValueError("contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("contains an unpaired surrogate") from None
    return text


Text = Annotated[str, AfterValidator(characters)]
"""A sentence, or another text, of a request."""


Judged = Annotated[float | None, Field(ge=0, le=1)]
KINDS = Literal["same", "moved", "replaced", "added", "lost"]


class PairIn(Strict):
    """A sentence and its paraphrase."""

    source: Text = Field(
        description="the original sentence", examples=["市图书馆将于下周二举办古籍修复体验活动。"]
    )
    paraphrase: Text = Field(
        description="its paraphrase",
        examples=["下周二，市图书馆会办一场修复古籍的体验活动。"],
    )


class ScoreRequest(Strict):
    pairs: list[PairIn] = Field(min_length=1, description="at most max_pairs of /v1/about")
    explain: bool = Field(default=False, description="give reasons for low judgements")
    changes: bool = Field(
        default=False, description="mark what was moved, replaced, added and lost"
    )


class Segment(Strict):
    text: str = Field(description="part of the sentence")
    kind: KINDS = Field(description="same on both sides, or what happened to it")
    partner: int | None = Field(
        description="index of the segment on the other side that it was or became, if any"
    )


class Changed(Strict):
    source: list[Segment] = Field(description="its segments; joined, they are the sentence")
    paraphrase: list[Segment] = Field(description="likewise")


class Judgements(Strict):
    structure: Judged = Field(description="how much word order and constructions changed")
    synonyms: Judged = Field(
        description="how much of the wording was replaced by words that say the same"
    )
    meaning: Judged = Field(description="whether the meaning was kept")
    fluency: Judged = Field(description="whether the paraphrase is good Chinese")
    spscore: Judged = Field(
        description="one score for all four, fitted to ratings by a language model"
    )
    reasons: list[str] | None = Field(
        default=None, description="with explain: reasons for low judgements"
    )
    changes: Changed | None = Field(default=None, description="with changes: what changed")


class Score(Judgements):
    """The judgements of a pair; null if `reason` says why there are none."""

    reason: str | None = Field(
        description=f"why it is not judged: {', '.join(REASONS)}; too_short pairs "
        "are judged anyway, but less reliably"
    )


class ScoreAnswer(Strict):
    signature: str = Field(description="only scores with the same signature are comparable")
    scores: list[Score] = Field(description="one for each pair, in order")


class AlternativesRequest(PairIn):
    """A word of a paraphrase, by its place."""

    start: int = Field(ge=0, description="of the word in the paraphrase, in characters from 0")
    end: int = Field(ge=1, description="just after its last character")


class Alternative(Strict):
    text: str = Field(description="what may replace the word")
    paraphrase: str = Field(description="the paraphrase with it")
    spscore: Judged = Field(description="the score of the paraphrase with it")
    difference: float = Field(description="from the score of the unchanged paraphrase")


class AlternativesAnswer(Strict):
    alternatives: list[Alternative] = Field(description="best first")


class TableFacts(Strict):
    """What was detected in a table; null if nothing was."""

    encoding: str = Field(description="utf-8, gb18030, utf-16, big5 or xlsx")
    columns: list[str] = Field(description="the cells of the header")
    source: str | None = Field(description="the column that holds the sources")
    paraphrase: str | None = Field(description="the column that holds the paraphrases")
    rows: int = Field(ge=0, description="number of rows below the header")


class ScoringPart(QueuedPart):
    """Scores with SPScore-zh of a tier; many requests share the model."""

    name = "score"

    def __init__(self, tier: str, settings: ServiceSettings):
        super().__init__(settings)
        self.tier = tier
        add = self.router.post
        add("/score", response_model=ScoreAnswer)(self.score)
        add("/alternatives", response_model=AlternativesAnswer)(self.alternatives)
        kinds = ("text/csv", "text/tab-separated-values", XLSX)
        content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in kinds}
        body = {"requestBody": {"required": True, "content": content}}
        answers: dict[int | str, dict[str, Any]] = {
            200: {"content": {kind: {} for kind in kinds[:2]}}
        }
        add("/score-table", response_class=Response, responses=answers, openapi_extra=body)(
            self.score_table
        )
        add("/table-facts", response_model=TableFacts, openapi_extra=body)(self.table_facts)

    async def start(self) -> None:
        await asyncio.to_thread(self._load)
        self.open_queue(self.judge, MOST)

    def _load(self) -> None:
        self.spscore, self.segmenter = SPScore.load(self.tier), load_segmenter()
        self.signature = self.spscore.signature(self.segmenter)
        self.judge((True, True), [BAD])  # reads every table that reasons need

    def about(self) -> dict[str, Any]:
        return {"tier": self.tier, "signature": self.signature}

    def judge(self, options: Options, pairs: list[Pair]) -> list[dict[str, Any]]:
        """Returns a Score for each pair. Pairs that the scoring job would quarantine are not
        judged, except short ones.
        """
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

    async def score(self, request: Request, given: ScoreRequest) -> Response:
        """Judges pairs: how much structure and words changed, whether the meaning was kept, and
        whether the paraphrase reads well.
        """
        most = self.settings.max_pairs
        if len(given.pairs) > most:
            raise Refused(413, f"{len(given.pairs):,} pairs: at most {most:,} a request")
        most = self.settings.max_explained
        if (given.explain or given.changes) and len(given.pairs) > most:
            raise Refused(
                413, f"{len(given.pairs):,} pairs: at most {most:,} with explain or changes"
            )
        pairs = [(pair.source, pair.paraphrase) for pair in given.pairs]
        scores = await self.worked_on(request, (given.explain, given.changes), pairs)
        return json_response({"signature": self.signature, "scores": scores})

    async def alternatives(self, request: Request, given: AlternativesRequest) -> Response:
        """Offers alternatives to a word of a paraphrase, from a lexicon, with the effect of each
        on the score.
        """
        found = rewordings(given.paraphrase, given.start, given.end, given.source)
        pairs = [(given.source, text) for text in (given.paraphrase, *(own for _, own in found))]
        now, *scores = await self.worked_on(request, (False, False), pairs)
        alternatives = [
            {"text": word, "paraphrase": text, "spscore": own["spscore"]}
            | {"difference": round(own["spscore"] - (now["spscore"] or 0), DECIMALS)}
            for (word, text), own in zip(found, scores, strict=True)
            if own["spscore"] is not None
        ]
        alternatives.sort(key=lambda own: -own["spscore"])
        return json_response({"alternatives": alternatives})

    async def score_table(
        self,
        request: Request,
        encoding: Encoding = None,
        source: Column = None,
        paraphrase: Column = None,
    ) -> Response:
        """Judges the pairs of a CSV, TSV or XLSX file.

        Returns all its columns, followed by the judgements, spscore and reason: as CSV in UTF-8,
        or as TSV if that is the Content-Type of the request.
        """
        table = await self._table(request, encoding, source, paraphrase)
        pairs = table.pairs()
        if not pairs:
            raise Refused(422, "no rows below the header")
        scores = await self.worked_on(request, (False, False), pairs)
        kind = "text/tab-separated-values" if table.delimiter == "\t" else "text/csv"
        headers = {"X-Signature": self.signature, "X-Encoding": table.encoding}
        for side in ("source", "paraphrase"):
            headers[f"X-Column-{side.title()}"] = quote(getattr(table, side))
        text = table.scored(scores)
        return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)

    async def table_facts(
        self,
        request: Request,
        encoding: Encoding = None,
        source: Column = None,
        paraphrase: Column = None,
    ) -> Response:
        """Says how /v1/score-table would read a file: its encoding, and which columns hold the
        pairs.
        """
        table = await self._table(request, encoding, source, paraphrase)
        names = ("encoding", "source", "paraphrase")
        facts = {name: getattr(table, name) for name in names}
        return json_response({**facts, "columns": table.header, "rows": len(table.rows)})

    async def _table(self, request: Request, *given: str | None) -> Table:
        kind = request.headers.get("content-type", "")
        table = await asyncio.to_thread(read_table, await request.body(), kind, *given)
        if len(table.rows) > (most := self.settings.max_rows):
            raise Refused(413, f"{len(table.rows):,} rows: at most {most:,} a table")
        return table


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
        for answer, own in zip(answers, reasons, strict=True):
            answer["reasons"] = own
    if marked:
        for (source, paraphrase), answer in zip(pairs, answers, strict=True):
            answer["changes"] = changes(source, paraphrase, segmenter)
