"""The gazetteer must have names with and without a suffix, and no common words."""

from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.places import gazetteer


def test_places():
    names = ["北京", "湖北省", "武汉市", "洪山区", "额尔齐斯河", "俄罗斯", "巴黎", "长江"]
    assert gazetteer().issuperset(names)


def test_common_words_are_none():
    words = ["东西", "城市", "新鲜", "英雄", "太阳", "哥哥", "长大", "海岛", "山区", "外国"]
    assert gazetteer().isdisjoint(words)
    assert all(normalise(name) == name and len(name) > 1 for name in gazetteer())
