"""LIS by hand: characters of the longest common substring / characters of the source."""

import math

import pytest

GOLDEN = [
    ("今天天气很好", "明天天气很好", 5 / 6),  # 天天气很好
    ("今天天气很好", "天气", 2 / 6),
    ("天气", "今天天气很好", 1.0),  # the divisor is the source's length: not symmetric
    ("他来了", "她走了", 1 / 3),  # 了: a single character counts
    ("甲乙丙丁", "丁丙乙甲", 1 / 4),
    ("甲乙丙甲乙丙丁", "甲乙丙丁", 4 / 7),
    ("哈哈哈哈", "哈哈哈", 3 / 4),
    ("a b", "a b c", 1.0),  # a space is a character
    ("春", "秋", 0.0),
    ("春天", "", 0.0),
    ("", "春天", math.nan),
    ("", "", math.nan),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(both, source, paraphrase, expected):
    assert both("lis", source, paraphrase) == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)
