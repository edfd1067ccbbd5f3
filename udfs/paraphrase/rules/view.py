"""A text as words, clauses and sentences, and what every rule needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

Words = list[tuple[str, str]]
Edit = tuple[int, int, str]
Rule = Callable[[str, Words], Iterator[Edit]]
RULES: dict[str, Rule] = {}

OPEN, CLOSE = "“‘「『《〈（([【{", "”’」』》〉）)]】}"
NOUN = {"n", "nr", "ns", "nt", "nz", "nrt", "nrfg", "ng", "j", "vn", "an", "s", "eng", "nw"}
MODIFIER = NOUN | {"m", "q", "mq", "a", "b", "r", "uj", "zg"}
PERSONS = {
    "我",
    "你",
    "您",
    "他",
    "她",
    "它",
    "我们",
    "你们",
    "他们",
    "她们",
    "它们",
    "咱们",
    "大家",
    "人们",
}
THIRD = re.compile("[他她它]|其(?![实中他它余次])|[这那此该]|前者|后者|自己|对方|双方")
QUESTION = re.compile("[吗呢]|什么|怎么|怎样|如何|谁|哪|几|多少|是否|难道|为何")
NUMERAL = "[0-9０-９零〇一二三四五六七八九十百千万亿两]"
DAY = "(?:[早晚]上|上午|中午|下午|傍晚|凌晨|清晨|早晨|夜里|深夜)"
TIME = re.compile(
    f"(?:(?:今|昨|明|前|后)天{DAY}?|(?:今|昨|明)(?:早|晚)"
    "|[今去明前]年(?:[春夏秋冬]天|年初|年底|[0-9]+月|[上下]半年)?"
    f"|上个?(?:月|星期|周)|下个?(?:月|星期|周)|(?:本|上|下)?(?:周|星期)[一二三四五六日天]{DAY}?"
    "|(?:[12][0-9]{3}|[一二][〇零一二三四五六七八九]{3})年"
    "(?:[0-9]{1,2}月(?:[0-9]{1,2}[日号])?|初|底)?"
    "|[0-9]{1,2}月[0-9]{1,2}[日号]|目前|如今|"
    "现在|最近|近来|近日|日前|当时|此前|当天|后来|以前|从前|过去"
    "|那时|当年|现今|有时候?|平时|通常|不久前|近年来|"
    "小时候|当晚|次日|第二天|第二年|同年|多年来|这时|此时"
    f"|{NUMERAL}+(?:个月|年|天|周|个?小时|个?星期|分钟)(?:之后|以后|之前|以前|前|后|来))"
)
PREDICATE = {"d", "v", "p", "vd", "zg"}
PREDICATE_WORDS = {
    "可以",
    "正在",
    "一直",
    "已",
    "将",
    "刚",
    "曾",
    "正",
    "仍",
    "没",
    "没有",
    "在",
    "就是",
    "必须",
}


class Token(NamedTuple):
    """A word with its place and tag."""

    start: int
    end: int
    word: str
    tag: str


class Clause(NamedTuple):
    """A stretch between commas: offsets, its tokens, its sentence, its number in it."""

    start: int
    end: int
    first: int
    last: int
    sentence: int
    number: int


class View:
    """A text cut into tokens, clauses and sentences."""

    def __init__(self, text: str, words: Words) -> None:
        self.text, self.tokens, at = text, [], 0
        for word, tag in words:
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
        """The clauses of one sentence."""
        spans = [m.span() for m in re.finditer("[^，,：:]+", self.text[span[0] : span[1]])]
        for number, (a, b) in enumerate(spans):
            a, b = a + span[0], b + span[0]
            while a < b and self.text[a] in "”’」』）) 　":
                a += 1
            if a in self.starts and b in self.ends:
                yield Clause(a, b, self.starts[a], self.ends[b], sentence, number)

    def mark(self, sentence: int) -> str:
        """The mark that closes a sentence, or nothing."""
        end = self.sentences[sentence][1]
        return self.text[end : end + 1]

    def of(self, sentence: int) -> list[Clause]:
        """The clauses of a sentence."""
        return [c for c in self.clauses if c.sentence == sentence]

    def at(self, start: int, end: int) -> bool:
        """Whether both offsets are word boundaries."""
        return start in self.starts and end in self.ends

    def tag(self, k: int) -> str:
        """The tag of a token, empty beyond the end."""
        return self.tokens[k].tag if 0 <= k < len(self.tokens) else ""

    def word(self, k: int) -> str:
        """The word of a token, empty beyond the end."""
        return self.tokens[k].word if 0 <= k < len(self.tokens) else ""


@lru_cache(maxsize=64)
def _view(text: str, words: tuple[tuple[str, str], ...]) -> View:
    return View(text, list(words))


def view(text: str, words: Words) -> View:
    """The view of a text, kept for the next rule."""
    return _view(text, tuple(words))


def balanced(span: str) -> bool:
    """Whether quotes and brackets that open in a span close in it, and the other way round."""
    stack: list[str] = []
    for char in span:
        if char in OPEN:
            stack.append(char)
        elif char in CLOSE:
            if not stack or OPEN.index(stack.pop()) != CLOSE.index(char):
                return False
    return not stack and span.count('"') % 2 == 0


def sound(text: str, edit: Edit) -> bool:
    """Whether an edit changes something, crosses no bracket and leaves no doubled mark."""
    start, end, new = edit
    old = text[start:end]
    joined = text[max(0, start - 1) : start] + new + text[end : end + 1]
    doubled = bool(re.search("[，。；：]{2}|[，；：][！？]|(?<=[。！？；])，", joined))
    doubled |= not start and new.startswith("，")
    return old != new and "\n" not in old and balanced(old) and balanced(new) and not doubled


def rule(function: Rule) -> Rule:
    """Registers a rule under its function's name, what it gives being checked for soundness."""

    def checked(text: str, words: Words) -> Iterator[Edit]:
        seen: set[Edit] = set()
        for edit in function(text, words):
            if edit not in seen and sound(text, edit):
                seen.add(edit)
                yield edit

    checked.__name__, checked.__doc__ = function.__name__, function.__doc__
    RULES[function.__name__] = checked
    return checked


