"""Finds entities of fixed form: book titles, dates, quotations, numbers with units and the like.

Source: Chinese Sentence Paraphrasing, section 5.2. Its Table 6 lists book titles, dates,
explanations in brackets and quotations; its text adds times, quantities, percentages, money,
telephone numbers, e-mail, URLs and Latin names. conf/entities.yaml holds the settings.

Texts are normalised (gaixie.udfs.text.normalise): full-width forms are ASCII. If several entities
match, the winner is

1. the one that begins first,
2. of those, the longest,
3. of those, the kind that comes first in the settings.

So an outer pair of brackets wins over its content, and ``2024年3月5日`` over ``2024年``. Brackets and
quotation marks count only if they close within the length in the settings, with no other mark of
their kind and no end of a sentence in between; an unbalanced mark is plain text.
"""

import re
from collections.abc import Sequence
from configparser import ConfigParser, ExtendedInterpolation
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import ConfigDict, Field

from gaixie.udfs.storage import settings

Kind = Literal[
    "url", "email", "title", "quote", "note", "phone", "date", "time", "percent", "money",
    "quantity", "latin", "number",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Every kind, in the order of conf/entities.yaml."""
Name = Annotated[str, Field(min_length=1)]
Length = Annotated[int, Field(ge=1, le=500)]


class Entity(NamedTuple):
    """An entity in a text."""

    kind: str
    start: int
    """Index of the first character in the text; end is the index after the last."""
    end: int


class EntitySettings(settings.Strict):
    """The settings of conf/entities.yaml. Raises ValidationError for unknown kinds or keys."""

    model_config = ConfigDict(frozen=True)

    kinds: tuple[Kind, ...] = KINDS
    short_dates: bool = False
    """Whether 3/15 and 3月15 are dates, too. Off by default: older tokenizers read as they did."""
    longest: dict[Kind, Length] = Field(default={"title": 40, "quote": 40, "note": 40})
    currencies: tuple[Name, ...] = ("元", "美元")
    units: tuple[tuple[Name, ...], ...] = (("个", "米", "公里", "小时"),)


def load_settings(path: str | Path) -> EntitySettings:
    """Loads the settings from a YAML file. Raises ValueError or OSError with one line naming it."""
    return settings.load_settings(EntitySettings, path)


class EntityFinder:
    """Finds the entities in texts under given settings."""

    def __init__(self, settings: EntitySettings):
        self.settings, sources = settings, patterns(settings)
        self._patterns = [(kind, re.compile(sources[kind])) for kind in settings.kinds]
        # Matches where the next entity of any kind begins.
        self._first = re.compile("|".join(f"(?:{sources[k]})" for k in settings.kinds) or "(?!)")

    def find(self, text: str) -> list[Entity]:
        """Returns the entities of a normalised text, in order and without overlaps."""
        entities, position = [], 0
        while match := self._first.search(text, position):
            start = match.start()
            # The longest of any kind; max keeps the first of equals.
            ends = [
                (other.end(), kind)
                for kind, pattern in self._patterns
                if (other := pattern.match(text, start))
            ]
            end, kind = max(ends, key=lambda candidate: candidate[0])
            entities.append(Entity(kind, start, end))
            position = end
        return entities


def patterns(settings: EntitySettings) -> dict[str, str]:
    """Builds the regular expression of each kind from entities.ini and the settings."""
    parser = ConfigParser(delimiters=("=",), interpolation=ExtendedInterpolation())
    parser.read(Path(__file__).with_suffix(".ini"), "utf-8")
    units = [unit for row in settings.units for unit in row]
    for name, words in (("units", units), ("currencies", settings.currencies)):
        parser["given"][name] = _one_of(words).replace("$", "$$")
    found = {kind: text.strip().replace("\n", "|") for kind, text in parser["kinds"].items()}
    short_date = found.pop("short_date")
    if settings.short_dates:
        found["date"] = f"{short_date}|{found['date']}"
    return found | {
        kind: "|".join(_between(pair[0], pair[1], settings.longest.get(kind, 40)) for pair in marks)
        for kind, marks in _MARKS.items()
    }


_MARKS: dict[Kind, tuple[str, ...]] = {
    "title": ("《》",),
    "quote": ("“”", "‘’", "「」", "『』", '""'),
    "note": ("()", "[]", "【】", "〔〕"),
}
"""Pairs of marks that enclose an entity."""


def _one_of(words: Sequence[str]) -> str:
    """Matches any of the words, longest first; one in Latin letters must end where they end."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    ends = [re.escape(word) + ("(?![A-Za-z])" if word.isascii() else "") for word in ordered]
    return f"(?:{'|'.join(ends)})" if ends else "(?!)"


def _between(opening: str, closing: str, longest: int) -> str:
    """Matches from an opening to its closing mark, with neither mark nor a sentence end between."""
    marks = re.escape(opening + closing)
    return rf"{re.escape(opening)}[^{marks}。!?\n]{{1,{longest}}}[。!?]?{re.escape(closing)}"
