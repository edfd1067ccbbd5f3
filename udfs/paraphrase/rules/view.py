"""Cuts a text into words, clauses and sentences, with helpers for the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gaixie.udfs.paraphrase.rules.tables import expression, words

Words = list[tuple[str, str]]
Edit = tuple[int, int, str]
Rule = Callable[["View"], Iterator[Edit]]
RULES: dict[str, Rule] = {}

OPEN, CLOSE = "“‘「『《〈（([【{", "”’」』》〉）)]】}"
NOUN = words("noun")
MODIFIER = NOUN | {"m", "q", "mq", "a", "b", "r", "uj", "zg"}
PERSONS = words("person")
THIRD = re.compile(expression("third"))
QUESTION = re.compile(expression("question"))
NUMERAL = expression("numeral")
TIME = re.compile(expression("time"))
PREDICATE = {"d", "v", "p", "vd", "zg"}
PREDICATE_WORDS = words("predicate")
NEVER_LAST = words("never_last")
_KIN, _MISTAGGED = re.compile(expression("kin")), re.compile(expression("mistagged"))
_OPENER = re.compile(expression("opener"))
_LATE = words("late_predicate")


class Token(NamedTuple):
    """A word with its place and tag."""

    start: int
    end: int
    word: str
    tag: str


class Clause(NamedTuple):
    """A stretch between commas: its offsets, tokens, sentence, and number in the sentence."""

    start: int
    end: int
    first: int
    last: int
    sentence: int
    number: int


class View:
    """A text cut into tokens, clauses and sentences."""

    def __init__(self, text: str, tagged: Words) -> None:
        self.text, self.tokens, at = text, [], 0
        for word, tag in tagged:
            at = text.find(word, at)
            if at < 0:
                break
            self.tokens.append(Token(at, at + len(word), word, tag))
            at += len(word)
        self.starts = {token.start: k for k, token in enumerate(self.tokens)}
        self.ends = {token.end: k + 1 for k, token in enumerate(self.tokens)}
        self.sentences = [m.span() for m in re.finditer("[^。！？!?；;\n…]+", text)]
        self.clauses = [c for k, span in enumerate(self.sentences) for c in self._split(k, span)]

    def _split(self, sentence: int, span: tuple[int, int]) -> Iterator[Clause]:
        """Yields the clauses of one sentence."""
        spans = [m.span() for m in re.finditer("[^，,：:]+", self.text[span[0] : span[1]])]
        for number, (a, b) in enumerate(spans):
            a, b = a + span[0], b + span[0]
            while a < b and self.text[a] in "”’」』）) 　":
                a += 1
            if a in self.starts and b in self.ends:
                yield Clause(a, b, self.starts[a], self.ends[b], sentence, number)

    def mark(self, sentence: int) -> str:
        """Returns the mark that closes a sentence, or an empty string."""
        end = self.sentences[sentence][1]
        return self.text[end : end + 1]

    def asks(self, sentence: int) -> bool:
        """Whether a sentence ends with a question mark."""
        return self.mark(sentence) in {"？", "?"}

    def of(self, sentence: int) -> list[Clause]:
        """The clauses of a sentence."""
        return [c for c in self.clauses if c.sentence == sentence]

    def around(self, offset: int) -> Clause | None:
        """Returns the clause that contains an offset, unless the offset is its start."""
        return next((c for c in self.clauses if c.start < offset < c.end), None)

    def span(self, clause: Clause) -> str:
        """The text of a clause."""
        return self.text[clause.start : clause.end]

    def before(self, offset: int) -> str:
        """Returns a sentence's text before an offset; semicolons and line ends end one too."""
        return re.split("[。！？；\n]", self.text[:offset])[-1]

    def commas(self) -> Iterator[tuple[Clause, Clause]]:
        """Yields neighbouring clauses of a sentence that a full-width comma separates."""
        for a, b in zip(self.clauses, self.clauses[1:], strict=False):
            if a.sentence == b.sentence and self.text[a.end : b.start] == "，":
                yield a, b

    def at(self, start: int, end: int) -> bool:
        """Whether both offsets are word boundaries."""
        return start in self.starts and end in self.ends

    def tag(self, k: int) -> str:
        """The tag of a token, empty beyond the end."""
        return self.tokens[k].tag if 0 <= k < len(self.tokens) else ""

    def word(self, k: int) -> str:
        """The word of a token, empty beyond the end."""
        return self.tokens[k].word if 0 <= k < len(self.tokens) else ""

    def left_tag(self, start: int) -> str:
        """The tag of the word before an offset."""
        return self.tag(self.starts.get(start, 1) - 1)

    def subject_at(self, offset: int) -> int:
        """Returns the token after the noun phrase at an offset, 0 if there is none."""
        return subject(self, self.starts.get(offset, len(self.tokens))) or 0


def balanced(span: str) -> bool:
    """Tells whether quotes and brackets that open in a span also close in it, and vice versa."""
    stack: list[str] = []
    for char in span:
        if char in OPEN:
            stack.append(char)
        elif char in CLOSE:
            if not stack or OPEN.index(stack.pop()) != CLOSE.index(char):
                return False
    return not stack and span.count('"') % 2 == 0


