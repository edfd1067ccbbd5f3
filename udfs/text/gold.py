"""Reads gold corpora: text in which people marked words and parts of speech, as word/tag.

Source: the People's Daily corpus of Peking University (Yu et al., 2002), in its several releases.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

# word/tag, with the brackets of a compound name before the word or after the tag. Words may hold
# slashes (1/2/m) and brackets ([/w).
_TOKEN = re.compile(r"(?:\[(?!/))*(?P<word>.+?)/(?P<tag>[A-Za-z]\w*)(?:\]/?[A-Za-z]\w*)*")
# The original release starts each paragraph with its number: 19980101-01-001-001/m.
_PARAGRAPH_NUMBER = re.compile(r"\d{8}-\d{2}-\d{3}-\d{3}")


class Paragraph(NamedTuple):
    """One line of the corpus: its NFKC words and as many tags."""

    words: list[str]
    tags: list[str]


def parse_paragraph(tokens: Sequence[str]) -> Paragraph:
    """Returns the words under NFKC and the tags. Raises ValueError for a token not word/tag."""
    words, tags = [], []
    for position, token in enumerate(tokens):
        if (match := _TOKEN.fullmatch(token)) is None:
            raise ValueError(f"{token!r} is not word/tag")
        if position == 0 and _PARAGRAPH_NUMBER.fullmatch(match["word"]):
            continue
        # NFKC turns a free-standing accent into a space and a mark; words have no spaces.
        if word := "".join(unicodedata.normalize("NFKC", match["word"]).split()):
            words.append(word)
            tags.append(match["tag"])
    return Paragraph(words, tags)
