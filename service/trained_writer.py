"""Writes the candidates of POST /v1/paraphrase with a trained model. Imports PyTorch."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gaixie.service.paraphrasing import SEEDS, Asked, Why, Writer
from gaixie.training.modeling.generator import Decoding
from gaixie.training.modeling.paraphraser import Paraphraser, Ranked, Ranking

SUMMARY = 600
"""The most characters of a model's card to show."""


@dataclass(frozen=True)
class Model:
    """A model of a service and its generation settings."""

    folder: str
    decoding: Decoding
    ranking: Ranking
    threads: int = 0
    """PyTorch's threads in a process; 0 keeps its default."""


class ModelWriter(Writer):
    """A trained model."""

    def __init__(self, model: Model, max_characters: int):
        super().__init__(model.ranking.tier, max_characters)
        self.model = model
        self.most = model.decoding.draws or model.decoding.beams
        self.batch_size = model.decoding.batch_size

    def load_model(self) -> None:
        own = self.model
        if own.threads:
            torch.set_num_threads(own.threads)
        self.paraphraser = Paraphraser.load(own.folder, own.ranking)
        self.degrees = self.paraphraser.generator.degrees

    def described(self) -> dict[str, Any]:
        network = self.paraphraser.generator.model
        return {
            "name": Path(self.model.folder).resolve().name,
            "kind": "transformers",
            "weights": sum(one.numel() for one in network.parameters()),
            "degrees": self.degrees > 0,
            "signature": self.signature,
            "card": _summary(Path(self.model.folder) / "README.md"),
            "card_zh": "",
        }

    def write(self, asked: Asked, texts: list[str]) -> list[dict[str, Any]]:
        seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
        code = str(asked.degree) if asked.degree else ""
        decoding = replace(self.model.decoding, code=code, seed=seed)
        reasons = [self.unfit(text) for text in texts]
        fit = [None if why else text for text, why in zip(texts, reasons, strict=True)]
        ranked = self.paraphraser(fit, decoding)
        return [
            self.result(asked, source, [_candidate(one) for one in own], reason)
            for source, own, reason in zip(texts, ranked, reasons, strict=True)
        ]

    def unfit(self, text: str) -> Why | None:
        if why := super().unfit(text):
            return why
        generator = self.paraphraser.generator
        ids = generator.tokenizer([text], verbose=False)["input_ids"][0]
        return "too_long" if len(ids) > generator.longest else None


def _candidate(one: Ranked) -> dict[str, Any]:
    """Returns a ranked candidate in the form of CandidateOut."""
    own = {"entities_kept": one.entities, "log_probability": None}
    return {"text": one.text, **one.judgements, **own}


def _summary(card: Path) -> str:
    """Returns the first paragraph of a model's card; empty if the folder has no card."""
    if not card.is_file():
        return ""
    body = card.read_text("utf-8", "replace").rpartition("\n---\n")[2]
    paragraphs = (" ".join(own.split()) for own in body.split("\n\n"))
    return next((own for own in paragraphs if own and own[0] not in "#|<!-"), "")[:SUMMARY]
