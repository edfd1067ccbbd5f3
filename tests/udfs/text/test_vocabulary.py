"""Kept words must equal golden cases by hand, and the fast cut its plain definition."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_vocabulary import main_class, select

from gaixie.udfs.text.parts_of_speech import CLASSES, TAG_SETS, class_of, tag_set_of
from gaixie.udfs.text.vocabulary import PAPER, Rule, find_cut


def only(**rule) -> dict[str, Rule]:
    return PAPER | {"verb": Rule(**rule)}


def test_a_word_counts_under_its_most_frequent_class():
    assert main_class({"verb": 2, "general noun": 3}) == "general noun"
    assert main_class({"verb": 3, "general noun": 3}) == "general noun"  # it is first in the list
    assert main_class({"adverb": 1, "verb": 1, "idiom": 1}) == "verb"


WORDS = {"跑": {"verb": 5}, "跳": {"verb": 3, "idiom": 1}, "看": {"verb": 4}, "说": {"verb": 1}}


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ({"share": 0.5}, ["跑", "看"]),  # 跳 and 看 have 4 each: 看 (U+770B) before 跳 (U+8DF3)
        ({"share": 0.62}, ["跑", "看"]),  # 2.48 words
        ({"share": 0.63}, ["跑", "看", "跳"]),  # 2.52 words
        ({"share": 0}, []),
        ({"share": 1}, ["跑", "看", "跳", "说"]),
        ({"min_count": 4}, ["跑", "看", "跳"]),
        ({"min_count": 6}, []),
        ({"coverage": 5 / 14}, ["跑"]),
        ({"coverage": 0.4}, ["跑", "看"]),
        ({"coverage": 1}, ["跑", "看", "跳", "说"]),
    ],
)
def test_by_hand(rule, kept):
    assert [word for word, _, _ in select(WORDS, only(**rule))] == kept


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
    found = select({word: {name: 1} for name, own in words.items() for word in own})
    for name, count in kept.items():
        assert [word for word, of, _ in found if of == name] == words[name][:count], name


@st.composite
def rules(draw):
    kind = draw(st.sampled_from(["share", "min_count", "coverage"]))
    values = st.integers(1, 9) if kind == "min_count" else st.integers(0, 20).map(lambda n: n / 20)
    return Rule(**{kind: draw(values)})


@given(st.dictionaries(st.characters(codec="utf-8"), st.integers(1, 8), max_size=30), rules())
def test_the_cut_is_the_definition(counts, rule):
    cut = find_cut(Counter(counts.values()), rule)
    kept = []
    for count in set(counts.values()):
        equals = sorted(word for word in counts if counts[word] == count)
        kept += [word for rank, word in enumerate(equals) if cut.keeps(count, rank)]
    plain = select({word: {"verb": n} for word, n in counts.items()}, PAPER | {"verb": rule})
    assert sorted(kept) == sorted(word for word, _, _ in plain)


@pytest.mark.parametrize(
    "rule",
    [{}, {"share": 0.1, "min_count": 2}, {"share": 1.1}, {"coverage": -0.1}, {"min_count": 0}],
)
def test_bad_rules(rule):
    with pytest.raises(ValueError, match=r"one of share|must"):
        Rule(**rule)


def test_tags():
    assert set(PAPER) == set(CLASSES)
    for tags in TAG_SETS.values():
        assert set(tags.values()) == set(CLASSES)
    assert class_of("nh", "863") == class_of("nr", "pfr") == class_of("nrt", "jieba")
    assert class_of("nh", "863") == "person name"
    assert class_of("no-such-tag", "pfr") == class_of("", "863") == "other"


def test_which_tag_set():
    assert tag_set_of("jieba", ["n", "x"]) == "jieba"
    assert tag_set_of("ltp:LTP/small", ["n", "wp", "v"]) == "863"
    assert tag_set_of("ltp:models/mine", ["n", "w", "nr"]) == "pfr"
