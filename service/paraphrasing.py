"""Serves POST /v1/paraphrase and GET /v1/models, for the shipped edits or a trained model."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from fastapi import Request, Response
from pydantic import Field, model_validator

from gaixie.service.part import QueuedPart, json_response
from gaixie.service.refusals import Refused
from gaixie.service.scoring import Judgements, Text, with_reasons
from gaixie.service.settings import ServiceSettings
from gaixie.udfs.paraphrase.paraphraser import DEGREES
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.normalise import is_han, normalise
from gaixie.udfs.text.segmenters import load_segmenter

WAIT = 0.01
"""Seconds that a text waits for others; a batch takes many times as long."""
TERMS = 16
SEEDS = 2**31
Why = Literal["empty", "undecodable", "too_long", "nothing_good_enough"]


class ParaphraseRequest(Strict):
    text: Text | None = Field(
        default=None,
        description="a sentence",
        examples=["市图书馆将于下周二举办古籍修复体验活动。"],
    )
    texts: list[Text] | None = Field(
        default=None, min_length=1, description="several, instead of text"
    )
    n: int = Field(default=3, ge=1, le=100, description="maximum candidates of a text")
    degree: int | None = Field(
        default=None, ge=1, le=DEGREES, description="degree of change, 1 (light) to 5 (a rewrite)"
    )
    seed: int | None = Field(
        default=None, ge=0, lt=SEEDS, description="the same seed draws the same candidates"
    )
    keep: list[Text] = Field(
        default_factory=list, max_length=TERMS, description="terms that must not change"
    )
    explain: bool = Field(default=False, description="give reasons for low judgements")
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


class CandidateOut(Judgements):
    """A candidate and its judgements."""

    text: str = Field(description="the candidate")
    entities_kept: float | None = Field(
        ge=0,
        le=100,
        description="per cent of the text's; null if it has none, or the model is edits",
    )
    log_probability: float | None = Field(
        description="mean over the tokens, by the model; null if the model is edits"
    )


class Dropped(Strict):
    copies: int = Field(description="candidates identical to the text")
    lost_a_kept_term: int = Field(description="candidates without a term that must not change")
    no_chinese: int = Field(description="candidates without a Chinese character")


class ParaphraseResult(Strict):
    source: str = Field(description="the text")
    degree: int | None = Field(description="the requested degree")
    candidates: list[CandidateOut] = Field(description="best first")
    dropped: Dropped = Field(description="numbers of candidates left out, by reason")
    absent: list[str] = Field(description="terms to keep that the text does not have")
    reason: Why | None = Field(description="why there is no candidate, if known")


class ParaphraseAnswer(Strict):
    model: str = Field(description="the name of the model")
    signature: str = Field(description="only scores with the same signature are comparable")
    results: list[ParaphraseResult] = Field(description="one for each text, in order")


class ModelOut(Strict):
    name: str = Field(description="edits, or the folder of a trained model")
    kind: Literal["edits", "transformers", "ctranslate2"] = Field(description="its engine")
    weights: int | None = Field(description="their number; null if the engine does not say")
    degrees: bool = Field(description="whether it supports degrees of change")
    signature: str = Field(description="signature of the metric that judges its candidates")
    card: str = Field(description="the first paragraph of its card, if it has one")
    card_zh: str = Field(description="the same in Chinese, if it has one")


class ModelsAnswer(Strict):
    models: list[ModelOut] = Field(description="the models of this service")


class Asked(NamedTuple):
    """The settings that texts must share to be written in one batch."""

    n: int
    degree: int | None
    keep: tuple[str, ...]
    options: tuple[bool, bool]
    """(explain, changes)."""
    seed: int | None
    own: int
    """A number of its own for a request with a seed, else 0: draws depend on the whole batch."""


class Writer:
    """Writes candidates. Threads call its methods, one at a time."""

    most = 1
    """The most candidates of a text."""
    degrees = 0
    """How many degrees of change it supports; 0 for none."""
    batch_size = 32

    def __init__(self, tier: str, max_characters: int):
        self.tier, self.max_characters, self.signature = tier, max_characters, ""

    def load(self) -> None:
        """Loads all that it needs, and writes once."""
        self.spscore, self.segmenter = SPScore.load(self.tier), load_segmenter()
        self.signature = self.spscore.signature(self.segmenter)
        self.load_model()
        degree = 1 if self.degrees else None
        self.write(Asked(1, degree, (), (False, False), None, 0), ["今天天气很好，我们去公园吧。"])

    def load_model(self) -> None:
        """Loads the model."""
        raise NotImplementedError

    def write(self, asked: Asked, texts: list[str]) -> list[dict[str, Any]]:
        """Returns a ParaphraseResult for each text."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """Returns a ModelOut."""
        raise NotImplementedError

    def unfit(self, text: str) -> Why | None:
        """Returns why nothing can be written of a text."""
        if not normalise(text):
            return "empty"
        if any("\ud800" <= one <= "\udfff" or one == "\ufffd" for one in text):
            return "undecodable"
        return "too_long" if len(text) > self.max_characters else None

    def result(
        self, asked: Asked, source: str, found: Sequence[dict[str, Any]], reason: Why | None
    ) -> dict[str, Any]:
        """Returns the ParaphraseResult of a text. found: its candidates, the best first."""
        own = normalise(source)
        others = [one for one in found if normalise(one["text"]) != own]
        chinese = [
            one for one in others if any(is_han(ord(character)) for character in one["text"])
        ]
        kept = [one for one in chinese if not _lost(asked.keep, own, one["text"])]
        candidates = kept[: asked.n]
        pairs = [(source, str(one["text"])) for one in candidates]
        with_reasons(pairs, candidates, asked.options, self.spscore, self.segmenter)
        return {
            "source": source,
            "degree": asked.degree,
            "candidates": candidates,
            "dropped": {
                "copies": len(found) - len(others),
                "lost_a_kept_term": len(chinese) - len(kept),
                "no_chinese": len(others) - len(chinese),
            },
            "absent": [term for term in asked.keep if normalise(term) not in own],
            "reason": reason,
        }


def _lost(terms: Sequence[str], source: str, text: str) -> bool:
    """Tells whether a text has one of the terms less often than its normalised source."""
    own = normalise(text)
    return any(own.count(term) < source.count(term) for term in map(normalise, terms) if term)


class ParaphrasingPart(QueuedPart):
    """A writer that many requests share."""

    name = "paraphrase"

    cost = 100

    def __init__(self, writer: Writer, settings: ServiceSettings):
        super().__init__(settings)
        self.writer = writer
        self.router.post("/paraphrase", response_model=ParaphraseAnswer)(self.paraphrase)
        self.router.get("/models", response_model=ModelsAnswer)(self.models)
        self._numbers = itertools.count(1)

    async def start(self) -> None:
        await asyncio.to_thread(self.writer.load)
        self.open_queue(self.writer.write, 2 * self.writer.batch_size, WAIT, len)

    def about(self) -> dict[str, Any]:
        most, own = self.settings.max_texts, self.writer
        return {**own.described(), "n": own.most, "degrees": own.degrees, "texts": most}

    def models(self) -> ModelsAnswer:
        """Lists the models of this service."""
        return ModelsAnswer(models=[ModelOut(**self.writer.described())])

    async def paraphrase(self, request: Request, given: ParaphraseRequest) -> Response:
        """Writes candidates for each text, judged and in the order of the service's ranking.

        Copies of the text and candidates that lost a term to keep are left out and counted.
        """
        texts = [given.text] if given.text is not None else given.texts or []
        most = self.settings.max_texts
        if len(texts) > most:
            raise Refused(413, f"{len(texts):,} texts: at most {most:,} a request")
        if given.n > (pool := self.writer.most):
            raise Refused(422, f"n: at most {pool} candidates, not {given.n}")
        if given.degree and not 1 <= given.degree <= self.writer.degrees:
            raise Refused(422, "degree: this model does not support degrees of change")
        own = next(self._numbers) if given.seed is not None else 0
        keep, options = tuple(sorted(given.keep)), (given.explain, given.changes)
        key = Asked(given.n, given.degree, keep, options, given.seed, own)
        results = await self.worked_on(request, key, texts)
        answer = {"model": self.writer.described()["name"], "signature": self.writer.signature}
        return json_response(answer | {"results": results})
