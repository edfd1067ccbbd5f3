"""The gazetteer: names with and without a suffix, and no common words."""

from __future__ import annotations

import pytest

from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.places import gazetteer


@pytest.mark.parametrize(
    "name", ["北京", "湖北省", "武汉市", "洪山区", "额尔齐斯河", "俄罗斯", "巴黎", "长江", "洛杉矶"]
)
def test_places(name):
    assert name in gazetteer()


@pytest.mark.parametrize(
    "word",
    ["东西", "城市", "新鲜", "英雄", "太阳", "哥哥", "长大", "海岛", "山区", "外国", "自治区"],
)
def test_common_words_are_none(word):
    assert word not in gazetteer()


def test_names_are_normalised():
    assert all(normalise(name) == name and len(name) > 1 for name in gazetteer())
    assert 1_000 < len(gazetteer()) < 20_000
