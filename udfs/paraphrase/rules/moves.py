"""Rules that move times, places and other frames."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.patterns import behind_subject
from gaixie.udfs.paraphrase.rules.tables import expression
from gaixie.udfs.paraphrase.rules.view import (
    NEVER_LAST,
    NUMERAL,
    PERSONS,
    TIME,
    Edit,
    View,
    more_times,
    predicate,
    rule,
    subject,
    subject_only,
)

PLACE = expression("place")


# 33 of 34 right
@rule
def time_first(v: View) -> Iterator[Edit]:
    """他昨天去了北京 → 昨天他去了北京"""
    for m in TIME.finditer(v.text):
        c = v.around(m.start())
        if not c or not v.at(*m.span()) or not subject_only(v, c.first, m.start()):
            continue
        if not predicate(v, v.starts.get(m.end(), len(v.tokens))) or more_times(v, c):
            continue
        if v.tag(c.first) != "m" and v.text[m.end()] != "之":
            before = v.text[c.start : m.start()]
            yield c.start, m.end(), m.group() + before
            if len(m.group()) > 2 and c.number == 0:
                yield c.start, m.end(), m.group() + "，" + before


# 31 of 33 right
@rule
def time_after_subject(v: View) -> Iterator[Edit]:
    """昨天，他去了北京 → 他昨天去了北京"""
    for c in v.clauses:
        m = TIME.match(v.text, c.start)
        if not m or not v.at(*m.span()) or more_times(v, c):
            continue
        at = m.end() + (v.text[m.end() : m.end() + 1] == "，")
        if k := v.subject_at(at):
            end, year = v.tokens[k].start, m.group()[:2].isdigit()
            by = "于" if year and (v.tag(k) == "v" or v.word(k) == "被") else ""
            yield c.start, end, v.text[at:end] + by + m.group()


# 23 of 24 right
# 20 of 21 right
@rule
def named_place(v: View) -> Iterator[Edit]:
    """在英国，猎狐是非法的 ⇄ 猎狐在英国是非法的"""
    never = "出|住|生活|定居|长大|去世|举|成立|与|和|担任|占|排"
    for c in v.clauses:
        names = all(v.tag(k) in {"ns", "nt"} for k in range(c.first + 1, c.last))
        if v.word(c.first) == "在" and c.last > c.first + 1 and names:
            k = v.subject_at(c.end + 1) if v.text[c.end : c.end + 1] == "，" else 0
            if k and v.word(k) not in NEVER_LAST - {"是"} | {"在", "从"}:
                at = v.tokens[k].start
                yield c.start, at, v.text[c.end + 1 : at] + v.span(c)
        for k in range(c.first + 1, c.last - 1):
            if v.word(k) != "在" or v.tag(k + 1) != "ns" or c.number or v.tag(c.first) == "m":
                continue
            if not predicate(v, k + 2) or re.match(never, v.word(k + 2)):
                continue
            if subject_only(v, c.first, v.tokens[k - 1].end):
                start, end = v.tokens[k].start, v.tokens[k + 1].end
                yield c.start, end, f"{v.text[start:end]}，{v.text[c.start : start]}"


# 9 of 11 right
@rule
def for_someone(v: View) -> Iterator[Edit]:
    """对我来说，这很难 → 这对我来说很难"""
    for c in v.clauses:
        m = re.compile("对于?[^，。！？；：]{1,12}(?:来说|而言|来讲)(?=，)").match(v.text, c.start)
        k = v.starts.get(m.end() + 1, len(v.tokens)) if m else 0
        if m and v.word(k) in {"这", "那", "它"} and predicate(v, k + 1):
            own = v.word(k) in PERSONS and v.word(k) in m.group()
            if v.word(k + 1) != "对" and not own:
                yield c.start, v.tokens[k].end, v.text[m.end() + 1 : v.tokens[k].end] + m.group()
        elif m:
            yield from behind_subject(v, c, m, "对", own=False)


# 24 of 25 right
@rule
def why_after_subject(v: View) -> Iterator[Edit]:
    """为什么他不来 → 他为什么不来"""
    for m in re.finditer("(?:^|(?<=[，。！？：；“但]))(?:为什么|为何)", v.text):
        end = next((c.end for c in v.clauses if c.start <= m.start() < c.end), 0)
        k = v.subject_at(m.end()) if m.start() in v.starts else 0
        if k and v.text[end : end + 1] != "，" and v.word(k) not in {"就", "是"}:
            at = v.tokens[k].start
            yield m.start(), at, v.text[m.end() : at] + m.group()


# 16 of 18 right
@rule
def after_verb_subject(v: View) -> Iterator[Edit]:
    """毕业后，他去了北京 → 他毕业后去了北京"""
    find = re.compile("([^，。！？；：“”了]{2,8}(?:之后|以后|之前|以前|后|前|时|的时候))(?=，)")
    bad = "目前|面前|空前|提前|背后|落后|同时|及时|最后|在前|在后|谁|小时"
    for c in v.clauses:
        m = find.match(v.text, c.start)
        if not m or m.end() != c.end or v.tag(c.first) != "v" or subject(v, c.first):
            continue
        if any(v.word(i) in PERSONS for i in range(c.first, c.last)):
            continue
        if re.match("到|有|看|直到|自|换|可", m[1]) or re.search(bad, m[1]):
            continue
        if v.word(v.subject_at(c.end + 1) - 1) in PERSONS:
            yield from behind_subject(v, c, m, "就|才|也|都|便")


# 2 of 2 right
@rule
def subject_after_verb(v: View) -> Iterator[Edit]:
    """他毕业后，去了北京 → 毕业后，他去了北京"""
    never = {"就", "让", "使", "有", "请", "也", "出现", "发现"}
    for a, b in v.commas():
        k = subject(v, a.first)
        named = v.word(a.first) in PERSONS or (v.tag(a.first) == "nr" and k == a.first + 1)
        if not k or not named or a.number or v.tag(k) != "v" or v.word(b.first) in never:
            continue
        if not re.search("(?:之后|以后|之前|后|时|的时候)$", v.span(a)):
            continue
        at = v.tokens[k].start
        odd = re.search("同时|及时|最后|随时|让|[把被]|^在", v.text[at : a.end])
        if not odd and v.tag(b.first) in {"v", "d"} and v.tag(b.first + 1) not in {"uj", "x"}:
            yield a.start, b.start, v.text[at : b.start] + v.text[a.start : at]


# 18 of 19 right
@rule
def when_longer(v: View) -> Iterator[Edit]:
    """他到家时，… → 当他到家时，… / 他到家的时候，…"""
    bad = "同时|及时|小时|临时|此时|随时|到时|有时|平时$|在|^直到|^每|要|记得|趁|知道|说|想|如果"
    for c in v.clauses:
        m = re.compile("[^当，。！？；：]{4,20}?(的时候|时)，").match(v.text, c.start)
        if m and m.end() == c.end + 1 and v.at(*m.span(1)) and not re.search(bad, m.group()):
            if subject(v, c.first):
                yield c.start, c.start, "当"
                yield *m.span(1), {"时": "的时候", "的时候": "时"}[m[1]]


# 27 of 29 right
@rule
def after_frame(v: View) -> Iterator[Edit]:
    """他离开后，… → 在他离开之后，…; 在他离开后，… → 他离开后，…"""
    bad = f"{NUMERAL}|此|今|背|落|目|面|空|提|事|不久|生|到|是|每|天$|日$|想|说"
    for c in v.clauses:
        if v.text[c.end : c.end + 1] != "，":
            continue
        verb = any(v.tag(i) == "v" for i in range(c.first, c.last))
        m = re.fullmatch("([^在当自从直先然最]{3,18}?)(之后|以后|后|之前|以前|前)", v.span(c))
        if m and verb and not re.search(bad, m[1][-1:] + m[1]):
            if v.tag(c.first) in {"v", "r", "n", "nr", "ns", "nt"}:
                if v.at(c.start + m.start(2), c.end):
                    yield c.start, c.end, f"在{m[1]}之{m[2][-1]}"
        m = re.fullmatch("在([^在]{3,18}?(?:之后|以后|后|之前|以前|时|的时候|期间))", v.span(c))
        if m and v.word(c.first) == "在" and not re.search(f"{NUMERAL}|此|同时|小时", m[1]):
            if any(v.tag(i) == "v" for i in range(c.first + 1, c.last)):
                yield c.start, c.start + 1, ""


# 40 of 42 right
@rule
def moment(v: View) -> Iterator[Edit]:
    """下雨的时候 → 下雨时; 他到家时，… → 他到家的时候，…"""
    for m in re.finditer("(?<=[一-龥]{2})的时候(?=[，一-龥])(?![了是到])", v.text):
        k = v.starts.get(m.start(), 0) - 1
        noun = v.tag(k) in {"v", "n", "ns", "a", "vn"} and len(v.word(k)) > 1
        if noun and not re.search("[小有这那些老大点]$", v.text[: m.start()]):
            yield m.start(), m.end(), "时"
    for m in re.finditer("(?<=[一-龥]{2})时(?=，)", v.text):
        k = v.starts.get(m.start(), -1)
        if v.word(k) != "时" or v.tag(k - 1) not in {"v", "n", "ns"} or v.text.startswith("在"):
            continue
        clause = re.split("[，。！？；：]", v.text[: m.start()])[-1]
        if any(v.tag(i) == "v" for i in range(v.starts.get(m.start() - len(clause), k), k)):
            yield m.start(), m.end(), "的时候"


# 18 of 18 right
@rule
def compared_with(v: View) -> Iterator[Edit]:
    """今年比去年更冷 → 与去年相比，今年更冷; 他比我高 → 与我相比，他更高"""
    find = "([^比，]{1,10})比([^比，]{1,12}?)(更|还要|要|[一-龥])([^，]{1,12})"
    for c in v.clauses:
        m = re.fullmatch(find, v.span(c))
        middle = c.start + len(m[1]) if m else -1
        if not v.at(middle, middle + 1):
            continue
        k = v.starts[middle]
        ends = (v.tokens[j - 1].end for j in range(k + 2, c.last + 1) if _degree(v, k, j))
        end = next(ends, None)
        one = v.text[c.start : middle]
        if end and (subject_only(v, c.first, middle) or TIME.fullmatch(one)):
            degree = v.tokens[v.starts[end]]
            measured = v.text[degree.end : degree.end + 1] == "了"  # 低了三米
            more = "更" if v.tag(v.starts[end]) == "a" and not measured else ""
            yield c.start, end, f"与{v.text[v.tokens[k + 1].start : end]}相比，{one}{more}"


def _degree(v: View, k: int, j: int) -> bool:
    """Tells whether tokens k + 1 to j are the standard of a comparison and a degree follows."""
    start, end = v.tokens[k + 1].start, v.tokens[j - 1].end
    whole = subject_only(v, k + 1, end) or TIME.fullmatch(v.text, start, end)
    return v.tag(j) in {"a", "d", "ad"} and v.word(j) not in {"还", "都"} and bool(whole)
