"""Writes the candidates of POST /v1/paraphrase by the shipped edits; needs no PyTorch."""

from __future__ import annotations

import secrets
from typing import Any

from gaixie.service.paraphrasing import SEEDS, Asked, Writer
from gaixie.udfs.paraphrase.card import card
from gaixie.udfs.paraphrase.paraphraser import DEGREES, DRAWS, Paraphraser, Wanted
from gaixie.udfs.spscore import OUTPUTS

NAME = "edits"


class EditWriter(Writer):
    """Writes by lexicon and rules; the pair encoder's gates check each candidate."""

    most, degrees = DRAWS, DEGREES

    def load_model(self) -> None:
        self.paraphraser = Paraphraser.load()

    def described(self) -> dict[str, Any]:
        said = card()
        own = {"name": NAME, "kind": NAME, "weights": None, "degrees": True}
        return own | {"signature": self.signature, "card": said["en"], "card_zh": said["zh"]}

    def write(self, asked: Asked, texts: list[str]) -> list[dict[str, Any]]:
        seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
        reasons = [self.unfit(text) for text in texts]
        fit = ["" if why else text for text, why in zip(texts, reasons, strict=True)]
        found = self.paraphraser(fit, Wanted(asked.degree or DEGREES, asked.n, asked.keep, seed))
        results = []
        for source, own, reason in zip(texts, found, reasons, strict=True):
            judged = self.spscore.judge([source] * len(own), [one.text for one in own])
            candidates = [
                {
                    "text": one.text,
                    **{name: float(judged[name][k]) for name in OUTPUTS},
                    "entities_kept": None,
                    "log_probability": None,
                }
                for k, one in enumerate(own)
            ]
            why = reason or (None if own else "nothing_good_enough")
            results.append(self.result(asked, source, candidates, why))
        return results
