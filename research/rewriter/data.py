"""Collects the rewriter's training data: tokenized texts, and pairs of them, as arrays.

    collect(versions, written, rewritten, plain).material(tokenizer)

Texts are the good translations of one sentence (research/pair_encoder/versions.py), the groups and
free rewrites written for this project, human rewrites of idioms, and plain sentences. Texts kept
for tests are excluded, by the rules of research/pair_encoder.
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
"""Upper bounds of the degrees of change: the share of the paraphrase's bigrams that are new."""
TARGETS = 5
"""Only this many versions of a sentence, the best, are targets to write."""
VALIDATION = 40
"""One group in this many is kept to watch the training."""
LONGER = 1.5
"""If one side is longer than the other by more than this factor, content was lost or added."""
PLAIN = ("pd199801", "cip", "boson")
"""Origins of zh_sentences.parquet whose sentences are well written."""
NAMES = ("nr", "ns", "nt", "nz")
"""jieba's tags for names."""


class Collector:
    """Gives each text an id, and gathers pairs of texts."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.rows: list[tuple[int, int, int, int, bool]] = []

    def group(self, texts: Sequence[str], kind: str, targets: int | None = None) -> None:
        """Adds all suitable ordered pairs of a group; the first ``targets`` are paraphrases."""
        watched = zlib.crc32(texts[0].encode()) % VALIDATION == 11
        allowed = set(texts[:targets])
        fixed = {text: fixed_terms(text) for text in texts}
        for source, paraphrase in permutations(fixed, 2):
            kept = all(term in paraphrase for term in fixed[source])
            if paraphrase in allowed and kept and all(term in source for term in fixed[paraphrase]):
                if max(len(source), len(paraphrase)) <= LONGER * min(len(source), len(paraphrase)):
                    self.pair(source, paraphrase, kind, watched)

    def pair(self, source: str, paraphrase: str, kind: str, watched: bool = False) -> None:
        """Adds one pair."""
        degree = degree_of(source, paraphrase) if source != paraphrase else 0
        row = self._number(source), self._number(paraphrase), KINDS.index(kind), degree, watched
        self.rows.append(row)

    def _number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def material(self, tokenizer: Any) -> Material:
        """Tokenizes the texts; leaves out pairs with a text that is empty or too long."""
        encoded = tokenizer.encode_batch_fast([*self.texts], add_special_tokens=False)
        lengths = np.array([len(own.ids) for own in encoded])
        tokens = np.fromiter((token for own in encoded for token in own.ids), np.uint16)
        rows = np.array(self.rows, dtype=np.int32)
        rows = rows[(lengths[rows[:, :2]] <= LONGEST).all(1) & (lengths[rows[:, :2]] > 0).all(1)]
        pairs, kinds, degrees, watched = np.split(rows, [2, 3, 4], axis=1)
        columns = kinds.astype(np.uint8), degrees.astype(np.uint8), watched.astype(bool)
        return Material(tokens, lengths.cumsum(), pairs, *(own[:, 0] for own in columns))


def fixed_terms(text: str) -> list[str]:
    """Returns a text's numbers, Latin words and names, which a paraphrase must not change."""
    names = [word for word, tag in rjieba.tag(text) if tag[:2] in NAMES and len(word) > 1]
    return [*re.findall(r"[0-9][0-9.,:%]*[0-9%]|[0-9]|[A-Za-z][A-Za-z-]+", text), *names]


def degree_of(source: str, paraphrase: str) -> int:
    """Returns how far a paraphrase goes, from 1 to 5."""
    return 1 + int(np.searchsorted(BOUNDS, change(source, paraphrase)))


def collect(
    versions: Sequence[Sequence[str]],
    written: Sequence[Sequence[str]],
    rewritten: Iterable[tuple[str, str]],
    plain: Iterable[tuple[str, str]],
) -> Collector:
    """Collects all pairs.

    rewritten: (text, a person's rewrite of it). plain: (sentence, the same after edits).
    """
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
    """Yields sentences with an idiom, each with a person's rewrite (CIP)."""
    for name in ("in", "out"):
        rows = pd.read_csv(data / f"cip_idiom.{name}_domain.csv")
        yield from zip(rows["src"], rows["dst"], strict=True)


def edited_sentences(data: Path) -> Iterator[tuple[str, str]]:
    """Yields sentences that people wrote, each with its edited version."""
    plain = pd.read_parquet(data / "zh_sentences.parquet")
    texts = [
        *plain["text"][plain["origin"].isin(PLAIN)],
        *pd.read_parquet(data / "zh_text.parquet")["text"],
    ]
    lexicon = load()
    for text in filter(usable, dict.fromkeys(map(clean, texts))):
        yield text, edited(text, Random(text), lexicon)


def edited(text: str, random: Random, lexicon: Lexicon) -> str:
    """Returns a sentence with edited structure and words; most results read well.

    The edited sentence becomes the source and the original the paraphrase, so the rewriter only
    learns to write what a person wrote.
    """
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
