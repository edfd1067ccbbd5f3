"""Single edits of sentences, each judged by a reader: may it stand?

judged_edits.tsv has a line for each: the sentence, as the start of its SHA-256, for not all may be
published; where the edit starts and ends; what it writes there; and the verdict: 1 for one that may
stand, else why not (g no grammar, c odd, r another register, m another meaning).
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pandas as pd

from gaixie.research.pair_encoder.versions import read_references
from gaixie.udfs.paraphrase.edits import Edit, apply, fits

FILE = "judged_edits.tsv"
DIGITS = 12
HELD_OUT = 6
"""One sentence in so many is kept for the test."""
GOOD = "1"


class Judged(NamedTuple):
    """A sentence and the edits of it that were judged."""

    text: str
    good: list[Edit]
    bad: list[Edit]


def read_judged_edits(path: Path, data: Path, groups: Sequence[dict[str, Any]]) -> list[Judged]:
    """The sentences of a file that the sets of a folder and the written groups have."""
    found: dict[str, Judged] = {}
    with open(path, encoding="utf-8", newline="") as lines:
        rows = [*csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    wanted = {key for key, *_ in rows}
    texts = {key: text for text in _texts(data, groups) if (key := text_key(text)) in wanted}
    for key, start, end, new, verdict in rows:
        if key in texts:
            own = found.setdefault(key, Judged(texts[key], [], []))
            edits = own.good if verdict == GOOD else own.bad
            edits.append(Edit(int(start), int(end), new, verdict))
    return [*found.values()]


def text_key(text: str) -> str:
    """The start of a sentence's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def held_out(text: str) -> bool:
    """Whether a sentence is kept for the test."""
    return int(text_key(text), 16) % HELD_OUT == 0


def _texts(data: Path, groups: Sequence[dict[str, Any]]) -> Iterator[str]:
    for group in groups:
        yield from group["texts"]
    for _, human, _ in read_references(data):
        yield human
    yield from pd.read_parquet(data / "zh_text.parquet", columns=["text"])["text"]


def draw_edited(judged: Judged, random: Random) -> tuple[str, str | None, list[tuple[int, int]]]:
    """(the sentence with good edits, the same with a bad one too, where that is); None where no bad
    one fits."""
    good: list[Edit] = []
    for edit in random.sample(judged.good, len(judged.good)):
        if fits(edit, good) and (not good or random.random() < 0.6):
            good.append(edit)
    fitting = [edit for edit in judged.bad if fits(edit, good)]
    if not fitting:
        return apply(judged.text, good), None, []
    bad = random.choice(fitting)
    start = bad.start + sum(len(own.new) - own.end + own.start for own in good if own < bad)
    span = (start, start + max(len(bad.new), 1))
    return apply(judged.text, good), apply(judged.text, [*good, bad]), [span]