def sound(text: str, edit: Edit) -> bool:
    """Tells whether an edit changes something, crosses no bracket and leaves no doubled mark."""
    start, end, new = edit
    old = text[start:end]
    joined = text[max(0, start - 1) : start] + new + text[end : end + 1]
    doubled = bool(re.search("[，。；：]{2}|[，；：][！？]|(?<=[。！？；])，", joined))
    doubled |= not start and new.startswith("，")
    return old != new and "\n" not in old and balanced(old) and balanced(new) and not doubled


def rule(function: Rule) -> Rule:
    """Registers a rule under its function's name."""
    RULES[function.__name__] = function
    return function


def owned(v: View, k: int, j: int) -> bool:
    """Whether tokens k to j may be one noun phrase: no mistagged verb, only kin right after 我."""
    for i in range(k, j):
        if _MISTAGGED.fullmatch(v.word(i)):
            return False
        if i > k and v.word(i - 1) in PERSONS and v.tag(i) in NOUN and not _KIN.match(v.word(i)):
            return False
    return True


def garden(v: View, k: int) -> bool:
    """Whether the verb at token k may belong to a noun phrase that another predicate follows."""
    if v.tag(k) != "v" or len(v.word(k)) < 2 or v.word(k) in PREDICATE_WORDS:
        return False
    j = k + 1
    while v.tag(j) in NOUN:
        j += 1
    return j > k + 1 and (v.word(j) in _LATE or v.tag(j) == "d")


def subject(v: View, k: int) -> int | None:
    """The token after the noun phrase that starts at token k, if a predicate follows it."""
    j = k
    while j < len(v.tokens) and v.tag(j) in MODIFIER and v.word(j) not in PREDICATE_WORDS:
        apposed = v.word(j - 1) in PERSONS and v.tag(j) in {"m", "a"}
        if j > k and (v.word(j) in PERSONS or apposed):
            break
        j += 1
    if j == k or v.tag(k) in {"uj", "q"} or QUESTION.search(v.word(k)) or not owned(v, k, j):
        return None
    if j > k + 1 or v.word(k) not in PERSONS:
        short = len(v.word(k)) == 1 and j == k + 1
        if short or garden(v, j) or v.tag(j - 1) not in NOUN - {"vn"}:
            return None
    if v.word(j) == "会" and v.word(j + 1) in {"正在", "将", "在", "已", "已经", "的", "和"}:
        return None
    return j if predicate(v, j) else None


def subject_only(v: View, k: int, end: int) -> bool:
    """Tells whether a noun phrase alone fills the span from token k to the offset end."""
    j = v.ends.get(end, 0)
    tags = [v.tag(i) for i in range(k, j)]
    if j == k + 1 and v.word(k) in PERSONS:
        return True
    short = tags == ["n"] and len(v.word(k)) == 1
    if not tags or short or tags == ["vn"] or QUESTION.search(v.text[v.tokens[k].start : end]):
        return False
    inner = any(v.word(i) in PERSONS for i in range(k + 1, j)) or not owned(v, k, j)
    return set(tags) <= MODIFIER and tags[-1] in NOUN and not inner and len(tags) < 8


def filled(v: View, start: int, end: int) -> bool:
    """Tells whether a noun phrase alone fills the span between two offsets."""
    return v.at(start, end) and subject_only(v, v.starts[start], end)


def predicate(v: View, k: int) -> bool:
    """Whether a predicate may begin at token k."""
    return v.tag(k) in PREDICATE or v.word(k) in PREDICATE_WORDS


def follows(v: View, clause: Clause) -> bool:
    """Whether a later clause of the sentence may share the subject of this one."""
    after = [c for c in v.of(clause.sentence) if c.start > clause.start]
    return bool(after) and not (subject(v, after[0].first) and v.word(after[0].first) in PERSONS)


def more_times(v: View, clause: Clause) -> bool:
    """Whether the sentence names more than one time."""
    return len(TIME.findall(v.text, *v.sentences[clause.sentence])) > 1


def portable(moved: str, passed: str) -> bool:
    """Tells whether a clause may move before another: it must refer to nothing in the latter."""
    first = re.match("(我们|你们|他们|她们|它们|我|你|您|他|她|它)", passed)
    rest = re.sub(f"^{first.group()}(?!的)", "", moved) if first else moved
    return not THIRD.search(rest) and not re.match(
        "[也还又都就才仍却再更]|于是|结果|然后|甚至", moved
    )


def plain(clause: str) -> bool:
    """Whether a clause is a statement that begins without a connective."""
    return not QUESTION.search(clause) and not _OPENER.match(clause)


def pairs(v: View) -> Iterator[tuple[Clause, Clause, str, str]]:
    """Yields statements of exactly two clauses joined by a comma: the clauses and their texts."""
    for k, (start, end) in enumerate(v.sentences):
        clauses, mark = v.of(k), v.mark(k)
        if len(clauses) == 2 and re.fullmatch("[^，,：:]+，[^，,：:]+", v.text[start:end]):
            a, b = clauses
            if a.start == start and b.end == end and mark in {"", "。", "；"}:
                yield a, b, v.span(a), v.span(b)
