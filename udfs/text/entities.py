"""Entities of fixed form: book titles, dates, quotations, numbers with units and the like.

Source: Chinese Sentence Paraphrasing, section 5.2 and Table 6 (book titles, dates, explanations in
brackets, quotations); times, quantities, percentages, money, telephone numbers, e-mail, URLs and
Latin names are what the same section's text asks for beside them. conf/entities.yaml has the
settings.

Texts are normalised (gaixie.udfs.text.normalise): full-width forms are ASCII. Of several wins:

1. the one that begins first,
2. of those, the longest,
3. of those, the kind that stands first in the settings.

So an outer pair of brackets wins over what is inside it, and ``2024年3月5日`` over ``2024年``. Brackets
and quotation marks count only where they close within the settings' length, without another of
their kind and without the end of a sentence in between: an unbalanced one is text.

Every repetition in a pattern is bounded: a text costs time in proportion to its length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pydantic import ConfigDict, Field, model_validator

from gaixie.udfs.storage import settings

KINDS = (
    *("url", "email", "title", "quote", "note", "phone", "date", "time", "percent", "money"),
    *("quantity", "latin", "number"),
)
"""Every kind, in the order of conf/entities.yaml."""


class Entity(NamedTuple):
    """An entity in a text."""

    kind: str
    start: int
    """Place of the first character in the text, and of the one behind the last."""
    end: int


class EntitySettings(settings.Strict):
    """The settings of conf/entities.yaml. Raises ValidationError (a ValueError) for unknown kinds or keys."""

    model_config = ConfigDict(frozen=True)

    kinds: tuple[str, ...] = KINDS
    short_dates: bool = False
    """Dates as 3/15 and 3月15, too. Off where nothing is said: tokenizers of before read as they did."""
    longest: dict[str, int] = Field(default={"title": 40, "quote": 40, "note": 40})
    currencies: tuple[str, ...] = ("元", "美元")
    units: tuple[tuple[str, ...], ...] = (("个", "米", "公里", "小时"),)

    @model_validator(mode="after")
    def _known(self) -> EntitySettings:
        unknown = [kind for kind in (*self.kinds, *self.longest) if kind not in KINDS]
        if unknown:
            raise ValueError(f"unknown kind {unknown[0]!r}, expected some of {', '.join(KINDS)}")
        if len(set(self.kinds)) < len(self.kinds):
            raise ValueError("a kind is named twice")
        for kind in ("title", "quote", "note"):
            if not 1 <= self.longest.get(kind, 40) <= 500:
                raise ValueError(f"longest.{kind} must lie between 1 and 500")
        if not all((*self.currencies, *(unit for row in self.units for unit in row))):
            raise ValueError("an empty unit or currency")
        return self


def load_settings(path: str | Path) -> EntitySettings:
    """The settings of a YAML file. Raises ValueError or OSError, in one line with the file's name."""
    return settings.load_settings(EntitySettings, path)


class EntityFinder:
    """Finds the entities of texts under given settings."""

    def __init__(self, settings: EntitySettings):
        self.settings = settings

    def find(self, text: str) -> list[Entity]:
        """The entities of a normalised text, in order, none overlapping another."""
        entities, position = [], 0
        search = self._first.search
        while match := search(text, position):
            start = match.start()
            # The longest of all kinds; max keeps the first of equals.
            ends = [
                (other.end(), kind)
                for kind, pattern in self._patterns
                if (other := pattern.match(text, start))
            ]
            end, kind = max(ends, key=lambda candidate: candidate[0])
            entities.append(Entity(kind, start, end))
            position = end
        return entities

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        sources = patterns(self.settings)
        return [(kind, re.compile(sources[kind])) for kind in self.settings.kinds]

    @cached_property
    def _first(self) -> re.Pattern[str]:
        """Where the next entity begins, whichever it is."""
        return re.compile(
            "|".join(f"(?:{pattern.pattern})" for _, pattern in self._patterns) or "(?!)"
        )


def patterns(settings: EntitySettings) -> dict[str, str]:
    """The regular expression of each kind."""
    inside = {kind: settings.longest.get(kind, 40) for kind in ("title", "quote", "note")}
    units = _one_of([unit for row in settings.units for unit in row])
    currencies = _one_of(settings.currencies)
    return {
        "url": URL,
        "email": EMAIL,
        "title": _between("《", "》", inside["title"]),
        "quote": "|".join(
            _between(a, b, inside["quote"]) for a, b in ("“”", "‘’", "「」", "『』", '""')
        ),
        "note": "|".join(_between(a, b, inside["note"]) for a, b in ("()", "[]", "【】", "〔〕")),
        "phone": PHONE,
        "date": f"{_short_dates(units, currencies)}|{DATE}" if settings.short_dates else DATE,
        "time": TIME,
        "percent": PERCENT,
        "money": rf"[¥$€£]\ ?{ARABIC}{SCALE}|(?:{ARABIC}|{CHINESE}){SCALE}[多余]?{currencies}",
        "quantity": rf"(?:{ARABIC}|{CHINESE}){SCALE}[多余]?{units}",
        "latin": LATIN,
        "number": rf"{ARABIC}{SCALE}",
    }


