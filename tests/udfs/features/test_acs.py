"""ACS by hand: characters equal at the same place / characters of the longer side."""

import math

import pytest

GOLDEN = [
    ("今天天气很好", "今天天气不错", 4 / 6),  # 今 天 天 气 stand still, 很 好 do not
    ("他来了", "他昨天来了", 1 / 5),  # only 他; 来 1 against 昨 1, 了 2 against 天 2
    ("我喜欢读书", "也我喜欢读书", 0.0),  # one character in front moves all of them
    ("我喜欢读书", "我喜欢读书吗", 5 / 6),
    ("他说他说", "说他说他", 0.0),
    ("春天来了", "春天来了", 1.0),
    ("春天", "", 0.0),
    ("", "春天", 0.0),
    ("", "", math.nan),
    # After normalisation: fullwidth letters, an ideographic space, a fullwidth comma.
    ("ＡＢＣ\u3000好，", "ABC 好,", 1.0),
    ("𠮷野家", "吉野家", 2 / 3),  # 𠮷 is one code point beyond the basic plane
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(both, source, paraphrase, expected):
    assert both("acs", source, paraphrase) == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_symmetric(both, source, paraphrase, expected):
    assert both("acs", paraphrase, source) == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)
