"""Maps three tag sets of parts of speech to the classes of the vocabulary.

parts_of_speech.tsv holds the classes, shares and tags.

Source: Chinese Sentence Paraphrasing, section 5.1 and Table 5, for the ten classes and the share of
words that each keeps. Tag sets: 863, LTP's (Che et al., N-LTP, 2021); PFR, the People's Daily's (Yu
et al., 2002); jieba's, which is ICTCLAS's. Words outside the ten classes (pronouns, prepositions,
conjunctions, particles…) are few and every sentence needs them, so one more class keeps them all.
Numerals are endless, so little or nothing is kept of them, and of what is not a word.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

with Path(__file__).with_name("parts_of_speech.tsv").open(encoding="utf-8") as _file:
    _ROWS = [*csv.DictReader(_file, delimiter="\t")]

CLASSES = {row["class"]: float(row["share"]) for row in _ROWS}
"""The share of its distinct words that the paper keeps, by class; the last three are ours.

"other" holds what is not a Chinese word: Latin strings, punctuation, symbols. The tokenizer
has every character, and makes entities of the rest.
"""

TAG_SETS: Mapping[str, Mapping[str, str]] = {
    tag_set: {tag: row["class"] for row in _ROWS for tag in row[tag_set].split()}
    for tag_set in ("863", "pfr", "jieba")
}
"""Maps each tag to its class. An unlisted tag is "other", and so is the empty tag (a space)."""

_ONLY_863 = {"nh", "ni", "nl", "nd", "wp", "ws"}


def class_of(tag: str, tag_set: str) -> str:
    """Returns the class of a segmenter's tag."""
    return TAG_SETS[tag_set].get(tag, "other")


def tag_set_of(segmenter: str, tags: Iterable[str]) -> str:
    """Returns a segmenter's tag set. For LTP the tags decide: it has models for both sets."""
    if segmenter == "jieba":
        return "jieba"
    return "863" if _ONLY_863.intersection(tags) else "pfr"
