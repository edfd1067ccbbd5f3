"""What the reader learns from: pairs that say the same, that do not, and that are no Chinese.

An example is (source, paraphrase, same, fluent, good): three targets from 0 to 1, NaN where the set does
not say. Groups of translations are those of research/reader/versions.py.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import rjieba

from gaixie.research.reader.broken import Breaker
from gaixie.udfs.paraphrase.edits import Edit, apply, fits
from gaixie.udfs.paraphrase.lexicon import lexical_edits, load

NAN = math.nan
BROKEN = ("negation", "roles", "roles", "fact", "scope")
"""Fluent counterparts, and how often each is drawn."""
HELD_OUT = 8
"""One written group in so many is kept for the test, and one rated group in ten."""


class Example(NamedTuple):
    source: str
    paraphrase: str
    same: float = NAN
    fluent: float = NAN
    good: float = NAN


@dataclass
class Sets:
    """The sets of a folder, cut by group into what is learned and what is kept apart."""

    versions: list[list[str]]
    """Good translations of one sentence."""
    written: list[dict[str, Any]]
    broken: dict[int, dict[str, str]]
    rated: list[dict[str, Any]]
    grammar: list[tuple[str, int]]
    """(sentence, 1 where it is right)."""
    test_written: list[dict[str, Any]] = field(default_factory=list)
    test_rated: list[dict[str, Any]] = field(default_factory=list)


def load_sets(data: Path, versions: list[list[str]], more_written: list[Path]) -> Sets:
    """Reads the sets. Raises FileNotFoundError where one is missing."""
    written = [
        row for path in (data / "written_groups.jsonl", *more_written) for row in _rows(path)
    ]
    broken = {row["group"]: row for row in _rows(data / "written_broken.jsonl")}
    names = ("paraphrase_core.dev.jsonl", "paraphrase_core2.dev.jsonl", "written_rated.jsonl")
    rated = [row for name in names for row in _rows(data / name)]
    test = {row["group"] for row in written if row["group"] in broken and held_out(row["group"])}
    apart = [row for row in rated if zlib.crc32(str(row["group"]).encode()) % 10 == 0]
    known = {id(row) for row in apart}
    return Sets(
        versions=versions,
        written=[row for row in written if row["group"] not in test],
        broken=broken,
        rated=[row for row in rated if id(row) not in known and row["group"] not in test],
        grammar=_grammar(data),
        test_written=[row for row in written if row["group"] in test],
        test_rated=[row for row in apart if row["group"] not in test],
    )


def held_out(group: int) -> bool:
    """Whether a written group is kept for the test."""
    return group % HELD_OUT == HELD_OUT - 1


class Examples:
    """Draws examples: ``draw()`` gives one, of a set drawn by its weight."""

    def __init__(self, sets: Sets, random: Random):
        self.sets, self.random = sets, random
        self.breaker = Breaker([own[0] for own in sets.versions], random)
        self.kinds: dict[Callable[[], Example], float] = {
            self.of_versions: 0.33,
            self.of_written: 0.3,
            self.of_edits: 0.17,
            self.of_rated: 0.17,
            self.of_grammar: 0.03,
        }

    def draw(self) -> Example:
        (kind,) = self.random.choices([*self.kinds], [*self.kinds.values()])
        return kind()

    def of_versions(self) -> Example:
        """Two translations of one sentence; the same changed alike; one of them broken."""
        random, own = self.random, self.random.choice(self.sets.versions)
        one, other = random.sample(own, 2)
        drawn = random.random()
        if drawn < 0.35:
            return Example(one, other, 1, 1, 1)
        if drawn < 0.5:
            alike = self.breaker.in_both(one, other)
            return Example(*alike, 1) if alike else Example(one, other, 1, 1, 1)
        if drawn < 0.85:
            source = random.choice((one, other))  # the change alone tells, not the wording
            if broken := self.breaker.meaning(other):
                return Example(source, broken, 0, NAN, 0)
        elif drawn < 0.95:
            if salad := self.breaker.salad(other):
                return Example(one, salad, NAN, 0, 0)
        stranger = random.choice(random.choice(self.sets.versions))
        return Example(one, stranger, 0, 1, 0)

    def of_edits(self) -> Example:
        """A sentence and its edits by the lexicon's sure words: the same; broken as well: not the same."""
        text = self.random.choice(self.random.choice(self.sets.versions))
        edits = [own for own in lexical_edits(text, rjieba.tag(text), load()) if own.sure]
        self.random.shuffle(edits)
        taken: list[Edit] = []
        for edit in edits:
            if fits(edit, taken) and self.random.random() < 0.6:
                taken.append(edit)
        edited = apply(text, taken)
        if self.random.random() < 0.4 and (broken := self.breaker.meaning(edited)):
            return Example(text, broken, 0, NAN, 0)
        return Example(text, edited, 1, 1, 1) if taken else Example(text, text, 1)

    def of_written(self) -> Example:
        """Two of a written group, or one with its counterpart."""
        random, group = self.random, self.random.choice(self.sets.written)
        one, other = random.sample(group["texts"], 2)
        broken, drawn = self.sets.broken.get(group["group"]), random.random()
        if drawn < 0.45:
            return Example(one, other, 1, 1, 1)
        if broken is None or drawn > 0.95:
            changed = self.breaker.meaning(other)
            return Example(one, changed, 0, NAN, 0) if changed else Example(one, other, 1, 1, 1)
        if drawn < 0.87:
            wrong = broken[random.choice(BROKEN)]
            return (
                Example(one, wrong, 0, 1, 0)
                if random.random() < 0.85
                else Example(wrong, one, 0, 1, 0)
            )
        return Example(one, broken["salad"], NAN, 0, 0)

    def of_rated(self) -> Example:
        """A rated pair: 1.5 of 5 and below is 0, 4.75 and above is 1."""
        row = self.random.choice(self.sets.rated)
        same, fluent = (min(1.0, max(0.0, (row[k] - 1.5) / 3.25)) for k in ("meaning", "fluency"))
        return Example(row["source"], row["paraphrase"], same, fluent, min(same, fluent))

    def of_grammar(self) -> Example:
        """A sentence beside itself."""
        text, right = self.random.choice(self.sets.grammar)
        return Example(text, text, NAN, right)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _grammar(data: Path) -> list[tuple[str, int]]:
    """FCGEC's flags, and MuCGEC's sentences with their first corrections."""
    found: list[tuple[str, int]] = []
    for line in (data / "fcgec.dev.tsv").read_text("utf-8").split("\n")[1:]:
        if len(cells := line.split("\t")) >= 3:
            found.append((cells[1], 1 - int(cells[2])))
    for line in (data / "mucgec.dev.tsv").read_text("utf-8").split("\n"):
        if len(cells := line.split("\t")) >= 3 and cells[2] not in ("", cells[1]):
            found += [(cells[1], 0), (cells[2], 1)]
    return [(text, right) for text, right in found if 8 <= len(text) <= 80]
