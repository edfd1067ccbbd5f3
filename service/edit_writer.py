"""What writes the candidates of POST /v1/paraphrase with the edits that ship; needs no PyTorch."""

from __future__ import annotations

import secrets
from typing import Any

from gaixie.service.paraphrasing import SEEDS, Asked, Why
from gaixie.service.scoring import with_reasons
from gaixie.udfs.paraphrase.paraphraser import DEGREES, DRAWS, Paraphrase, Paraphraser, Wanted
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

NAME = "edits"


class EditWriter:
    """Edits by lexicon and rules, behind the reader's gates."""

    most, degrees, batch_size = DRAWS, DEGREES, 32

    def __init__(self, tier: str, max_characters: int):
        self.tier, self.max_characters = tier, max_characters
        self.signature = ""

    def load(self) -> None:
        self.paraphraser = Paraphraser.load()
        self.spscore, self.segmenter = SPScore.load(self.tier), load_segmenter()
        self.signature = self.spscore.signature(self.segmenter)
        self.write(Asked(1, None, (), (False, False), None, 0), ["今天天气很好，我们去公园吧。"])

    def described(self) -> dict[str, Any]:
        own = {"name": NAME, "kind": NAME, "weights": None, "degrees": True}
        return own | {"signature": self.signature}

    def write(self, asked: Asked, texts: list[str]) -> list[dict[str, Any]]:
        seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
        reasons = [self._unfit(text) for text in texts]
        fit = ["" if why else text for text, why in zip(texts, reasons, strict=True)]
        wanted = Wanted(asked.degree or DEGREES, asked.n, asked.keep, seed)
        found = self.paraphraser(fit, wanted)
        return [self._result(asked, *own) for own in zip(texts, found, reasons, strict=True)]

    def _unfit(self, text: str) -> Why | None:
        if not normalise(text):
            return "empty"
        if any("\ud800" <= one <= "\udfff" for one in text):
            return "undecodable"
        return "too_long" if len(text) > self.max_characters else None

    def _result(
        self, asked: Asked, source: str, found: list[Paraphrase], reason: Why | None
    ) -> dict[str, Any]:
        judged = self.spscore.judge([source] * len(found), [one.text for one in found])
        candidates: list[dict[str, Any]] = [
            {
                "text": one.text,
                **{name: float(judged[name][k]) for name in OUTPUTS},
                "entities_kept": None,
                "log_probability": None,
            }
            for k, one in enumerate(found)
        ]
        texts = [(source, one.text) for one in found]
        with_reasons(texts, candidates, asked.options, self.spscore, self.segmenter)
        return {
            "source": source,
            "degree": asked.degree,
            "candidates": candidates,
            "dropped": {"copies": 0, "lost_a_kept_term": 0},
            "reason": reason or (None if found else "nothing_good_enough"),
        }
