"""Counterparts that say something else, or are no Chinese, made by program from a good sentence.

    breaker = Breaker(sentences, random.Random(5))
    breaker.negation("他没有来。")      # "他已经来。", or None where there is nothing to turn

What a program breaks keeps nearly all words, so that only who reads sees it. Words are in
words.ini.
"""

import configparser
import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random

import rjieba

NAMES = frozenset(["nr", "ns", "nt", "nz", "nrt", "nrfg"])
"""Tags of names."""
DIGITS = "零一二三四五六七八九"
COUNTED = "个名年天次位人家只条张场月日岁块元辆间部篇首本杯件份种座倍成十百千万"
MARKS = "[，；。！？]"
Choice = tuple[float, int, str, str]
"""Weight, place, what stands there, what takes its place."""


@cache
def words(section: str) -> dict[str, list[str]]:
    """A section of words.ini: word -> what turns it."""
    parser = configparser.ConfigParser(allow_no_value=True, delimiters=("=",))
    parser.read(Path(__file__).with_name("words.ini"), "utf-8")
    found: dict[str, list[str]] = {}
    for word, others in parser[section].items():
        for other in (others or "").split():
            found.setdefault(word, []).append(other)
            if section == "antonyms":
                found.setdefault(other, []).append(word)
    return found


