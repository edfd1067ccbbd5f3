"""What the rewriter learns from: texts as tokens, and pairs of them, in one file of arrays.

    collect(data, own, versions).material(tokenizer)

Texts are the good translations of one sentence (research/pair_encoder/versions.py), the groups and
free rewrites that were written for this project, human rewrites of idioms, and plain sentences.
What is kept for tests stays out, by the rules of research/pair_encoder.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import rjieba

from gaixie.research.pair_encoder.versions import clean, usable
from gaixie.research.rewriter.material import KINDS, LONGEST, Material
from gaixie.udfs.paraphrase.edits import Edit, apply, fits
from gaixie.udfs.paraphrase.lexicon import Lexicon, lexical_edits, load
from gaixie.udfs.paraphrase.paraphraser import change
from gaixie.udfs.paraphrase.rules import structural_edits
from gaixie.udfs.paraphrase.rules.view import View
from gaixie.udfs.paraphrase.rules.wordings import wording_edits

BOUNDS = (0.25, 0.42, 0.58, 0.72)
"""Degrees of change end here: share of the paraphrase's pairs of neighbours that are new."""
TARGETS = 5
"""Of the versions of a sentence so many, the best, are written."""
VALIDATION = 40
"""One group in so many is kept to watch the training."""
LONGER = 1.5
"""A pair whose one side is longer by more has lost or won something."""
PLAIN = ("pd199801", "cip", "boson")
"""Origins of zh_sentences.parquet whose sentences are well written."""
NAMES = ("nr", "ns", "nt", "nz")
"""jieba's tags of names."""


class Collector:
    """Numbers texts, and gathers pairs of them."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.rows: list[tuple[int, int, int, int, bool]] = []

    def group(self, texts: Sequence[str], kind: str, targets: int | None = None) -> None:
        """All ordered pairs of a group; the first ``targets`` are paraphrases."""
        watched = zlib.crc32(texts[0].encode()) % VALIDATION == 11
        allowed = set(texts[:targets])
        fixed = {text: fixed_terms(text) for text in texts}
        for source, paraphrase in permutations(fixed, 2):
            kept = all(term in paraphrase for term in fixed[source])
            if paraphrase in allowed and kept and all(term in source for term in fixed[paraphrase]):
                if max(len(source), len(paraphrase)) <= LONGER * min(len(source), len(paraphrase)):
                    self.pair(source, paraphrase, kind, watched)

    def pair(self, source: str, paraphrase: str, kind: str, watched: bool = False) -> None:
        """One pair."""
        degree = degree_of(source, paraphrase) if source != paraphrase else 0
        row = self._number(source), self._number(paraphrase), KINDS.index(kind), degree, watched
        self.rows.append(row)

    def _number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def material(self, tokenizer: Any) -> Material:
        """Tokenizes; pairs with a text that is too long are left out."""
        encoded = tokenizer.encode_batch_fast([*self.texts], add_special_tokens=False)
        lengths = np.array([len(own.ids) for own in encoded])
        tokens = np.fromiter((token for own in encoded for token in own.ids), np.uint16)
        rows = np.array(self.rows, dtype=np.int32)
        rows = rows[(lengths[rows[:, :2]] <= LONGEST).all(1) & (lengths[rows[:, :2]] > 0).all(1)]
        pairs, kinds, degrees, watched = np.split(rows, [2, 3, 4], axis=1)
        columns = kinds.astype(np.uint8), degrees.astype(np.uint8), watched.astype(bool)
        return Material(tokens, lengths.cumsum(), pairs, *(own[:, 0] for own in columns))


def fixed_terms(text: str) -> list[str]:
    """Numbers, Latin words and names: a pair whose sides differ in them would teach to change
    them."""
    names = [word for word, tag in rjieba.tag(text) if tag[:2] in NAMES and len(word) > 1]
    return [*re.findall(r"[0-9][0-9.,:%]*[0-9%]|[0-9]|[A-Za-z][A-Za-z-]+", text), *names]


def degree_of(source: str, paraphrase: str) -> int:
    """How far a paraphrase goes, 1 to 5."""
    return 1 + int(np.searchsorted(BOUNDS, change(source, paraphrase)))


def collect(
    versions: Sequence[Sequence[str]],
    written: Sequence[Sequence[str]],
    rewritten: Iterable[tuple[str, str]],
    plain: Iterable[tuple[str, str]],
) -> Collector:
    """All pairs. rewritten: (text, the same as a person rewrote it). plain: (sentence, the same
    after edits)."""
    collector = Collector()
    for texts in versions:
        collector.group(texts, "translated", TARGETS)
    for texts in written:
        collector.group(texts, "written")
    for source, paraphrase in rewritten:
        if source != paraphrase:
            collector.pair(source, paraphrase, "translated")
    for text, other in plain:
        if text == other:
            collector.pair(text, text, "plain")
        elif all(term in other for term in fixed_terms(text)):
            collector.pair(other, text, "edited")
    return collector


def without_idioms(data: Path) -> Iterator[tuple[str, str]]:
    """Sentences with an idiom, and the same as people rewrote it (CIP)."""
    for name in ("in", "out"):
        rows = pd.read_csv(data / f"cip_idiom.{name}_domain.csv")
        yield from zip(rows["src"], rows["dst"], strict=True)


def edited_sentences(data: Path) -> Iterator[tuple[str, str]]:
    """Sentences that people wrote, and the same after edits."""
    plain = pd.read_parquet(data / "zh_sentences.parquet")
    texts = [
        *plain["text"][plain["origin"].isin(PLAIN)],
        *pd.read_parquet(data / "zh_text.parquet")["text"],
    ]
    lexicon = load()
    for text in filter(usable, dict.fromkeys(map(clean, texts))):
        yield text, edited(text, Random(text), lexicon)


def edited(text: str, random: Random, lexicon: Lexicon) -> str:
    """A sentence after edits of its structure and of its words, most of which read well: a source
    whose paraphrase is the sentence itself, so that what is written is always a person's."""
    tagged = rjieba.tag(text)
    edits = [Edit(*own) for own in structural_edits(text, tagged)]
    random.shuffle(edits)
    edits = edits[: random.choice((0, 1, 1, 2))]
    words = [*lexical_edits(text, tagged, lexicon)]
    words += [Edit(*own, "wording") for own, _ in wording_edits(View(text, tagged))]
    random.shuffle(words)
    taken: list[Edit] = []
    share = random.choice((0.4, 0.7, 0.9))
    for edit in edits:
        if fits(edit, taken):
            taken.append(edit)
    for edit in words:
        if fits(edit, taken) and random.random() < share:
            taken.append(edit)
    return apply(text, taken)
