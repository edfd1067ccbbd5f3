"""Rules that change connectives, and reorder, split and join clauses.

The comment above a rule says how often it was right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.tables import expression, words
from gaixie.udfs.paraphrase.rules.view import (
    NEVER_LAST,
    PERSONS,
    PREDICATE_WORDS,
    QUESTION,
    THIRD,
    Clause,
    Edit,
    View,
    balanced,
    pairs,
    plain,
    portable,
    predicate,
    rule,
    subject,
    subject_only,
)

CONNECTIVE, CONTRAST = expression("connective"), expression("contrast")
SUBORDINATE, SAID = re.compile(expression("subordinate")), expression("said_before")
MODAL, MAIN_CLAUSE = expression("modal"), expression("main_clause")
QUE_NEVER, OTHERS = words("que_never"), words("before_other_subject")


# 33 of 34 right
@rule
def although_before(v: View) -> Iterator[Edit]:
    """他很累，但没有休息 → 虽然他很累，但没有休息"""
    for a, _, first, second in pairs(v):
        if not re.match("但是?|可是", second) or QUESTION.search(second) or not plain(first):
            continue
        if len(first) >= 5 and not re.search("^[（(“]|虽|不是", first):
            yield a.start, a.start, "虽然"
            yield a.start, a.start, "尽管"


# 29 of 34 right
@rule
def but_to_que(v: View) -> Iterator[Edit]:
    """，但他没有来 → ，他却没有来"""
    for m in re.finditer("(?:^|(?<=[，。！？；\n]))(?:但是?|可是|然而|不过)，?(?=[^，])", v.text):
        k = m.start() in v.starts and v.subject_at(m.end())
        clause = re.split("[，。！？；：\n]", v.text[m.end() :])[0]
        around = "当|如果|虽|尽管|即使" if m.group()[-1] == "，" else "虽|尽管"
        if not k or re.search("却|吗|呢|吧", clause) or re.search(around, v.before(m.start())):
            continue
        mine = v.word(k - 1) in {"我", "我们"} and v.word(k)[:1] not in "不没无从"
        if not mine and _que_fits(v, k):
            at = v.tokens[k].start
            yield m.start(), at, v.text[m.end() : at] + "却"


def _que_fits(v: View, k: int) -> bool:
    """Tells whether 却 fits before token k."""
    following = {v.word(k), v.word(k + 1)} if v.tag(k) == "d" else {v.word(k)}
    return not following & QUE_NEVER and v.tag(k) != "t"


# 34 of 35 right
@rule
def que_to_but(v: View) -> Iterator[Edit]:
    """，他却没有来 → ，但他没有来"""
    for c in v.clauses:
        k = subject(v, c.first)
        before = v.text[v.sentences[c.sentence][0] : c.start]
        if not c.number or not k or v.word(k) != "却" or v.text[c.start - 1] != "，":
            continue
        if not re.search("当|但|说|认为|知道", before):
            yield c.start, v.tokens[k].end, "但" + v.text[c.start : v.tokens[k].start]


# 10 of 10 right
@rule
def although_last(v: View) -> Iterator[Edit]:
    """我没去，尽管雨停了 → 虽然雨停了，但我没去"""
    for a, b, first, second in pairs(v):
        m = re.match("尽管|虽然|虽说", second)
        if m and v.mark(a.sentence) and plain(first) and portable(second[2:], first):
            yield a.start, b.end, f"虽然{second[2:]}，但{first}"


# 6 of 7 right
@rule
def although_moved(v: View) -> Iterator[Edit]:
    """虽然雨停了，但我没去 → 我没去，尽管雨停了"""
    for a, b, first, second in pairs(v):
        m = re.match("但是?|不过|可是", second)
        if not m or not re.match("虽然|尽管", first) or re.search("还是|仍|依然|也|却", second):
            continue
        rest = second[m.end() :]
        if v.subject_at(b.start + m.end()) and portable(rest, first[2:]):
            yield a.start, b.end, f"{rest}，尽管{first[2:]}"


# 33 of 35 right
@rule
def because_reason(v: View) -> Iterator[Edit]:
    """他没来，因为病了 → 他没来，原因是病了"""
    for m in re.finditer("，因为(?!这|那)(?=[^，。！？；]{4,}[。；])", v.text):
        before = v.before(m.start())
        if plain(before) and len(before) >= 5 and "所以" not in v.text[m.end() : m.end() + 40]:
            yield m.start() + 1, m.end(), "原因是"
            yield m.start() + 1, m.end(), "这是因为"


# 30 of 31 right
@rule
def because_first(v: View) -> Iterator[Edit]:
    """我没来，因为下雨了 → 因为下雨了，所以我没来"""
    for a, b, first, second in pairs(v):
        if not second.startswith("因为") or not plain(first) or not subject(v, a.first):
            continue
        if portable(first, second[2:]) and portable(second[2:], first):
            yield a.start, b.end, f"{second}，所以{first}"
            yield a.start, b.end, f"由于{second[2:]}，{first}"


# 37 of 41 right
@rule
def the_reason_why(v: View) -> Iterator[Edit]:
    """我没来，因为下雨了 → 我之所以没来，是因为下雨了"""
    for a, b in v.commas():
        k, first = subject(v, a.first), v.span(a)
        whole = b.end == v.sentences[b.sentence][1] and v.mark(b.sentence) in "。；"
        if not whole or not k or re.match(MODAL, v.word(k)):
            continue
        if re.search("不要|应该|必须|需要", first) or not plain(first):
            continue
        if v.span(b).startswith("因为"):
            at = v.tokens[k].start
            yield at, b.start, "之所以" + v.text[at : b.start] + "是"


# 35 of 36 right
@rule
def so_because(v: View) -> Iterator[Edit]:
    """下雨了，所以我没去 → 因为下雨了，所以我没去"""
    for a, b, first, second in pairs(v):
        m = re.match("所以|因此", second)
        speech = re.search("因为|而|由于|请|不要|别|希望|感谢|谢谢", first + second)
        if m and not speech and plain(first) and len(first) >= 4:
            yield a.start, b.start + 2, f"由于{first}，"
            if m.group() == "所以":
                yield a.start, a.start, "因为"


# 19 of 21 right
@rule
def because_so(v: View) -> Iterator[Edit]:
    """因为下雨了，所以我没去 → 我之所以没去，是因为下雨了 / 我没去，因为下雨了"""
    never = NEVER_LAST | {"还", "将", "开始"}
    for a, b, first, second in pairs(v):
        lead = 2 if second.startswith(("所以", "因此")) else 0
        k, rest = v.subject_at(b.start + lead), second[lead:]
        if not re.match("因为|由于", first) or QUESTION.search(first + second) or len(first) < 7:
            continue
        if k and portable(rest, first[2:]) and v.word(k) not in never:
            at = v.tokens[k].start
            head, tail = v.text[b.start + lead : at], v.text[at : b.end]
            yield a.start, b.end, f"{head}之所以{tail}，是因为{first[2:]}"
            yield a.start, b.end, f"{rest}，原因是{first[2:]}"


# 32 of 34 right
@rule
def if_de_hua(v: View) -> Iterator[Edit]:
    """如果下雨，就不去 → 如果下雨的话，就不去 / 下雨的话，就不去"""
    for m in re.finditer("(如果|要是|假如)([^，。！？；：的呢]{2,14})，", v.text):
        opens = not m.start() or v.text[m.start() - 1] in "，。！？；：“但"
        if opens and not re.search("因为|当|虽然", m[2]) and _main_clause(v, m.end()):
            yield m.end() - 1, m.end() - 1, "的话"
            yield m.start(), m.end(), f"{m[2]}的话，"


def _main_clause(v: View, start: int) -> bool:
    """Tells whether a main clause begins at an offset, rather than more of the condition."""
    if start not in v.starts:
        return False
    if re.match(MAIN_CLAUSE, v.word(v.starts[start])):
        return True
    return bool(v.subject_at(start)) and v.text[start] not in "而且并但或"


# 40 of 43 right
@rule
def connective_before_subject(v: View) -> Iterator[Edit]:
    """他虽然累，但没有休息 → 虽然他累，但没有休息"""
    for m in re.finditer(CONNECTIVE, v.text):
        c = v.around(m.start())
        if not c or not v.at(*m.span()) or not subject_only(v, c.first, m.start()):
            continue
        follows_comma = v.text[c.end : c.end + 1] == "，"
        if follows_comma and v.tag(c.first) != "eng" and v.text[m.end()] not in "了能":
            yield c.start, m.end(), m.group() + v.text[c.start : m.start()]


# 26 of 28 right
@rule
def connective_after_subject(v: View) -> Iterator[Edit]:
    """如果你喜欢，可以拿走 → 你如果喜欢，可以拿走"""
    for c in v.clauses:
        m = re.compile(CONNECTIVE).match(v.text, c.start)
        if not m or not v.at(*m.span()) or v.text[c.end : c.end + 1] != "，":
            continue
        k = v.subject_at(m.end())
        after = next((d for d in v.clauses if d.start == c.end + 1), None)
        if not k or not after or c.number or v.tag(v.starts[m.end()]) in {"a", "m", "d", "ad"}:
            continue
        at = v.tokens[k].start
        own = v.text[m.end() : at]
        if not _other_subject(v, after, own) and not v.text.startswith(own, after.start):
            yield c.start, at, own + m.group()


def _other_subject(v: View, clause: Clause, own: str) -> bool:
    """Whether a clause has (or may have) a subject other than `own`."""
    k = clause.first
    while v.word(k) in OTHERS:
        k += 1
    if k < clause.last and v.text.startswith(own, v.tokens[k].start):
        return False
    happens = v.word(k) in {"有", "让", "使", "没有", "发生"} or (
        v.word(k) == "会" and v.word(k + 1) == "发生"
    )
    return happens or not (v.tag(k) in {"d", "v", "vd"} or v.word(k) in PREDICATE_WORDS)


# 17 of 18 right
@rule
def pronoun_after_but(v: View) -> Iterator[Edit]:
    """我很累，但我没有休息 → 我很累，但没有休息"""
    links = {"但", "但是", "不过", "并", "并且", "而且", "然后"}
    never = {"是", "说", "想", "知道", "认为", "觉得", "有", "对", "为", "的", "在"}
    for a, b in v.commas():
        one, k = v.word(a.first), b.first + 1
        linked = one == v.word(k) and one in PERSONS and v.word(b.first) in links
        if not linked or a.number or re.search(SAID, v.span(a)) or v.word(k + 1) in never:
            continue
        if subject(v, a.first) == a.first + 1 and subject(v, k) == k + 1:
            yield v.tokens[k].start, v.tokens[k].end, ""


# 19 of 21 right
@rule
def same_pronoun(v: View) -> Iterator[Edit]:
    """我是新手，我想请教 → 我是新手，想请教"""
    never = {"是", "在", "对", "为", "说", "想", "的", "知道", "准备"}
    for a, b in v.commas():
        one, k = v.word(a.first), b.first + 1
        if one != v.word(b.first) or one not in PERSONS or subject(v, a.first) != a.first + 1:
            continue
        if v.word(k) in never or v.word(k + 1) == "知道" or v.span(a) == v.span(b):
            continue
        said = re.search(f"{SAID}|因为", v.span(a)) or v.text[a.start - 1 : a.start] == "，"
        if not said and v.text[a.end - 1] not in "天年日时后前" and subject(v, b.first) == k:
            yield b.start, v.tokens[b.first].end, ""


# 33 of 34 right
@rule
def split_at_but(v: View) -> Iterator[Edit]:
    """早餐不多，但面包很好 → 早餐不多。不过，面包很好"""
    joined = "虽|尽管|因为|由于|如果|不仅|既然|“|（|即使|只要|说|认为|表示"
    openings = {"但": "不过，", "但是": "不过，", "所以": "因此，", "因此": "因此，"}
    for m in re.finditer(f"，({CONTRAST})(?=[^，])", v.text):
        c = next((c for c in v.clauses if c.start == m.start() + 1), None)
        before = v.before(m.start())
        if not c or re.search(joined, before) or len(before) < 8 or not v.at(*m.span(1)):
            continue
        whole = before + v.text[c.start : v.sentences[c.sentence][1]]
        lone = len(re.findall("但|所以|因此|不过|然而|可是|然后|于是", whole)) == 1
        if lone and v.subject_at(m.end(1)) and v.mark(c.sentence) in {"。", "！"}:
            yield m.start(), m.end(), f"。{openings.get(m[1], m[1])}"


# 20 of 20 right
@rule
def join_at_but(v: View) -> Iterator[Edit]:
    """早餐不多。但面包很好。 → 早餐不多，但面包很好。"""
    for m in re.finditer("(?<=[一-龥])。(?=(?:但|所以|因此|因为|而且|并且))", v.text):
        before = re.split("[。！？\n]", v.text[: m.start()])[-1]
        joined = re.search("但|不过|所以|因此|；|因为", before)
        if v.ends.get(m.start()) and len(before) <= 24 and not joined and balanced(before):
            yield m.start(), m.end(), "，"


# 10 of 10 right
@rule
def semicolon(v: View) -> Iterator[Edit]:
    """A；B → A。B"""
    for m in re.finditer("(?<=[一-龥])；(?=[一-龥])", v.text):
        before = re.split("[。！？\n]", v.text[: m.start()])[-1]
        after = re.split("[。！？\n]", v.text[m.end() :])[0]
        if "；" in before + after or "：" in before or re.match("而|又|并|或", after):
            continue
        if min(len(before), len(after)) > 7 and balanced(before) and balanced(after):
            yield m.start(), m.end(), "。"


# 14 of 15 right
@rule
def join_sentences(v: View) -> Iterator[Edit]:
    """侵蚀是一种破坏。它很慢。 → 侵蚀是一种破坏，它很慢。"""
    linked = {"它", "他", "她", "它们", "他们", "我", "我们", "这"}
    for k, ((a, b), (c, d)) in enumerate(zip(v.sentences, v.sentences[1:], strict=False)):
        one, two = v.of(k), v.of(k + 1)
        short = len(one) == 1 and 1 <= len(two) <= 2 and b - a <= 22 and d - c <= 30
        if v.text[b:c] != "。" or v.mark(k + 1) != "。" or not short or "：" in v.text[a:d]:
            continue
        if v.word(two[0].first) not in linked or not predicate(v, two[0].first + 1):
            continue
        if not (balanced(v.text[a:b]) and balanced(v.text[c:d])):
            continue
        if subject(v, one[0].first) and not re.search("谢|您好|大家", v.text[a:b]):
            yield b, c, "，"


# 13 of 13 right
@rule
def for_purpose(v: View) -> Iterator[Edit]:
    """为了省钱，我们走路去 → 我们走路去，为的是省钱 / 我们为了省钱，走路去"""
    for a, b, first, main in pairs(v):
        m = re.fullmatch("为了([^，]{2,20}(?<!起见))", first)
        k = subject(v, b.first)
        if not m or not k or "不是" in m[1]:
            continue
        if v.tag(v.starts.get(m.start(1) + a.start, -1)) == "v" and not THIRD.search(main):
            yield a.start, b.end, f"{main}，为的是{m[1]}"
            yield a.start, b.end, f"{main}，目的是{m[1]}"
        at = v.tokens[k].start
        if v.word(k) not in {"就", "便"}:
            yield a.start, at, f"{v.text[b.start : at]}为了{m[1]}，"


# 6 of 7 right
@rule
def purpose_first(v: View) -> Iterator[Edit]:
    """我们走路去，以便省钱 → 为了省钱，我们走路去"""
    for a, b, first, second in pairs(v):
        m = re.fullmatch("(?:以便|为的是|目的是|以)([^，]{3,24})", second)
        if not m or v.word(b.first) not in {"以便", "以", "为"} or THIRD.search(m[1]):
            continue
        if not plain(first) or not subject(v, a.first) or re.search("还|也|来|用于|[以为]", first):
            continue
        if v.tag(v.starts.get(b.start + m.start(1), -1)) == "v":
            yield a.start, b.end, f"为了{m[1]}，{first}"


# 5 of 6 right
@rule
def unless_last(v: View) -> Iterator[Edit]:
    """除非下雨，否则比赛照常 → 比赛照常，除非下雨"""
    find = "(?:^|(?<=[。！？；\n]))除非([^，。！？；：]+)，否则([^，。！？；：]+)(?=[。；])"
    for m in re.finditer(find, v.text):
        if portable(m[2], m[1]) and not THIRD.search(m[1]):
            yield m.start(), m.end(), f"{m[2]}，除非{m[1]}"
