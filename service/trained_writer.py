"""What writes the candidates of POST /v1/paraphrase with a trained model. Imports PyTorch."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gaixie.service.paraphrasing import SEEDS, Asked, Why
from gaixie.service.scoring import with_reasons
from gaixie.training.modeling.exported import is_exported
from gaixie.training.modeling.generation import load_generator
from gaixie.training.modeling.generator import Decoding, Generator, has_text
from gaixie.training.modeling.kept_terms import keeping, lost
from gaixie.training.modeling.paraphraser import Paraphraser, Ranked, Ranking
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter


@dataclass(frozen=True)
class Model:
    """A model of a service, and how it writes."""

    folder: str
    decoding: Decoding
    ranking: Ranking
    tier: str = "core"
    device: str = "auto"
    precision: str = "float32"
    threads: int = 0
    """Of PyTorch in a process; 0 leaves them as they are."""


class ModelWriter:
    """A trained model."""

    def __init__(self, model: Model, max_characters: int):
        self.model, self.max_characters = model, max_characters
        self.most, self.batch_size = model.decoding.pool, model.decoding.batch_size
        self.degrees, self.signature = 0, ""

    def load(self) -> None:
        own = self.model
        if own.threads:
            torch.set_num_threads(own.threads)
        self.generator: Generator = load_generator(own.folder, own.device, own.precision)
        self.spscore, self.segmenter = SPScore.load(own.tier), load_segmenter()
        self.signature = self.spscore.signature(self.segmenter)
        self.degrees = self.generator.degrees
        degree = 1 if self.degrees else None
        self.write(Asked(1, degree, (), (False, False), None, 0), ["今天天气很好，我们去公园吧。"])

    def described(self) -> dict[str, Any]:
        network = self.generator.model
        exported = is_exported(self.model.folder)
        weights = None if exported else sum(one.numel() for one in network.parameters())
        return {
            "name": Path(self.model.folder).resolve().name,
            "kind": "ctranslate2" if exported else "transformers",
            "weights": weights,
            "degrees": self.degrees > 0,
            "signature": self.signature,
        }

    def write(self, asked: Asked, texts: list[str]) -> list[dict[str, Any]]:
        """A ParaphraseResult for each text."""
        seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
        decoding = replace(
            self.model.decoding, degree=asked.degree, seed=seed, n_best=self.model.decoding.pool
        )
        paraphraser = Paraphraser(self.generator, decoding, self.model.ranking, self.spscore)
        reasons = [self._unfit(text) for text in texts]
        with keeping(self.generator.tokenizer, asked.keep):
            ranked = paraphraser(
                [None if why else text for text, why in zip(texts, reasons, strict=True)]
            )
        return [self._result(asked, *own) for own in zip(texts, ranked, reasons, strict=True)]

    def _unfit(self, text: str) -> Why | None:
        """Why nothing can be written of a text."""
        if not normalise(text):
            return "empty"
        if not has_text(text):
            return "undecodable"
        if len(text) > self.max_characters:
            return "too_long"
        ids = self.generator.tokenizer([text], verbose=False)["input_ids"][0]
        return "too_long" if len(ids) > self.generator.longest else None

    def _result(
        self, asked: Asked, source: str, ranked: list[Ranked], reason: Why | None
    ) -> dict[str, Any]:
        own = normalise(source)
        others = [one for one in ranked if normalise(one.text) != own]
        kept = [one for one in others if not lost(asked.keep, source, one.text)]
        candidates = [
            {
                "text": one.text,
                **one.judgements,
                "entities_kept": one.entities,
                "log_probability": one.log_probability,
            }
            for one in kept[: asked.n]
        ]
        texts = [(source, str(one["text"])) for one in candidates]
        with_reasons(texts, candidates, asked.options, self.spscore, self.segmenter)
        return {
            "source": source,
            "degree": asked.degree,
            "candidates": candidates,
            "dropped": {
                "copies": len(ranked) - len(others),
                "lost_a_kept_term": len(others) - len(kept),
            },
            "reason": reason,
        }
