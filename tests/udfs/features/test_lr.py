"""LR by hand: characters of the paraphrase / characters of the source, both normalised."""

import math

import pytest

GOLDEN = [
    ("今天天气很好", "天气好", 3 / 6),
    ("天气好", "今天天气很好", 6 / 3),
    ("天气好", "气好天", 1.0),
    ("𠮷野家", "吉野", 2 / 3),
    ("好", "㍿", 4.0),  # 株式会社
    (" 你 好 ", "你  好", 1.0),
    ("天气", "", 0.0),
    ("", "天气", math.nan),
    ("", "", math.nan),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(both, source, paraphrase, expected):
    assert both("lr", source, paraphrase) == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)
