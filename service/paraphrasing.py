"""POST /v1/paraphrase and GET /v1/models, whatever writes: the edits that ship, or a trained model."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, Literal, NamedTuple, Protocol

from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator
from pydantic_core import to_json

from gaixie.service import telemetry
from gaixie.service.batching import Batcher
from gaixie.service.connected import while_connected
from gaixie.service.part import Part
from gaixie.service.refusals import Refused
from gaixie.service.scoring import Changed, Text
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.paraphrase.paraphraser import DEGREES
from gaixie.udfs.storage.settings import Strict

COST = 100
"""Pairs that a text counts for, in rates and in the queue."""
WAIT = 0.01
"""Seconds that a text waits for others: a batch takes many times as long."""
TERMS = 16
SEEDS = 2**31
Why = Literal["empty", "undecodable", "too_long", "nothing_good_enough"]


class ParaphraseRequest(Strict):
    text: Text | None = Field(default=None, examples=["市图书馆将于下周二举办古籍修复体验活动。"])
    texts: list[Text] | None = Field(default=None, min_length=1, description="instead of text")
    n: int = Field(default=3, ge=1, le=100, description="candidates of a text, at most")
    degree: int | None = Field(
        default=None, ge=1, le=DEGREES, description="of change: 1 a light touch, 5 a rewrite"
    )
    seed: int | None = Field(
        default=None, ge=0, lt=SEEDS, description="the same one draws the same candidates again"
    )
    keep: list[Text] = Field(
        default_factory=list, max_length=TERMS, description="terms that must not change"
    )
    explain: bool = Field(default=False, description="say in words what pulls low judgements down")
    changes: bool = Field(
        default=False, description="mark what was moved, replaced, added and lost"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> ParaphraseRequest:
        if (self.text is None) == (self.texts is None):
            raise ValueError("expected either text or texts")
        if any(len(term.strip()) < 2 or len(term) > 40 for term in self.keep):
            raise ValueError("keep: expected terms of 2 to 40 characters")
        return self


class CandidateOut(Strict):
    text: str
    structure: float | None
    synonyms: float | None
    meaning: float | None
    fluency: float | None
    spscore: float | None
    entities_kept: float | None = Field(description="per cent; null where the text has none")
    log_probability: float | None = Field(
        description="mean over the tokens, by the model; null where edits write"
    )
    reasons: list[str] | None = None
    changes: Changed | None = None


class Dropped(Strict):
    copies: int = Field(description="candidates that said what the text says, to the character")
    lost_a_kept_term: int


class ParaphraseResult(Strict):
    source: str
    degree: int | None
    candidates: list[CandidateOut] = Field(description="the best first")
    dropped: Dropped
    reason: Why | None = Field(description="why there is none; null where one was looked for")


class ParaphraseAnswer(Strict):
    model: str
    signature: str
    results: list[ParaphraseResult]


class ModelOut(Strict):
    name: str
    kind: Literal["edits", "transformers", "ctranslate2"]
    weights: int | None = Field(description="null where the engine does not say")
    degrees: bool
    signature: str


class ModelsAnswer(Strict):
    models: list[ModelOut]


class Asked(NamedTuple):
    """What texts of several requests have to share to be written in one batch."""

    n: int
    degree: int | None
    keep: tuple[str, ...]
    options: tuple[bool, bool]
    """(explain, changes)."""
    seed: int | None
    own: int
    """Of a request with a seed its number, else 0: what is drawn depends on what shares the batch."""


class Writer(Protocol):
    """What writes candidates; its methods are called in threads, one at a time."""

    most: int
    """Candidates of a text, at most."""
    degrees: int
    batch_size: int
    signature: str

    def load(self) -> None:
        """Loads what it needs, and writes once."""

    def write(self, asked: Asked, texts: list[str]) -> list[dict[str, Any]]:
        """A ParaphraseResult for each text."""

    def described(self) -> dict[str, Any]:
        """A ModelOut."""


class ParaphrasingPart(Part):
    """A writer, which many requests share."""

    name = "paraphrase"

    def __init__(self, writer: Writer, settings: ServiceSettings):
        self.writer, self.settings = writer, settings
        self.router = APIRouter(prefix="/v1")
        self.router.post("/paraphrase", response_model=ParaphraseAnswer)(self.paraphrase)
        self.router.get("/models", response_model=ModelsAnswer)(self.models)
        self._numbers = itertools.count(1)
        self._batcher: Batcher[Asked, str, dict[str, Any]] | None = None

    async def start(self) -> None:
        await asyncio.to_thread(self.writer.load)
        self._batcher = Batcher(
            self.writer.write,
            most=2 * self.writer.batch_size,
            queue=max(1, self.settings.queue // COST),
            wait=WAIT,
            size=len,
            seen=self._seen,
        )

    async def stop(self) -> None:
        if self._batcher is not None:
            await self._batcher.close()

    def about(self) -> dict[str, Any]:
        most, own = self.settings.max_texts, self.writer
        return {**own.described(), "n": own.most, "degrees": own.degrees, "texts": most}

    def _seen(self, items: int, seconds: float) -> None:
        telemetry.ITEMS.labels(self.name).inc(items)
        telemetry.BATCH.labels(self.name).observe(items)
        telemetry.BATCH_SECONDS.labels(self.name).observe(seconds)

    def models(self) -> ModelsAnswer:
        """The models that write here."""
        return ModelsAnswer(models=[ModelOut(**self.writer.described())])

    async def paraphrase(self, request: Request, given: ParaphraseRequest) -> Response:
        """Writes candidates for each text, judged and in the order of the service's ranking.

        Copies of the text, and candidates that have lost a kept term, are left out and counted.
        """
        texts = [given.text] if given.text is not None else given.texts or []
        most = self.settings.max_texts
        if len(texts) > most:
            raise Refused(413, f"{len(texts):,} texts: at most {most:,} a request")
        if given.n > (pool := self.writer.most):
            raise Refused(422, f"n: at most {pool} candidates, not {given.n}")
        if given.degree and not 1 <= given.degree <= self.writer.degrees:
            raise Refused(422, "degree: this model has not learned degrees of change")
        assert self._batcher is not None
        request.state.items = len(texts)
        request.state.account.spend(0, COST * len(texts))
        own = next(self._numbers) if given.seed is not None else 0
        keep, options = tuple(sorted(given.keep)), (given.explain, given.changes)
        key = Asked(given.n, given.degree, keep, options, given.seed, own)
        work = self._batcher.submit(key, texts, self.settings.timeout)
        telemetry.QUEUE.labels(self.name).set(COST * (self._batcher.length + len(texts)))
        try:
            results = await while_connected(request, work)
        finally:
            telemetry.QUEUE.labels(self.name).set(COST * self._batcher.length)
        answer = {"model": self.writer.described()["name"], "signature": self.writer.signature}
        return Response(
            to_json(answer | {"results": results}, inf_nan_mode="null"),
            media_type="application/json",
        )
