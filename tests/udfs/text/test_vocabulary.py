"""Kept words must equal golden cases by hand, and the fast cut its plain definition."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from plain_vocabulary import select

from gaixie.udfs.text.parts_of_speech import CLASSES, TAG_SETS
from gaixie.udfs.text.vocabulary import words_of


def kept_of(counts: dict[str, dict[str, int]]) -> list[tuple[str, str, int]]:
    """Returns what words_of keeps. counts: by word, then by a class that has a tag of jieba's."""
    tags = {name: tag for tag, name in TAG_SETS["jieba"].items()}
    rows = [(word, tags[name], n) for word, of in counts.items() for name, n in of.items()]
    words = words_of(pd.DataFrame(rows, columns=["word", "tag", "count"]), "jieba")
    kept = words[words["kept"]]
    return [*zip(kept["word"], kept["class"], kept["count"], strict=True)]


def test_by_hand():
    """Of four verbs 1.48 are kept; 跳 and 看 have 4 each: 看 (U+770B) is before 跳 (U+8DF3)."""
    words = {"跑": {"verb": 3}, "跳": {"verb": 3, "idiom": 1}, "看": {"verb": 4}, "说": {"verb": 1}}
    assert kept_of(words) == [("看", "verb", 4)]
    assert kept_of(words | {"听": {"verb": 1}}) == [("看", "verb", 4), ("跳", "verb", 4)]


def test_the_papers_shares():
    """Of 100 words per class that all occur once, as many must be kept as CSPC's Table 5 says, and
    as we say for three further classes."""
    kept = {"general noun": 21, "verb": 37, "adjective": 82, "idiom": 54, "adverb": 100}
    kept |= {"person name": 7, "geographical name": 14, "other noun-modifier": 45}
    kept |= {"quantity": 100, "other proper noun": 20}
    kept |= {"function word": 100, "numeral": 10, "other": 0}
    assert set(kept) == set(CLASSES)
    words = {
        name: [f"{chr(0x4E00 + place)}{chr(0x5E00 + k)}" for k in range(100)]
        for place, name in enumerate(kept)
    }
    found = kept_of({word: {name: 1} for name, own in words.items() for word in own})
    for name, count in kept.items():
        assert [word for word, of, _ in found if of == name] == words[name][:count], name


NAMES = st.sampled_from(["verb", "idiom", "adverb"])
COUNTS = st.dictionaries(NAMES, st.integers(1, 8), min_size=1)


@given(st.dictionaries(st.characters(codec="utf-8"), COUNTS, min_size=1, max_size=30))
def test_the_words_kept_are_those_of_the_definition(counts):
    assert kept_of(counts) == select(counts)
