"""Rules that are a regular expression and a few conditions, listed in patterns.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from gaixie.udfs.paraphrase.rules.tables import patterns
from gaixie.udfs.paraphrase.rules.view import (
    PERSONS,
    QUESTION,
    RULES,
    Clause,
    Edit,
    View,
    balanced,
    filled,
    follows,
    more_times,
    predicate,
    subject,
    subject_only,
)

Match = re.Match[str]


@dataclass(frozen=True)
class Pattern:
    """What to find, under which conditions, and its replacement. Numbers refer to groups."""

    find: str
    give: str = ""
    """The replacement; {1} is the text of group 1."""
    over: str = "text"
    """Where: text, clause, sentence, question (all of it), opening (of a clause), before_subject (a
    frame that opens a clause and moves behind its subject), after_subject (the other way)."""
    span: int = 0
    """The group that is replaced."""
    swap: dict[int, dict[str, str]] = field(default_factory=dict)
    """By group: what takes the place of its text in ``give``."""
    phrases: Sequence[int] = ()
    """Groups that are noun phrases."""
    words: Sequence[int] = ()
    """Groups that begin and end at word boundaries."""
    starts: Sequence[int] = ()
    exact: Sequence[int] = ()
    """Groups that are exactly one word."""
    balanced: Sequence[int] = ()
    tags: dict[int, str] = field(default_factory=dict)
    """By group: the expression that the tag of its first word matches."""
    last_tag: dict[int, str] = field(default_factory=dict)
    first_word: dict[int, str] = field(default_factory=dict)
    free: dict[int, str] = field(default_factory=dict)
    """By group: tags that none of its words has."""
    unless: dict[int, str] = field(default_factory=dict)
    """By group: what must not be found in it."""
    before: str = ""
    """What must not be found in the text before the match."""
    once: str = ""
    """What must be found once in the text."""
    left_tag: str = ""
    right_tag: str = ""
    alone: bool = False
    """Whether no later clause may share the subject."""
    states: bool = False
    """Whether the rest of the sentence must not ask."""
    predicate: bool = False
    """Whether a predicate must follow, behind a subject that is not a number."""
    first_clause: bool = False
    one_time: bool = False
    """Whether the sentence must name no other time."""
    one: bool = False
    """Whether the match must occur once in the text."""
    own: bool = True
    """Whether the frame may hold the pronoun that is the subject."""
    never: str = ""
    """Words that must not follow the subject."""

    def matches(self, v: View) -> Iterator[tuple[Match, Clause | None]]:
        """Yields matches, with their clause if the rule looks at clauses."""
        find, text = re.compile(self.find), v.text
        if self.over == "text":
            yield from ((m, None) for m in find.finditer(text))
        elif self.over == "after_subject":
            yield from ((m, c) for m in find.finditer(text) if (c := v.around(m.start())))
        elif self.over in ("sentence", "question"):
            for k, (start, end) in enumerate(v.sentences):
                if self.over == "sentence" or v.asks(k):
                    yield from ((m, None) for m in [find.fullmatch(text, start, end)] if m)
        else:
            for c in v.clauses:
                whole = self.over == "clause"
                m = find.fullmatch(text, c.start, c.end) if whole else find.match(text, c.start)
                if m:
                    yield m, c

    def holds(self, v: View, m: Match) -> bool:
        """Tells whether the words and tags of a match meet the conditions."""
        return (
            all(v.at(*m.span(k)) for k in self.words)
            and all(filled(v, *m.span(k)) for k in self.phrases)
            and all(m.start(k) in v.starts for k in self.starts)
            and all(v.word(v.starts.get(m.start(k), -1)) == m[k] for k in self.exact)
            and all(balanced(m[k]) for k in self.balanced)
            and not any(re.search(bad, m[k]) for k, bad in self.unless.items())
            and all(_is(tag, v.tag(v.starts.get(m.start(k), -1))) for k, tag in self.tags.items())
            and all(_is(tag, v.tag(v.ends[m.end(k)] - 1)) for k, tag in self.last_tag.items())
            and all(
                _is(word, v.word(v.starts.get(m.start(k), -1)))
                for k, word in self.first_word.items()
            )
            and all(_free(v, m.span(k), tag) for k, tag in self.free.items())
            and not (self.before and re.search(self.before, v.text[: m.start()]))
            and not (self.once and len(re.findall(self.once, v.text)) != 1)
            and not (self.left_tag and not _is(self.left_tag, v.left_tag(m.start())))
            and not (self.right_tag and not _is(self.right_tag, v.tag(v.ends[m.end()])))
        )

    def placed(self, v: View, m: Match, c: Clause) -> bool:
        """Tells whether a match is in the right place of its clause."""
        return not (
            (self.alone and follows(v, c))
            or (self.states and QUESTION.search(v.text[c.start : v.sentences[c.sentence][1]]))
            or (self.first_clause and c.number)
            or (self.one_time and more_times(v, c))
            or (self.one and v.text.count(m.group()) > 1)
            or (self.predicate and not self._leads(v, m, c))
        )

    @staticmethod
    def _leads(v: View, m: Match, c: Clause) -> bool:
        return predicate(v, v.starts.get(m.end(), len(v.tokens))) and v.tag(c.first) != "m"

    def new(self, m: Match) -> str:
        """Returns the replacement of a match."""
        groups = [m.group(), *(own or "" for own in m.groups())]
        for k, other in self.swap.items():
            groups[k] = other.get(groups[k], groups[k])
        return self.give.format(*groups)

    def edits(self, v: View) -> Iterator[Edit]:
        """Yields the edits of a text."""
        for m, c in self.matches(v):
            if not self.holds(v, m) or (c and not self.placed(v, m, c)):
                continue
            if c and self.over == "after_subject":
                if v.at(*m.span()) and subject_only(v, c.first, m.start()):
                    yield c.start, m.end(), self.new(m) + v.text[c.start : m.start()]
            elif c and self.over == "before_subject":
                yield from behind_subject(v, c, m, self.never, self.own)
            else:
                yield *m.span(self.span), self.new(m)


def behind_subject(v: View, c: Clause, m: Match, never: str, own: bool = True) -> Iterator[Edit]:
    """Moves a frame that opens a clause behind the next subject, and drops a comma in between."""
    at = m.end() + (v.text[m.end() : m.end() + 1] == "，")
    k = subject(v, v.starts.get(at, len(v.tokens)))
    if not k or m.end() > c.end + 1 or _is(never, v.word(k)):
        return
    if own or v.word(k - 1) not in PERSONS or v.word(k - 1) not in m.group():
        end = v.tokens[k].start
        yield c.start, end, v.text[at:end] + m.group()


def _is(expression: str, word: str) -> bool:
    return bool(re.fullmatch(expression, word))


def _free(v: View, span: tuple[int, int], tags: str) -> bool:
    inside = range(v.starts.get(span[0], 0), v.ends.get(span[1], 0))
    return bool(inside) and not any(_is(tags, v.tag(k)) for k in inside)


def _edits(rows: list[Pattern], v: View) -> Iterator[Edit]:
    for row in rows:
        yield from row.edits(v)


for _name, _rows in patterns().items():
    RULES[_name] = partial(_edits, [Pattern(**row) for row in _rows])
