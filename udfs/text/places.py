"""Lists names of places for a tokenizer that has no tagger.

The gazetteer is a list of provinces, cities, countries and the like (places.ini), plus the words of
jieba's dictionary that are tagged ``ns`` and end in a kind of place: 洪山区, 额尔齐斯河. Its other ``ns``
words are left out because too many are ordinary words: 东西, 城市, 新鲜, 英雄.
"""

import configparser
from functools import cache
from pathlib import Path

from gaixie.udfs.text.segmenters.jieba_tables import dictionary

SUFFIXES = tuple("省市县区州镇乡村盟旗岛山河江湖海湾洋港峡")
LEAST = 3
"""Least characters of a name with a suffix: 海岛 and 山区 are not names."""


@cache
def gazetteer() -> frozenset[str]:
    """Returns all names, normalised, of two characters or more."""
    lists = configparser.ConfigParser()
    lists.read(Path(__file__).with_suffix(".ini"), encoding="utf-8")
    lines = (line for section in lists.values() for line in section.values())
    names = {name for line in lines for name in line.split()}
    places = (name for name, _, tag in dictionary() if tag == "ns" and len(name) >= LEAST)
    return frozenset(names | {name for name in places if name.endswith(SUFFIXES)})
