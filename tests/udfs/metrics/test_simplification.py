import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.simplification import FEATURES, Feature, Sentence, reordered

OF_TEXT = [*FEATURES]
TEXT = st.text("我很高兴快乐。，!.a𠮷 1", max_size=12)


def score(feature, source, paraphrase, **settings):
    return Feature(feature, **settings).sentence_scores(Pairs.of([source], [paraphrase]))[0]


# By hand


@pytest.mark.parametrize(
    ("feature", "source", "paraphrase", "expected"),
    [
        ("sentence-splits", "我来了，他走了。", "我来了。他走了。", 1.0),
        ("sentence-splits", "你好！？", "你好", 0.0),
        ("sentence-splits", "圆周率是3.14。", "圆周率是3.14...", 0.0),
        ("compression", "我很高兴。", "我高兴", 3 / 5),
        ("compression", "a b", "ab", 1.0),
        ("compression", "", "你好", math.nan),
        # 啦 replaces 兴; the rest stays
        ("replaced", "我很高兴", "我很高啦", 1 / 4),
        # 很 deleted, nothing replaced
        ("replaced", "我很高兴", "我高兴", 0.0),
        ("replaced", "我", "", math.nan),
        # 我/很/高兴 and 我/很/快乐: one of three words is lost, one is new
        ("deleted", "我很高兴", "我很快乐", 1 / 3),
        ("added", "我很高兴", "我很快乐", 1 / 3),
        ("reordered", "我很高兴", "我很快乐", 0.0),
        ("added", "我", "", math.nan),
    ],
)
def test_by_hand(feature, source, paraphrase, expected):
    assert score(feature, source, paraphrase) == pytest.approx(expected, nan_ok=True)


def sentence(*cut):
    return Sentence("".join(cut), 1, list(cut))


def test_reordered():
    # a b c d to d a b c: all four are kept, three of them in order
    assert reordered(sentence(*"abcd"), sentence(*"dabc")) == 1 / 4
    # a a b to b a: a b are kept, one of them in order; three words in the source
    assert reordered(sentence(*"aab"), sentence(*"ba")) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("source", "paraphrase", "expected"),
    [
        # 他 1, 罹患 in no list, 疾病 6; 他 and 生病 1, 了 3; 。 is not a word
        ("他罹患疾病。", "他生病了。", (1 + 1 + 9) / (1 + 64 + 36)),
        ("他生病了。", "他罹患疾病。", (1 + 64 + 36) / (1 + 1 + 9)),
        # 我 很 高兴, all of level 1; 我 很 精致, the last of level 7–9
        ("我很高兴", "我很精致", (1 + 1 + 49) / 3),
        ("。", "高兴", math.nan),
    ],
)
def test_lexical_complexity(source, paraphrase, expected):
    found = score("lexical-complexity", source, paraphrase)
    assert found == pytest.approx(expected, nan_ok=True)


# Every feature


@given(st.sampled_from(OF_TEXT), TEXT, TEXT)
def test_ranges(feature, source, paraphrase):
    found = score(feature, source, paraphrase)
    low, high = FEATURES[feature].range
    assert math.isnan(found) or low <= found <= high
