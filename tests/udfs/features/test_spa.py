"""SPA by hand: (1 / |I|²) Σ over tiles of (tiles from here on) · |start in A / n − start in B / m|."""

import math

import pytest
from plain_features import positional_alignment

GOLDEN = [
    # 早上 0/6 → 4/6, counted twice; 他去公园 2/6 → 0/6, once: (2 · 2/3 + 1/3) / 2².
    ("早上他去公园", "他去公园早上", 5 / 12),
    # n = 6, m = 7. 我们 0/6 → 2/7, thrice; 明天 2/6 → 0/7, twice; 出发 4/6 → 5/7, once:
    # (18/21 + 14/21 + 1/21) / 3² = (33/21) / 9.
    ("我们明天出发", "明天我们就出发", 11 / 63),
    # The same move seen from the other side: 明天 0/7 → 2/6, thrice; 我们 2/7 → 0/6, twice;
    # 出发 5/7 → 4/6, once: (21/21 + 12/21 + 1/21) / 9.
    ("明天我们就出发", "我们明天出发", 34 / 189),
    ("春天来了", "是春天来了", 1 / 5),  # one tile, 0/4 → 1/5
    ("好好好好", "好好", 0.0),  # one tile, the first of three possible, 0/4 → 0/2
    ("春天来了", "春天来了", 0.0),
    ("他很高兴", "她十分快乐", math.nan),
    ("我来", "来我", math.nan),  # single characters are no substrings
    ("春天", "", math.nan),
    ("", "春天", math.nan),
    ("", "", math.nan),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(both, source, paraphrase, expected):
    assert both("spa", source, paraphrase) == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)


def test_the_front_of_the_source_weighs_most():
    # Two items of four move by 1/10: the first two count 4 + 3 times, the last two 2 + 1 times.
    front = positional_alignment([(0, 1), (2, 3), (5, 5), (8, 8)], 10, 10)
    back = positional_alignment([(0, 0), (2, 2), (5, 6), (8, 9)], 10, 10)
    assert front == pytest.approx(0.7 / 16)
    assert back == pytest.approx(0.3 / 16)
