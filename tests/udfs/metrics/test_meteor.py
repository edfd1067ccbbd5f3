"""The forest of synonyms; test_by_hand.py has METEOR's values."""

from gaixie.udfs.metrics.meteor import load_forest


def test_synonyms():
    forest = load_forest()
    assert any("快乐" in line for line in forest.synsets("高兴"))  # both on Ga01A01=
    assert not any("师徒" in line for line in forest.synsets("师生"))  # on Aa01C07#: related
    assert len(forest.synsets("人")) > 1
    assert forest.synsets("没有这个词") == []