def _one_of(words: Sequence[str]) -> str:
    """Any of the words, the longest first; one in Latin letters only where the letters end."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    ends = [re.escape(word) + ("(?![A-Za-z])" if word.isascii() else "") for word in ordered]
    return f"(?:{'|'.join(ends)})" if ends else "(?!)"


def _short_dates(units: str, currencies: str) -> str:
    """Month and day without their characters, or with spaces (Table 6): 3/15, 3-15, 3.15日, 3 月 15 日, 3月15.

    3.15 is a number unless a day follows; 3/15 and 3-15 are none with a unit behind them: 3-15人.
    """
    no_unit = rf"(?![\d/-]|\.\d|:\d|[%‰]|[十百千万亿多余]|{units}|{currencies})"
    return "|".join(
        [
            rf"(?<![\d./:-]){_MONTH_NUMBER}(?P<short>[/-]){_DAY_NUMBER}{no_unit}",
            rf"(?<![\d./:-]){_MONTH_NUMBER}\.{_DAY_NUMBER}(?:[日号]|(?={_DAY_FOLLOWS}))",
            rf"(?:(?<!\d)\d{{2,4}} ?年 ?)?(?<!\d){_MONTH_NUMBER} ?月 ?{_DAY_NUMBER} ?[日号]",
            r"(?<!\d)\d{4} 年(?: \d{1,2} 月)?",
            rf"(?:(?<!\d)\d{{2,4}}年)?(?<!\d){_MONTH_NUMBER}月{_DAY_NUMBER}{no_unit}(?![日号])",
        ]
    )


def _between(opening: str, closing: str, longest: int) -> str:
    """From an opening to its closing mark, with neither of them nor a sentence's end between."""
    marks = re.escape(opening + closing)
    return rf"{re.escape(opening)}[^{marks}。!?\n]{{1,{longest}}}[。!?]?{re.escape(closing)}"


# Numbers. Not in the middle of another: behind no digit, and no digit behind them.
ARABIC = r"(?<![\d.])\d{1,20}(?:,\d{3}){0,6}(?:\.\d{1,10})?(?!\.?\d)"
# In Chinese numerals from two on: 一个 and 十分 are words like any other.
_NUMERAL = "[一二三四五六七八九十百千万亿两零〇]"
CHINESE = rf"(?<!{_NUMERAL}){_NUMERAL}{{2,12}}"
SCALE = r"[十百千万亿]{0,3}"
_DIGIT = "[零〇一二三四五六七八九]"
_TEN = "[一二三四五六七八九十]"

_YEAR = rf"(?:(?<!\d)\d{{2,4}}|{_DIGIT}{{2,4}})年"
_MONTH = rf"(?:(?<!\d)\d{{1,2}}|{_TEN}{{1,2}})月"
_DAY = rf"(?:(?<!\d)\d{{1,2}}|{_TEN}{{1,3}})[日号]"
DATE = "|".join(
    [
        rf"(?:公元前?)?{_YEAR}(?:{_MONTH}(?:{_DAY})?|代)?",
        rf"{_MONTH}(?:{_DAY}|份|底|初|中旬|上旬|下旬)",
        r"(?<!\d)\d{1,2}月",
        r"(?<!\d)\d{1,2}日",
        r"(?<![\d.-])\d{4}(?P<sep>[-/.])\d{1,2}(?P=sep)\d{1,2}(?![\d.-])",
        rf"(?:上个?|本|[12]\d|十[六七八九]|二十一?)世纪(?:(?:\d0|{_TEN}{{1,2}})年代)?",
        r"(?:星期|礼拜)[一二三四五六日天]",
    ]
)
_MONTH_NUMBER = "(?:1[0-2]|0?[1-9])"
_DAY_NUMBER = "(?:3[01]|[12][0-9]|0?[1-9])(?![0-9])"
_DAY_FOLLOWS = "当天|当日|当晚|凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|深夜|晚间"
_PART = "(?:凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|深夜|夜里|午夜)"
TIME = "|".join(
    [
        r"(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?![\d:])",
        rf"(?:{_PART}){{0,1}}(?<!\d)\d{{1,2}}[点时](?:半|整|一刻|三刻|\d{{1,2}}分?(?:\d{{1,2}}秒)?)?",
        rf"{_PART}{_TEN}{{1,3}}[点时](?:钟|半|整|一刻|三刻|{_TEN}{{1,3}}分)?",
        rf"{_TEN}{{1,3}}点(?:钟|半|整|一刻|三刻|{_TEN}{{1,3}}分)",
    ]
)
PERCENT = rf"{ARABIC}[%‰](?:至\d{{1,3}}%)?|百分之[一二三四五六七八九十百零点]{{1,8}}|百分之{ARABIC}"
PHONE = "|".join(
    [
        r"(?<![\d+])1[3-9]\d(?:[ -]?\d{4}){2}(?!\d)",
        r"(?<![\d+])0\d{2,3}[ -]?\d{7,8}(?!\d)",
        r"(?<![\d+])[48]00-?\d{3}-?\d{4}(?!\d)",
        r"\+\d{1,3}(?:[ -]?\d{2,5}){2,4}(?!\d)",
    ]
)
EMAIL = r"(?<![A-Za-z0-9_.+-])[A-Za-z0-9][A-Za-z0-9._+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![A-Za-z0-9])"
URL = (
    r"(?<![A-Za-z0-9])(?:https?://|www\.)(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?::\d{1,5})?"
    r"(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{0,500}(?<![.,;:!?'()\[\]]))?"
)
_CODE = "[A-Za-z0-9]{1,40}"
LATIN = (
    rf"(?<![A-Za-z0-9])(?=[0-9]{{0,20}}[A-Za-z]){_CODE}"
    rf"(?:[-_.&'/+·]{_CODE}| [A-Za-z][A-Za-z0-9]{{0,39}}| \d{{1,4}}(?![\d:.,%/-])){{0,7}}"
    r"(?:\+\+|#)?(?![A-Za-z0-9])"
)
