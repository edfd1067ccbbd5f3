"""Wordings: fixed phrases that have another form if their context allows it.

A line of wordings.tsv is ``register<TAB>find<TAB>give<TAB>source<TAB>result``. The register is
``all``, or ``written`` or ``spoken`` for a wording that other texts do not suit (register.py).
``find`` is a regular expression in which <name> stands for an expression of words.yaml. Named
groups carry conditions: n1 is a noun phrase, w1 begins and ends at word boundaries, v1 begins with
a verb, and a1, c1, f1 and p1 are one word tagged as an adjective, a conjunction, a noun of place,
or a preposition. ``give`` replaces the match, or the group x1 if there is one; it names groups in
braces. The last two fields are an example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from gaixie.udfs.paraphrase.rules.register import Register, doubt, register_of
from gaixie.udfs.paraphrase.rules.tables import FOLDER, expanded
from gaixie.udfs.paraphrase.rules.view import Edit, View, filled, sound

FILE = FOLDER / "wordings.tsv"
MARKS = {"all": "", "written": "+", "spoken": "-"}
_TAGS = {"a", "c", "d", "f", "p"}


class Wording(NamedTuple):
    """A line of the file."""

    register: str
    find: re.Pattern[str]
    give: str
    source: str
    result: str


@cache
def wordings() -> list[Wording]:
    """Reads the lines of the file. Raises ValueError that names the line of a wrong entry."""
    found = []
    for number, line in enumerate(FILE.read_text("utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 5 or fields[0] not in MARKS:
            raise ValueError(f"{FILE.name}, line {number}: expected register and four fields")
        found.append(Wording(fields[0], re.compile(expanded(fields[1])), *fields[2:]))
    return found


def wording_edits(v: View, register: Register | None = None) -> Iterator[tuple[Edit, bool]]:
    """Yields the edits (start, end, replacement) that the wordings give for a text, and whether
    each is doubtful. register: by default that of the text."""
    register = register or register_of(v.text)
    for own in wordings():
        doubtful = doubt(MARKS[own.register], register)
        if doubtful is None:
            continue
        for m in own.find.finditer(v.text):
            groups = {name: text or "" for name, text in m.groupdict().items()}
            edit = (*m.span("x1" if "x1" in groups else 0), own.give.format(**groups))
            if _holds(v, m) and sound(v.text, edit):
                yield edit, doubtful


def _holds(v: View, m: re.Match[str]) -> bool:
    """Tells whether the named groups of a match meet the conditions of their names."""
    for name in (name for name, text in m.groupdict().items() if text):
        start, end = m.span(name)
        k = v.starts.get(start, -1)
        if name[0] == "n" and not filled(v, start, end):
            return False
        if name[0] == "w" and not v.at(start, end):
            return False
        if name[0] == "v" and not v.tag(k).startswith("v"):
            return False
        if name[0] in _TAGS and (v.word(k) != m[name] or v.tag(k)[:1] != name[0]):
            return False
    return True
