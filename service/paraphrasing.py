"""Serves POST /v1/paraphrase: candidates, judged by the metric, best first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import Field, model_validator

from gaixie.service.batching import Batcher
from gaixie.service.part import Part, json_response, while_connected
from gaixie.service.scoring import BOUNDS, Judgements, Text, verdict, with_reasons
from gaixie.service.settings import ServiceSettings
from gaixie.udfs import paraphrase
from gaixie.udfs.paraphrase.paraphraser import DEGREE, Paraphraser, Wanted
from gaixie.udfs.paraphrase.prompt import DEGREES
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.normalise import is_han, normalise
from gaixie.udfs.text.segmenters import load_segmenter

CARD = Path(paraphrase.__file__).with_name("card.yaml")
"""What the paraphraser is and how good it is, in words."""
BATCH, WAIT = 16, 0.01
"""Texts of a batch; seconds that a text waits for others."""
COST = 100
"""Pairs as which a text counts in the queue."""
TERMS, MOST = 16, 12
"""The most terms to keep, and candidates of a text."""
Why = Literal["empty", "undecodable", "too_long", "no_han", "nothing_good_enough"]


class ParaphraseRequest(Strict):
    text: Text | None = Field(None, examples=["市图书馆将于下周二举办古籍修复体验活动。"])
    """a sentence"""
    texts: list[Text] | None = Field(None, min_length=1)
    """several, instead of text"""
    n: int = Field(3, ge=1, le=MOST)
    """maximum candidates of a text"""
    degree: int = Field(DEGREE, ge=1, le=DEGREES)
    """degree of change, 1 (light) to 5 (a rewrite)"""
    tone: Literal["正式", "口语", "精简"] | None = None
    """a tone, instead of a degree"""
    keep: list[Text] = Field(default_factory=list, max_length=TERMS)
    """terms that must not change"""
    explain: bool = False
    """give reasons for low judgements"""
    changes: bool = False
    """mark what was moved, replaced, added and lost"""

    @model_validator(mode="after")
    def _one_of_them(self) -> ParaphraseRequest:
        if (self.text is None) == (self.texts is None):
            raise ValueError("expected either text or texts")
        if any(len(term.strip()) < 2 or len(term) > 40 for term in self.keep):
            raise ValueError("keep: expected terms of 2 to 40 characters")
        return self


class CandidateOut(Judgements):
    """A candidate and its judgements."""

    text: str
    """the candidate"""


class ParaphraseResult(Strict):
    source: str
    """the text"""
    candidates: list[CandidateOut]
    """best first"""
    left_out: int
    """candidates left out because they change next to nothing, or the meaning"""
    absent: list[str]
    """terms to keep that the text does not have"""
    reason: Why | None
    """why there is no candidate"""


class ParaphraseAnswer(Strict):
    model: str
    """the name of what writes"""
    signature: str
    """only scores with the same signature are comparable"""
    results: list[ParaphraseResult]
    """one for each text, in order"""


Asked = tuple[Wanted, bool, bool]
"""What texts must share to be written in one batch: also whether to explain, and mark changes."""


class ParaphrasingPart(Part):
    """A paraphraser that many requests share."""

    name = "paraphrase"

    def __init__(self, tier: str, settings: ServiceSettings, load: Callable[[], Paraphraser]):
        self.tier, self.settings, self._load_paraphraser = tier, settings, load
        self.router = APIRouter(prefix="/v1")
        self.router.post("/paraphrase", response_model=ParaphraseAnswer)(self.paraphrase)

    async def start(self) -> None:
        await asyncio.to_thread(self._load)
        queue = max(1, self.settings.queue // COST)
        self._batcher = Batcher(self.write, most=BATCH, queue=queue, wait=WAIT)

    async def stop(self) -> None:
        await self._batcher.close()

    def _load(self) -> None:
        self.spscore, self.segmenter = SPScore.load(self.tier), load_segmenter()
        self.signature = self.spscore.signature(self.segmenter)
        self._paraphraser = self._load_paraphraser()
        self.write((Wanted(1), False, False), ["今天天气很好，我们去公园吧。"])

    def about(self) -> dict[str, Any]:
        card = yaml.safe_load(CARD.read_text("utf-8"))
        named = {"name": self._paraphraser.writer.name, "card": card["en"], "card_zh": card["zh"]}
        limits = {"n": MOST, "degrees": DEGREES, "texts": self.settings.max_texts}
        return {**named, **limits, "signature": self.signature}

    def write(self, asked: Asked, texts: list[str]) -> list[dict[str, Any]]:
        """Returns a ParaphraseResult for each text."""
        reasons = [self._unfit(text) for text in texts]
        fit = ["" if why else text for text, why in zip(texts, reasons, strict=True)]
        found = self._paraphraser(fit, asked[0])
        return [
            self._result(asked, text, [one.text for one in own], why)
            for text, own, why in zip(texts, found, reasons, strict=True)
        ]

    def _unfit(self, text: str) -> Why | None:
        """Returns why nothing can be written of a text."""
        if not normalise(text):
            return "empty"
        if "\ufffd" in text:
            return "undecodable"
        if not any(is_han(ord(character)) for character in text):
            return "no_han"
        return "too_long" if len(text) > self.settings.max_characters else None

    def _result(
        self, asked: Asked, source: str, found: Sequence[str], reason: Why | None
    ) -> dict[str, Any]:
        """Returns the ParaphraseResult of a text and its candidates."""
        wanted, explain, marked = asked
        outputs = self.spscore.outputs([source] * len(found), [*found]).astype(float).tolist()
        judged = [
            {"text": text, **dict(zip(OUTPUTS, row, strict=True))}
            for text, row in zip(found, outputs, strict=True)
        ]
        for candidate in judged:
            candidate["verdict"] = verdict(candidate)
        candidates = [one for one in judged if _is_paraphrase(one)]
        pairs = [(source, str(one["text"])) for one in candidates]
        with_reasons(pairs, candidates, (explain, marked), self.spscore, self.segmenter)
        return {
            "source": source,
            "candidates": candidates,
            "left_out": len(judged) - len(candidates),
            "absent": [term for term in wanted.keep if normalise(term) not in normalise(source)],
            "reason": reason or (None if candidates else "nothing_good_enough"),
        }

    async def paraphrase(self, request: Request, given: ParaphraseRequest) -> Response:
        """Writes candidates for each text, judged, best first.

        Candidates that are no paraphrase are left out and counted.
        """
        texts = [given.text] if given.text is not None else given.texts or []
        if len(texts) > (most := self.settings.max_texts):
            raise HTTPException(413, f"{len(texts):,} texts: at most {most:,} a request")
        wanted = Wanted(given.degree, given.n, tuple(sorted(given.keep)), given.tone)
        asked = wanted, given.explain, given.changes
        work = self._batcher.submit(asked, texts, self.settings.timeout)
        named = {"model": self._paraphraser.writer.name, "signature": self.signature}
        return json_response({**named, "results": await while_connected(request, work)})


def _is_paraphrase(candidate: dict[str, Any]) -> bool:
    # NaN, which no text with Chinese has, is no paraphrase either.
    return candidate["spscore"] >= BOUNDS[0] and candidate["verdict"] != "other_meaning"