class Breaker:
    """Breaks sentences. sentences: where names and clauses of other texts come from."""

    def __init__(self, sentences: Sequence[str], random: Random):
        self.sentences, self.random = sentences, random
        self.names: dict[str, list[str]] = {}
        for text in random.sample(sentences, min(len(sentences), 4000)):
            for word, tag in rjieba.tag(text):
                if tag in NAMES and len(word) > 1:
                    self.names.setdefault(tag, []).append(word)

    def meaning(self, text: str) -> str | None:
        """Breaks the meaning in one of the ways below; None where none of four tries does."""
        ways = [self.negation, self.number, self.name, self.roles, self.scope]
        for _ in range(4):
            (way,) = self.random.choices(ways, [3, 1.5, 1, 3, 2])
            broken = way(text)
            if broken and broken != text:
                return broken
        return None

    def negation(self, text: str) -> str | None:
        """Turns a negation, an assertion or a word that has an antonym."""
        choices: list[Choice] = []
        for start, word, tag in _placed(text):
            for weight, section in ((3, "negations"), (1.5, "assertions"), (1.5, "antonyms")):
                single = 0.2 if section == "antonyms" and len(word) == 1 else 1
                others = words(section).get(word, ())
                choices += [(weight * single, start, word, other) for other in others]
            before = text[max(0, start - 1) : start]
            if tag == "v" and len(word) > 1 and before not in tuple("不没未无"):
                refused = self.random.choice(("没有", "不", "未", "并未", "拒绝"))
                choices.append((0.5, start, word, refused + word))
        return self._change(text, choices)

    def number(self, text: str) -> str | None:
        """Another digit, numeral, unit or day."""
        choices: list[Choice] = []
        for found in re.finditer(r"\d+(?:[.,]\d+)*", text):
            number = found.group()
            place = self.random.choice([k for k, digit in enumerate(number) if digit.isdigit()])
            digits = [digit for digit in "123456789" if digit != number[place]]
            other = number[:place] + self.random.choice(digits) + number[place + 1 :]
            choices.append((3, found.start(), number, other))
        for found in re.finditer(f"(?<![一两])[一二三四五六七八九两](?=[{COUNTED}])", text):
            others = [digit for digit in DIGITS[1:] if digit != found.group()]
            choices.append((1.5, found.start(), found.group(), self.random.choice(others)))
        for unit, others in words("units").items():
            for found in re.finditer(re.escape(unit), text):
                before = text[: found.start()]
                if unit[0] in "周星" or re.search(f"[\\d{DIGITS[1:]}十百千万几数两半]$", before):
                    choices.append((1, found.start(), unit, self.random.choice(others)))
        return self._change(text, choices)

    def name(self, text: str) -> str | None:
        """Another name of the same kind."""
        choices = [
            (1.0, start, word, self.random.choice(self.names[tag]))
            for start, word, tag in _placed(text)
            if tag in self.names and len(word) > 1
        ]
        return self._change(text, choices)

    def roles(self, text: str) -> str | None:
        """Exchanges two nouns or pronouns, but not two that are merely listed."""
        nouns = [
            (start, word, tag)
            for start, word, tag in _placed(text)
            if (tag[0] == "n" or tag == "r") and (len(word) > 1 or word in "我你他她它")
        ]
        pairs, weights = [], []
        for k, first in enumerate(nouns):
            for second in nouns[k + 1 :]:
                between = text[first[0] + len(first[1]) : second[0]]
                if first[1] == second[1] or re.fullmatch("[、和与及或跟]?|以及|或者", between):
                    continue
                if first[2] == second[2] or "r" in (first[2], second[2]):
                    pairs.append((first, second))
                    verb = re.search("[比被把给对向由让使]|告诉|击败|认为|指责|帮助|导致", between)
                    weights.append(3 if verb else 1)
        if not pairs:
            return None
        ((a, one, _), (b, other, _)) = self.random.choices(pairs, weights)[0]
        return text[:a] + other + text[a + len(one) : b] + one + text[b + len(other) :]

    def scope(self, text: str) -> str | None:
        """Leaves a clause out, puts a foreign one in, or turns a word of degree."""
        clauses = [clause for clause in re.split(f"(?<={MARKS})", text) if clause]
        drawn, place = self.random.random(), self.random.randrange(len(clauses))
        if drawn < 0.35 and len(clauses) > 1:
            rest = "".join(clauses[:place] + clauses[place + 1 :])
            return re.sub("[，；]$", "。", rest) if len(rest) > 6 else None
        if drawn < 0.6:
            other = re.split("(?<=[，；])", self.random.choice(self.sentences))
            short = [clause for clause in other if 4 <= len(clause) <= 20 and clause[-1] in "，；"]
            if short:
                return "".join([*clauses[:place], self.random.choice(short), *clauses[place:]])
        choices = [
            (1.0, found.start(), word, self.random.choice(others))
            for word, others in words("degrees").items()
            for found in re.finditer(re.escape(word), text)
        ]
        return self._change(text, choices)

    def salad(self, text: str) -> str | None:
        """What a badly trained model writes: words left out, doubled, moved, cut, put in; or the
        whole sentence, or its end, said twice."""
        if self.random.random() < 0.06:
            return text + text[self.random.choice((0, 0, len(text) // 2)) :]
        cut = rjieba.cut(text)
        for _ in range(self.random.choice((1, 1, 2, 2, 3, 4, 6))):
            k, drawn = self.random.randrange(len(cut)), self.random.random()
            if drawn < 0.25:
                cut[k] = ""
            elif drawn < 0.4:
                cut[k] *= 2
            elif drawn < 0.7:
                j = min(len(cut) - 1, k + self.random.choice((1, 1, 2, 3)))
                cut[k], cut[j] = cut[j], cut[k]
            elif drawn < 0.8:
                cut[k] += self.random.choice("的了是被在把着们地得有")
            elif drawn < 0.9 and len(cut[k]) > 1:
                cut[k] = cut[k][1:] if self.random.random() < 0.5 else cut[k][:-1]
            else:
                other = rjieba.cut(self.random.choice(self.sentences))
                cut[k] = self.random.choice(other or ["的"])
        broken = "".join(cut)
        return broken if broken != text else None

    def in_both(self, one: str, other: str) -> tuple[str, str] | None:
        """Two sentences that say the same, changed alike: they still do, whatever it looks like."""
        antonyms = words("antonyms").items()
        choices = [(word, self.random.choice(own)) for word, own in antonyms if len(word) > 1]
        for number in re.findall(r"\d+", one):
            choices.append((number, str(self.random.randrange(1, 10 ** len(number)))))
        for _, word, tag in _placed(one):
            if tag in self.names and len(word) > 1:
                choices.append((word, self.random.choice(self.names[tag])))
        once = [choice for choice in choices if one.count(choice[0]) == 1 == other.count(choice[0])]
        if not once:
            return None
        word, new = self.random.choice(once)
        return one.replace(word, new), other.replace(word, new)

    def _change(self, text: str, choices: Sequence[Choice]) -> str | None:
        choices = [choice for choice in choices if choice[2] != choice[3]]
        if not choices:
            return None
        ((_, start, old, new),) = self.random.choices(choices, [choice[0] for choice in choices])
        return text[:start] + new + text[start + len(old) :]


def _placed(text: str) -> list[tuple[int, str, str]]:
    """(place, word, tag) of each word."""
    tagged = rjieba.tag(text)
    starts = accumulate((len(word) for word, _ in tagged), initial=0)
    return [(start, word, tag) for start, (word, tag) in zip(starts, tagged, strict=False)]
