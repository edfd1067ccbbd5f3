"""PMD by hand: |MD(A) − MD(B)| / shared clauses, MD = Σ distances of shared clauses / clauses."""

import math

import pytest

GOLDEN = [
    # A: 下雨了 0, 路很滑 4; MD = 4/2. B: 路很滑 0, 大家要小心 4, 下雨了 10; MD = 10/3.
    ("下雨了，路很滑", "路很滑，大家要小心，下雨了", (10 / 3 - 4 / 2) / 2),
    # A: 天黑了 0, 我们回家 4, 吃晚饭 9; MD = (4 + 9 + 5)/3. B: 我们回家 0, 天黑了 5, 吃晚饭 9;
    # MD = (5 + 9 + 4)/3. Clauses that all fill the same places leave the distances as they are.
    ("天黑了，我们回家，吃晚饭。", "我们回家，天黑了，吃晚饭。", 0.0),
    # A clause inserted where nothing moved. A: 下雨了 0, 路很滑 4; MD = 4/2. B: 下雨了 0, 大家小心 4,
    # 路很滑 9; MD = 9/3. And behind both: MD = 4/3.
    ("下雨了，路很滑", "下雨了，大家小心，路很滑", (9 / 3 - 4 / 2) / 2),
    ("下雨了，路很滑", "下雨了，路很滑，大家小心", (4 / 2 - 4 / 3) / 2),
    # The k-th 走吧 goes with the k-th. A: 走吧 0, 走吧 3, 天黑了 6. B: 天黑了 0, 真的 4, 走吧 7.
    # Shared: the first 走吧 (0 → 7) and 天黑了 (6 → 0). MD = 6/3 and 7/3.
    ("走吧，走吧，天黑了", "天黑了，真的，走吧", (7 / 3 - 6 / 3) / 2),
    # The point of 3.5 does not cut. A: 涨了3.5元 0, 很好 7; MD = 7/2. B: 很好 0, 涨了3.5元 3; 3/2.
    ("涨了3.5元，很好", "很好，涨了3.5元", (7 / 2 - 3 / 2) / 2),
    # Three shared. A: 春 0, 夏夏 2, 秋秋秋 5; MD = (2 + 5 + 3)/3.
    # B: 秋秋秋 0, 夏夏 4, 春 7; MD = (3 + 7 + 4)/3.
    ("春。夏夏。秋秋秋。", "秋秋秋。夏夏。春。", (14 / 3 - 10 / 3) / 3),
    ("下雨了，快走", "下雨了，别出门", 0.0),  # one shared clause: no distance
    ("下雨了， 路很滑。", "下雨了,路很滑!", 1 / 4),  # the space counts: MD = 5/2 and 4/2
    ("他很高兴。", "她十分快乐。", math.nan),
    ("。，！", "。，！", math.nan),  # no clause at all
    ("下雨了", "", math.nan),
    ("", "下雨了", math.nan),
    ("", "", math.nan),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(both, source, paraphrase, expected):
    assert both("pmd", source, paraphrase) == pytest.approx((expected,) * 2, rel=1e-6, nan_ok=True)
