"""Connectives, and the order of clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from gaixie.udfs.paraphrase.rules.view import (
    MODIFIER,
    NOUN,
    PERSONS,
    PREDICATE_WORDS,
    QUESTION,
    Clause,
    Edit,
    View,
    Words,
    owned,
    pairs,
    plain,
    portable,
    rule,
    subject,
    view,
)


# 33 of 34 right
@rule
def although_before(text: str, words: Words) -> Iterator[Edit]:
    """他很累，但没有休息 → 虽然他很累，但没有休息"""
    for a, b, mark in pairs(view(text, words)):
        first, second = text[a.start : a.end], text[b.start : b.end]
        if mark in "。；" and re.match("但是?|可是", second) and plain(first) and plain_end(second):
            if (
                len(first) >= 5
                and first[0] not in "（(“"
                and "虽" not in first
                and "不是" not in first
            ):
                yield a.start, a.start, "虽然"
                yield a.start, a.start, "尽管"


def plain_end(clause: str) -> bool:
    """Whether a clause asks nothing."""
    return not QUESTION.search(clause)


# 32 of 33 right
@rule
def although_gone(text: str, words: Words) -> Iterator[Edit]:
    """虽然他很累，但没有休息 → 他很累，但没有休息"""
    for m in re.finditer("(?:虽然|尽管)([^，。！？；：]{3,})，(?=但|可是|不过)", text):
        if m.start() == 0 or text[m.start() - 1] in "。！？；“":
            yield m.start(), m.start(1), ""


# 29 of 34 right
@rule
def but_to_que(text: str, words: Words) -> Iterator[Edit]:
    """，但他没有来 → ，他却没有来"""
    v = view(text, words)
    for m in re.finditer("(?:^|(?<=[，。！？；\n]))(?:但是?|可是|然而|不过)，?(?=[^，])", text):
        if m.end() not in v.starts or m.start() not in v.starts:
            continue
        k = subject(v, v.starts[m.end()])
        clause = re.split("[，。！？；：\n]", text[m.end() :])[0]
        around = "当|如果|虽|尽管|即使" if m.group()[-1] == "，" else "虽|尽管"
        mine = v.word(k - 1) in {"我", "我们"} and v.word(k)[:1] not in "不没无从" if k else True
        if k and not mine and que_fits(v, k) and not re.search("却|吗|呢|吧", clause):
            if not re.search(around, "".join(re.split("[。！？；\n]", text[: m.start()])[-1:])):
                at = v.tokens[k].start
                yield m.start(), at, text[m.end() : at] + "却"


def que_fits(v: View, k: int) -> bool:
    """Whether 却 may stand before token k."""
    bad = (
        "也|还|却|还是|仍|仍然|依然|都|则|又|就|只|只有|毕竟|说|表示"
        "|想|认为|觉得|希望|知道|愿意|可以|应该|担心|一定|肯定|相信|建议"
        "|喜欢|猜|怀疑|需要|会|想要|请|必须|认识|打算|宁愿|爱|真的"
        "|可能|确实|其实|绝对|主要|通常|大多|之所以|作为|对于|指|同时"
    )
    words = {v.word(k), v.word(k + 1)} if v.tag(k) == "d" else {v.word(k)}
    return not words & set(bad.split("|")) and v.tag(k) != "t"


# 34 of 35 right
@rule
def que_to_but(text: str, words: Words) -> Iterator[Edit]:
    """，他却没有来 → ，但他没有来"""
    v = view(text, words)
    for c in v.clauses:
        k = subject(v, c.first)
        before = text[v.sentences[c.sentence][0] : c.start]
        if re.search("当|但|说|认为|知道", before):
            continue
        if c.number and k and v.word(k) == "却" and text[c.start - 1] == "，":
            yield c.start, v.tokens[k].end, "但" + text[c.start : v.tokens[k].start]


# 33 of 35 right
@rule
def because_reason(text: str, words: Words) -> Iterator[Edit]:
    """他没来，因为病了 → 他没来，原因是病了"""
    for m in re.finditer("，因为(?=[^，。！？；]{4,}[。；])", text):
        before = re.split("[。！？；\n]", text[: m.start()])[-1]
        if plain(before) and len(before) >= 5 and "所以" not in text[m.end() : m.end() + 40]:
            yield m.start() + 1, m.end(), "原因是"
            yield m.start() + 1, m.end(), "这是因为"


# 30 of 31 right
@rule
def because_first(text: str, words: Words) -> Iterator[Edit]:
    """小王没来，因为他病了 → 因为…；我没来，因为下雨了 → 因为下雨了，所以我没来"""
    v = view(text, words)
    for a, b, mark in pairs(v):
        first, second = text[a.start : a.end], text[b.start : b.end]
        if mark in "。；" and second.startswith("因为") and plain(first) and subject(v, a.first):
            if portable(first, second[2:]) and portable(second[2:], first):
                yield a.start, b.end, f"{second}，所以{first}"
                yield a.start, b.end, f"由于{second[2:]}，{first}"


# 37 of 41 right
@rule
def the_reason_why(text: str, words: Words) -> Iterator[Edit]:
    """我没来，因为下雨了 → 我之所以没来，是因为下雨了"""
    v = view(text, words)
    for a, b in pairwise(v.clauses):
        k, mark = subject(v, a.first), v.mark(b.sentence)
        first = text[a.start : a.end]
        if (
            a.sentence != b.sentence
            or text[a.end : b.start] != "，"
            or b.end != v.sentences[b.sentence][1]
        ):
            continue
        modal = k and re.match(
            (
                "应该|必须|只?想|将|说|认为|觉得|知道|希望|可以"
                "|需要|要|得|地|都|只|表示|是|也|还|就|才|甚至"
            ),
            v.word(k),
        )
        if not k or modal or mark not in "。；" or re.search("不要|应该|必须|需要", first):
            continue
        if text[b.start : b.start + 2] == "因为" and plain(first):
            at = v.tokens[k].start
            yield at, b.start, "之所以" + text[at : b.start] + "是"


# 35 of 36 right
@rule
def so_because(text: str, words: Words) -> Iterator[Edit]:
    """下雨了，所以我没去 → 因为下雨了，所以我没去"""
    for a, b, mark in pairs(view(text, words)):
        first, second = text[a.start : a.end], text[b.start : b.end]
        speech = re.search("因为|而|由于|请|不要|别|希望|感谢|谢谢", first + second)
        if mark in "。；" and plain(first) and len(first) >= 4 and not speech:
            m = re.match("所以|因此", second)
            if m:
                yield a.start, b.start + 2, f"由于{first}，"
            if m and m.group() == "所以":
                yield a.start, a.start, "因为"


# 19 of 21 right
@rule
def because_so(text: str, words: Words) -> Iterator[Edit]:
    """因为下雨了，所以我没去 → 我之所以没去，是因为下雨了 / 我没去，因为下雨了"""
    v = view(text, words)
    for a, b, mark in pairs(v):
        first, second = text[a.start : a.end], text[b.start : b.end]
        if (
            mark not in "。；"
            or not re.match("因为|由于", first)
            or not plain_end(first + second)
            or len(first) < 7
        ):
            continue
        lead = 2 if second.startswith(("所以", "因此")) else 0
        rest = second[lead:]
        k = b.start + lead in v.starts and subject(v, v.starts[b.start + lead])
        if k and portable(rest, first[2:]):
            at = v.tokens[k].start
            if v.word(k) not in {"就", "才", "也", "便", "都", "还", "又", "是", "将", "开始"}:
                head, tail = text[b.start + lead : at], text[at : b.end]
                yield a.start, b.end, f"{head}之所以{tail}，是因为{first[2:]}"
                yield a.start, b.end, f"{rest}，原因是{first[2:]}"


# 32 of 34 right
@rule
def if_de_hua(text: str, words: Words) -> Iterator[Edit]:
    """如果下雨，就不去 → 如果下雨的话，就不去 / 下雨的话，就不去"""
    for m in re.finditer("(如果|要是|假如)([^，。！？；：的呢]{2,14})，", text):
        if m.start() and text[m.start() - 1] not in "，。！？；：“但":
            continue
        if re.search("因为|当|虽然", m[2]) or not main_clause(view(text, words), m.end()):
            continue
        yield m.end() - 1, m.end() - 1, "的话"
        yield m.start(), m.end(), f"{m[2]}的话，"


def main_clause(v: View, start: int) -> bool:
    """Whether what begins at an offset is a main clause, not more of the condition."""
    if start not in v.starts:
        return False
    k = v.starts[start]
    if re.match("就|那|请|会|便|可|则|将|必须|应|也|要|我会|你会", v.word(k)):
        return True
    return bool(subject(v, k)) and v.text[start] not in "而且并但或"


# 29 of 29 right
@rule
def if_drop_de_hua(text: str, words: Words) -> Iterator[Edit]:
    """如果下雨的话，就不去 → 如果下雨，就不去"""
    for m in re.finditer("(?:如果|要是|假如)[^，。！？；：]{2,20}(的话)，", text):
        yield m.start(1), m.end(1), ""


CONNECTIVE = "如果|要是|虽然|尽管|即使|就算|既然|只要"


# 40 of 43 right
@rule
def connective_before_subject(text: str, words: Words) -> Iterator[Edit]:
    """他虽然累，但没有休息 → 虽然他累，但没有休息"""
    v = view(text, words)
    for m in re.finditer(CONNECTIVE, text):
        c = next((c for c in v.clauses if c.start < m.start() < c.end), None)
        if not c or not v.at(m.start(), m.end()) or not subject_only(v, c.first, m.start()):
            continue
        if (
            v.tag(c.first) != "eng"
            and text[m.end()] not in "了能"
            and text[c.end : c.end + 1] == "，"
        ):
            yield c.start, m.end(), m.group() + text[c.start : m.start()]


def subject_only(v: View, k: int, end: int) -> bool:
    """Whether a noun phrase, and nothing else, fills tokens k to the offset end."""
    j = v.ends.get(end, 0)
    tags = [v.tag(i) for i in range(k, j)]
    if j == k + 1 and v.word(k) in PERSONS:
        return True
    if (
        not tags
        or (tags in (["vn"], ["n"]) and len(v.word(k)) == 1)
        or tags == ["vn"]
        or QUESTION.search(v.text[v.tokens[k].start : end])
    ):
        return False
    inner = any(v.word(i) in PERSONS for i in range(k + 1, j)) or not owned(v, k, j)
    return all(t in MODIFIER for t in tags) and tags[-1] in NOUN and not inner and len(tags) < 8


# 26 of 28 right
@rule
def connective_after_subject(text: str, words: Words) -> Iterator[Edit]:
    """如果你喜欢，可以拿走 → 你如果喜欢，可以拿走"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile(CONNECTIVE).match(text, c.start)
        if not m or not v.at(m.start(), m.end()) or text[c.end : c.end + 1] != "，":
            continue
        k = subject(v, v.starts.get(m.end(), len(v.tokens)))
        after = next((d for d in v.clauses if d.start == c.end + 1), None)
        if not k or not after or c.number or v.tag(v.starts[m.end()]) in {"a", "m", "d", "ad"}:
            continue
        own = text[m.end() : v.tokens[k].start]
        if not follows_subject(v, after, own) and not text.startswith(own, after.start):
            at = v.tokens[k].start
            yield c.start, at, text[m.end() : at] + m.group()


def follows_subject(v: View, clause: Clause, own: str) -> bool:
    """Whether a clause has (or may have) a subject other than `own`."""
    k = clause.first
    while v.word(k) in {"但", "但是", "那么", "所以", "不过", "可是", "可", "那", "却"}:
        k += 1
    if v.text.startswith(own, v.tokens[k].start) if k < clause.last else False:
        return False
    return (
        not (v.tag(k) in {"d", "v", "vd"} or v.word(k) in PREDICATE_WORDS)
        or v.word(k)
        in {
            "有",
            "让",
            "使",
            "没有",
            "发生",
        }
        or (v.word(k) == "会" and v.word(k + 1) == "发生")
    )
