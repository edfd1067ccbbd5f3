"""Paraphrases texts: a writer draws drafts, checks refuse most of them, the best of the rest win.

    paraphraser = Paraphraser.load()
    paraphraser(["…"], Wanted(degree=4))     # for each text its paraphrases, best first

A text is written sentence by sentence. A draft passes if it is no copy of its sentence, nor nearly
one unless that is wanted, has all entities and the terms to keep, and a reader is likely enough to
accept it (quality.py). The best has the greatest product of that probability and its expected
overall judgement. If fewer pass than are wanted, some of a lighter degree follow; or there is none.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gaixie.udfs.paraphrase.judge import JUDGE, Judge
from gaixie.udfs.paraphrase.prompt import DEGREES, TONES, overlap
from gaixie.udfs.paraphrase.quality import Quality
from gaixie.udfs.paraphrase.writer import ModelWriter, Writer
from gaixie.udfs.text.entities import EntityFinder, load_settings
from gaixie.udfs.text.entities_kept import ENTITIES, entities_kept
from gaixie.udfs.text.normalise import is_han, normalise

DEGREE = 4
"""The degree of change if none is given."""
LIGHTER = 2
"""How much lighter the second attempt is."""
DRAWS, TEMPERATURE = 8, 0.5
ACCEPTED, NEAR = 0.6, 0.8
"""The least probability that a reader accepts a draft; the overlap from which it is a near copy."""
SENTENCE = re.compile(r"[^。！？!?…\n]*[。！？!?…\n]+[”’」』）)\"]*|[^。！？!?…\n]+$")


@dataclass(frozen=True)
class Wanted:
    """The request for paraphrases. Raises ValueError for a value out of range."""

    degree: int = DEGREE
    """1 is a light touch, 5 a rewrite."""
    n: int = 1
    keep: tuple[str, ...] = ()
    """Terms that must not change."""
    tone: str | None = None
    """One of TONES, instead of a degree."""

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= DEGREES:
            raise ValueError(f"degree: expected 1 to {DEGREES}, not {self.degree}")
        if self.n < 1:
            raise ValueError(f"n: expected 1 or more, not {self.n}")
        if self.tone is not None and self.tone not in TONES:
            raise ValueError(f"tone: expected {', '.join(TONES)}, not {self.tone}")

    @property
    def codes(self) -> list[str]:
        """Returns the codes to ask the writer with, one attempt each."""
        lighter = max(1, self.degree - LIGHTER)
        return [self.tone] if self.tone else [*dict.fromkeys([str(self.degree), str(lighter)])]


@dataclass(frozen=True)
class Paraphrase:
    """A paraphrase that passed the checks, and what is expected of it."""

    text: str
    accepted: float
    """The probability that a reader accepts it."""


def writer_folder() -> Path:
    """Returns the folder of the model that writes, and of the judge, if none is named."""
    return Path(os.environ.get("GAIXIE_WRITER", "~/.cache/gaixie/writer")).expanduser()


class Paraphraser:
    """A writer, and what reads its drafts."""

    def __init__(
        self,
        writer: Writer,
        quality: Quality,
        draws: int = DRAWS,
        temperature: float = TEMPERATURE,
        accepted: float = ACCEPTED,
    ):
        self.writer, self.quality = writer, quality
        self.draws, self.temperature, self.accepted = draws, temperature, accepted
        self._finder = EntityFinder(load_settings(ENTITIES))

    @classmethod
    def load(
        cls, folder: str | Path | None = None, seed: int = 0, writer: Writer | None = None
    ) -> Paraphraser:
        """Loads the writer of a folder, if none is given, and the judge that ships.

        Raises ValueError, in one line, if one of them is not there.
        """
        writer = writer or ModelWriter.load(folder or writer_folder(), seed=seed)
        return cls(writer, Quality(Judge.load(writer_folder() / JUDGE)))

    def __call__(
        self, texts: Sequence[str], wanted: Wanted | None = None
    ) -> list[list[Paraphrase]]:
        """Returns at most ``wanted.n`` paraphrases of each text, best first; none if none is good
        enough.

        A sentence of a text of several that has no good paraphrase stays as it is.
        """
        wanted = wanted or Wanted()
        parted = [SENTENCE.findall(text.strip()) for text in texts]
        fit = dict.fromkeys(one.strip() for own in parted for one in own if _is_chinese(one))
        found = self._sentences([*fit], wanted)
        return [self._joined(own, found, wanted.n) for own in parted]

    def _sentences(self, sentences: list[str], wanted: Wanted) -> dict[str, list[Paraphrase]]:
        """Returns the paraphrases of each sentence, best first."""
        found: dict[str, list[Paraphrase]] = {text: [] for text in sentences}
        for code in wanted.codes:
            short = [text for text in sentences if len(found[text]) < wanted.n]
            drawn = self.writer.draw(short, code, max(self.draws, 2 * wanted.n), self.temperature)
            pairs = [
                (source, draft)
                for source, own in zip(short, drawn, strict=True)
                for draft in own
                if self._passes(source, draft.text, wanted)
            ]
            readings = self.quality([source for source, _ in pairs], [draft for _, draft in pairs])
            read = zip(readings, pairs, strict=True)
            for reading, (source, draft) in sorted(read, key=lambda two: -math.prod(two[0])):
                known = {one.text for one in found[source]}
                if reading.accepted >= self.accepted and draft.text not in known:
                    found[source].append(Paraphrase(draft.text, reading.accepted))
        return found

    def _passes(self, source: str, draft: str, wanted: Wanted) -> bool:
        """Tells whether a draft differs from its source and has its entities and the terms."""
        a, b = normalise(source), normalise(draft)
        terms = [normalise(term) for term in wanted.keep]
        return (
            a != b
            and (wanted.tone is not None or wanted.degree < 3 or overlap(a, b) < NEAR)
            and _is_chinese(draft)
            and not {"\ufffd", "\n"} & {*draft}
            and all(b.count(term) >= a.count(term) for term in terms if term)
            and not entities_kept(a, b, self._finder) < 100
        )

    def _joined(
        self, sentences: Sequence[str], found: dict[str, list[Paraphrase]], n: int
    ) -> list[Paraphrase]:
        """Returns the paraphrases of a text of these sentences, which keep the space after each."""
        own = [found.get(one.strip(), []) for one in sentences]
        if len(sentences) == 1:
            return own[0][:n]
        ranks = range(min(n, max(map(len, own), default=0)))
        return [
            _text_of(sentences, [some[min(rank, len(some) - 1)] if some else None for some in own])
            for rank in ranks
        ]


def _text_of(sentences: Sequence[str], chosen: Sequence[Paraphrase | None]) -> Paraphrase:
    """Returns a whole text, accepted as its weakest new sentence."""
    parts = [
        one.replace(one.strip(), new.text) if new else one
        for one, new in zip(sentences, chosen, strict=True)
    ]
    return Paraphrase("".join(parts).strip(), min(one.accepted for one in chosen if one))


def _is_chinese(text: str) -> bool:
    return any(is_han(ord(character)) for character in text)