KIN = re.compile(
    "[妈爸爹娘哥姐弟妹爷奶叔姨姑舅]|父亲?|母亲?|[家国校]|公司|"
    "学校|朋友|丈夫|妻子|老[公婆板师爸妈]|外[公婆]|[儿女]儿?子?"
    "|孩子|自己|同[事学]|室友|[男女]友|猫|狗|国家|俩|邻居|家人|们"
)
MISTAGGED = re.compile(
    "[我你他她它笑人][会要能想说]|尝试|需要|麻烦|建议|总算|主张|结果|原本|无法|未能|不得不|明白"
    "|意识|问|差点|声称|感觉|觉得|过会儿|对不起|作势|老实|实话|这感觉"
)


def owned(v: View, k: int, j: int) -> bool:
    """Whether tokens k to j may be one noun phrase: no mistagged verb, only kin right after 我."""
    for i in range(k, j):
        if MISTAGGED.fullmatch(v.word(i)):
            return False
        if i > k and v.word(i - 1) in PERSONS and v.tag(i) in NOUN and not KIN.match(v.word(i)):
            return False
    return True


def garden(v: View, k: int) -> bool:
    """Whether the verb at token k may belong to a noun phrase that another predicate follows."""
    if v.tag(k) != "v" or len(v.word(k)) < 2 or v.word(k) in PREDICATE_WORDS:
        return False
    j = k + 1
    while v.tag(j) in NOUN:
        j += 1
    late = {
        "没有",
        "将",
        "会",
        "已",
        "已经",
        "被",
        "于",
        "在",
        "也",
        "都",
        "仍",
        "可以",
        "必须",
        "应",
    }
    return j > k + 1 and (v.word(j) in late or v.tag(j) == "d")


def subject(v: View, k: int) -> int | None:
    """The token after the noun phrase that starts at token k, if a predicate follows it."""
    j = k
    while j < len(v.tokens) and (v.tag(j) in MODIFIER) and v.word(j) not in PREDICATE_WORDS:
        if j > k and (
            v.word(j) in PERSONS or (v.word(j - 1) in PERSONS and v.tag(j) in {"m", "a"})
        ):
            break
        j += 1
    if j == k or v.tag(k) in {"uj", "q"} or QUESTION.search(v.word(k)):
        return None
    alone = j == k + 1 and v.word(k) in PERSONS
    if not owned(v, k, j) or (not alone and garden(v, j)):
        return None
    if not alone and (v.tag(j - 1) not in NOUN or v.tag(j - 1) == "vn"):
        return None
    if len(v.word(k)) == 1 and not alone and j == k + 1:
        return None
    if v.word(j) == "会" and v.word(j + 1) in {"正在", "将", "在", "已", "已经", "的", "和"}:
        return None
    return j if v.tag(j) in PREDICATE or v.word(j) in PREDICATE_WORDS else None


def predicate(v: View, k: int) -> bool:
    """Whether a predicate may begin at token k."""
    return v.tag(k) in PREDICATE or v.word(k) in PREDICATE_WORDS


def portable(moved: str, passed: str) -> bool:
    """Whether a clause may go in front of another: it points to nothing that stands there."""
    first = re.match("(我们|你们|他们|她们|它们|我|你|您|他|她|它)", passed)
    rest = re.sub(f"^{first.group()}(?!的)", "", moved) if first else moved
    return not THIRD.search(rest) and not re.match(
        "[也还又都就才仍却再更]|于是|结果|然后|甚至", moved
    )


def plain(clause: str) -> bool:
    """Whether a clause is a statement that begins without a connective."""
    return not QUESTION.search(clause) and not re.match(
        "但|可是|而|不过|然而|所以|因此|因为|由于|如果|虽然|尽管|"
        "即使|无论|不管|只要|只有|除非|当|为了|既然|并|且|或|还|也|又"
        "|于是|那么|就|不仅|不但|而且|甚至|据|是的|好|嗯|哦|对|请|别|不要",
        clause,
    )


def pairs(v: View) -> Iterator[tuple[Clause, Clause, str]]:
    """Sentences of exactly two clauses joined by a comma, with the closing mark."""
    for k, (a, b) in enumerate(v.sentences):
        clauses = v.of(k)
        if len(clauses) == 2 and re.fullmatch("[^，,：:]+，[^，,：:]+", v.text[a:b]):
            if clauses[0].start == a and clauses[1].end == b:
                yield clauses[0], clauses[1], v.mark(k)


def slice_of(v: View, clause: Clause) -> str:
    """The text of a clause."""
    return v.text[clause.start : clause.end]
