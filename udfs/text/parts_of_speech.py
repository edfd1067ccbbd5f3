"""Parts of speech: three tag sets, and the classes of the vocabulary that they are mapped to.

The table of classes, shares and tags is parts_of_speech.tsv.

Source: Chinese Sentence Paraphrasing, section 5.1 and Table 5, for the ten classes and the share of
words that each keeps. Tag sets: 863, LTP's (Che et al., N-LTP, 2021); PFR, the People's Daily's (Yu
et al., 2002); jieba's, which is ICTCLAS's. Words outside the ten classes (pronouns, prepositions,
conjunctions, particles…) are few and needed by every sentence: a class more, which keeps all.
Numerals are endless: of them, and of what is no word, little or nothing is kept.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

with Path(__file__).with_name("parts_of_speech.tsv").open(encoding="utf-8") as _file:
    _ROWS = [*csv.DictReader(_file, delimiter="\t")]

CLASSES = {row["class"]: float(row["share"]) for row in _ROWS}
"""Every class, and the share of its distinct words that the paper keeps; the last three are ours.

"other" holds what is no word of the language: Latin strings, punctuation, symbols. The tokenizer
has every character, and makes entities of the rest.
"""

TAG_SETS: Mapping[str, Mapping[str, str]] = {
    tag_set: {tag: row["class"] for row in _ROWS for tag in row[tag_set].split()}
    for tag_set in ("863", "pfr", "jieba")
}
"""Tag -> class. A tag that is not here, and an empty one (a space), is "other"."""

_ONLY_863 = {"nh", "ni", "nl", "nd", "wp", "ws"}


def class_of(tag: str, tag_set: str) -> str:
    """The class of a segmenter's tag."""
    return TAG_SETS[tag_set].get(tag, "other")


def tag_set_of(segmenter: str, tags: Iterable[str]) -> str:
    """The tag set that a segmenter's tags are of: LTP models exist for both sets."""
    if segmenter == "jieba":
        return "jieba"
    return "863" if _ONLY_863.intersection(tags) else "pfr"
