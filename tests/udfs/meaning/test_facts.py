"""The facts of a pair: by hand, as explanations, and the kernel against the definition."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.meaning import core_features, facts, numbering, surface
from gaixie.udfs.text.code_points import CodePoints, Words, from_strings
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

SEGMENTER = JiebaSegmenter()


def features(a, b, words_a, words_b) -> np.ndarray:
    return core_features.count(a, b, words_a, words_b)[:, len(surface.NAMES) :]


def by_character(text: CodePoints) -> Words:
    """Returns words that are single characters."""
    starts = np.repeat(text.offsets[:-1], np.diff(text.offsets))
    return Words((np.arange(len(text.values)) - starts + 1).astype(np.int32), text.offsets)


def by_definition(a: str, b: str, words_a: list[str], words_b: list[str]) -> dict[str, float]:
    """Returns the columns of a normalised pair, given with its words, by definition."""
    found = facts.find(a, words_a), facts.find(b, words_b)
    sides = facts.missing(*found), facts.missing(*found[::-1])
    kinds = [Counter(fact.kind for fact in side) for side in sides]
    items = [Counter(fact.item for fact in side) for side in sides]
    words = [
        sum(
            fact.item not in (-1, facts.NEGATION) and fact.kind not in ("opposite", "exclusive")
            for fact in side
        )
        for side in sides
    ]
    negation = items[1][facts.NEGATION] - items[0][facts.NEGATION]
    switched = {fact.item for fact in sides[0] if fact.kind == "opposite"}
    clashes = len(facts.clashes(*found))
    for kind in kinds:
        kind["number"] += clashes
    values = [
        *(side[kind] for kind in ("number", "latin", "name", "foreign") for side in kinds),
        *(kinds[0][kind] + kinds[1][kind] for kind in ("pronoun", "question")),
        *words,
        negation,
        negation % 2,
        sum(items[1][facts.opposite(item)] > 0 for item in switched),
    ]
    changed = sum(values[:6]) + sum(words) + abs(negation) + values[-1]
    return dict(zip(facts.NAMES, map(float, [*values, changed]), strict=True))


def columns(source: str, paraphrase: str) -> dict[str, float]:
    """Returns the columns that are not 0; asserts that kernel and definition agree."""
    a, b = from_strings([source]), from_strings([paraphrase])
    row = features(a, b, SEGMENTER.word_ends(a), SEGMENTER.word_ends(b))[0]
    found = by_definition(source, paraphrase, *SEGMENTER.cut([source, paraphrase]))
    assert tuple(found) == facts.NAMES
    assert row.tolist() == [*found.values()]
    return {name: value for name, value in found.items() if value}


SHOWN = ("numbers_lost", "numbers_new", "names_lost", "names_new", "negation_added")
# (source, paraphrase, columns that are not 0); columns that are in none of these are not looked at.
GOLDEN = [
    ("公司有3000名员工", "这家公司的员工有三千人", {}),
    ("公司有3000名员工", "公司有7名员工", {"numbers_lost": 1, "numbers_new": 1, "changed": 2}),
    ("会开了七十二小时", "会开了三天", {}),
    ("产量减了三成", "产量减到三成", {"numbers_lost": 1, "numbers_new": 1}),
    ("一个人来了", "有人来了", {}),
    ("他用Word写信", "他写信", {"latin_lost": 1, "changed": 1}),
    ("他去了北京", "他去了上海", {"names_lost": 1, "names_new": 1, "changed": 2}),
    ("他在北京", "北京市有他", {}),
    ("这本书很贵", "这本书不贵", {"negation_added": 1, "negation_odd": 1, "facts_lost": 1}),
    ("他不但聪明", "他非常聪明", {"facts_new": 1, "changed": 1}),
    ("你是不是学生?", "你是学生吗?", {}),
    ("产量增加了", "产量减少了", {"opposites": 1, "numbers_lost": 1, "numbers_new": 1}),
    ("我看见他们", "你看见他们", {"pronouns": 2, "facts_lost": 1, "facts_new": 1, "changed": 2}),
    ("他如何解决", "他怎么解决", {}),
    # Values that exclude each other; words of several values are at odds with none of them.
    ("上午九点开会", "晚上九点开会", {"numbers_lost": 1, "numbers_new": 1}),
    ("傍晚开会", "晚上开会", {}),
    ("早上和晚上都去", "中午和晚上都去", {"numbers_lost": 1, "numbers_new": 1}),
    ("在城市东南部", "在城市北边", {"numbers_lost": 1, "numbers_new": 1}),
    ("人数超过三百", "人数不足三百", {"numbers_lost": 1, "numbers_new": 1}),
    ("人数超过三百", "人数没有少于三百", {"negation_added": 1}),
    ("利润高于成本", "成本低于利润", {}),
    ("礼拜三见面", "星期三见面", {}),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(source, paraphrase, expected):
    found = columns(source, paraphrase)
    names = {*SHOWN, *expected}
    assert {n: found.get(n, 0) for n in names} == {n: expected.get(n, 0) for n in names}


def test_foreign_names():
    # The paraphrase has 德, but not 弗, 鲁 or 里.
    found = columns("德弗鲁里来信", "品德来信")
    assert found["foreign_lost"] == 3
    assert "foreign_new" not in found
    assert columns("他说德·马", "他说")["foreign_lost"] == 2


def test_every_word_counts_for_its_item():
    for word, items in facts.lexicon().items():
        found = {fact.item for fact in facts.find(word, [word]).items}
        assert found == set(items) or facts.YES_NO in found


def test_too_long():
    a, b = from_strings(["我" * (numbering.LONGEST + 1), "我"]), from_strings(["我", "你"])
    rows = core_features.count(a, b, by_character(a), by_character(b))
    assert np.isnan(rows[0]).all()
    assert not np.isnan(rows[1, len(surface.NAMES) :]).any()


PIECES = st.one_of(
    st.sampled_from(sorted(facts.lexicon())),
    st.sampled_from(
        [
            *"不没北京上海美国3十二百%,?。的是AaB1·阿尔弗德·马里",
            *("北京", "3.5万", "第一", "李四", "三成", "三天", "72小时", "半年", "减少", "剩"),
        ]
    ),
)
SENTENCES = st.lists(PIECES, max_size=14).map("".join)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=3), st.booleans())
def test_kernels_are_the_definitions(pairs, by_characters):
    a, b = (from_strings([*texts]) for texts in zip(*pairs, strict=True))
    ends = [by_character(text) if by_characters else SEGMENTER.word_ends(text) for text in (a, b)]
    cuts = [[*map(list, pair)] if by_characters else SEGMENTER.cut([*pair]) for pair in pairs]
    both = zip(pairs, cuts, strict=True)
    expected = [[*by_definition(*pair, *cut).values()] for pair, cut in both]
    np.testing.assert_array_equal(features(a, b, *ends), np.array(expected, np.float32))
