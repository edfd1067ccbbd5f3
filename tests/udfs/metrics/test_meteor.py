import pytest

from gaixie.udfs.metrics.meteor import METEOR, load_forest


@pytest.mark.parametrize(
    ("paraphrase", "reference", "expected"),
    [
        # 3 matches, 1 chunk: 1 · (1 − ½ · (1/3)³) = 53/54
        ("a b c", "a b c", 53 / 54),
        # 3 matches, 3 chunks: 1 · (1 − ½)
        ("a b c", "c b a", 0.5),
        # 2 matches of 2 and 4 words, P = 1, R = ½: Fmean = ½ / (0.9 + 0.05) = 10/19;
        # 2 chunks: half of it
        ("a c", "a b c d", 5 / 19),
        # 高兴 ~ 快乐: 2 matches, 1 chunk: 1 − ½ · (1/2)³ = 15/16
        ("我 高兴", "我 快乐", 15 / 16),
        # each word of the reference matches once: 1 match, P = ½, R = 1:
        # Fmean = ½ / (0.45 + 0.1) = 10/11; 1 chunk: half of it
        ("快乐 愉快", "高兴", 5 / 11),
        ("", "a", 0.0),
    ],
)
def test_by_hand(paraphrase, reference, expected):
    sides = paraphrase.split(), reference.split()
    assert METEOR()._scorer()(sides[1], sides[0]) == pytest.approx(expected)


def test_synonyms():
    forest = load_forest()
    assert any("快乐" in line for line in forest.synsets("高兴"))  # both on Ga01A01=
    assert not any("师徒" in line for line in forest.synsets("师生"))  # on Aa01C07#: related
    assert len(forest.synsets("人")) > 1
    assert forest.synsets("没有这个词") == []
