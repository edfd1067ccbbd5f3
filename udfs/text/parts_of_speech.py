"""Parts of speech: three tag sets, and the classes of the vocabulary that they are mapped to.

Source: Chinese Sentence Paraphrasing, section 5.1 and Table 5, for the ten classes and the share of
words that each keeps. Tag sets: 863, LTP's (Che et al., N-LTP, 2021); PFR, the People's Daily's
(Yu et al., 2002); jieba's, which is ICTCLAS's. Words outside the ten classes (pronouns,
prepositions, conjunctions, particles…) are few and needed by every sentence: a class more, which keeps
all. Numerals are endless: of them, and of what is no word, little or nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

CLASSES = {
    "general noun": 0.21,
    "verb": 0.37,
    "adjective": 0.82,
    "idiom": 0.54,
    "adverb": 1.00,
    "person name": 0.07,
    "geographical name": 0.14,
    "other noun-modifier": 0.45,
    "quantity": 1.00,
    "other proper noun": 0.20,
    "function word": 1.00,
    "numeral": 0.10,
    "other": 0.00,
}
"""Every class, and the share of its distinct words that the paper keeps; the last three are ours.

"other" holds what is no word of the language: Latin strings, punctuation, symbols. The tokenizer has
every character, and makes entities of the rest.
"""


def _tags(classes: Mapping[str, str]) -> dict[str, str]:
    return {tag: name for name, tags in classes.items() for tag in tags.split()}


TAG_SETS: Mapping[str, Mapping[str, str]] = {
    "863": _tags(
        {
            "general noun": "n nd nl nt j",
            "verb": "v",
            "adjective": "a z",
            "idiom": "i",
            "adverb": "d",
            "person name": "nh",
            "geographical name": "ns",
            "other noun-modifier": "b",
            "quantity": "q",
            "other proper noun": "nz ni",
            "function word": "c e g h k o p r u",
            "numeral": "m",
            "other": "wp ws x %",
        }
    ),
    "pfr": _tags(
        {
            "general noun": "n Ng f s t Tg j",
            "verb": "v Vg vd vn vvn vg",
            "adjective": "a ad an Ag z ag",
            "idiom": "i l",
            "adverb": "d Dg dg",
            "person name": "nr",
            "geographical name": "ns",
            "other noun-modifier": "b Bg bg",
            "quantity": "q Qg",
            "other proper noun": "nt nz",
            "function word": "c e h k o p r Rg rg u Ug y Yg",
            "numeral": "m Mg mg",
            "other": "w nx x na",
        }
    ),
    "jieba": _tags(
        {
            "general noun": "n ng f s t tg j",
            "verb": "v vg vd vn vi vq",
            "adjective": "a ad an ag z zg",
            "idiom": "i l",
            "adverb": "d dg df",
            "person name": "nr nrt nrfg",
            "geographical name": "ns",
            "other noun-modifier": "b bg",
            "quantity": "q mq",
            "other proper noun": "nt nz",
            "function word": "c e g h k o p r rg rr rz u ud ug uj ul uv uz y yg",
            "numeral": "m mg",
            "other": "eng x nx",
        }
    ),
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
