"""Rules for questions and reported speech."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.tables import expression, words
from gaixie.udfs.paraphrase.rules.view import (
    QUESTION,
    Edit,
    View,
    filled,
    rule,
    subject,
    subject_only,
)

TWICE = {
    "有没有": "有",
    "能不能": "能",
    "会不会": "会",
    "可不可以": "可以",
    "是不是": "是",
    "要不要": "要",
    "知不知道": "知道",
    "该不该": "该",
}
"""Maps a verb with its negation (a question) to the verb."""
ONCE = {verb: twice for twice, verb in TWICE.items()}
ASKED, SAYING = words("asked"), expression("saying")


# 24 of 24 right
@rule
def have_or_not(v: View) -> Iterator[Edit]:
    """有没有人试过？ → 有人试过吗？"""
    for k, (a, b) in enumerate(v.sentences):
        text = v.text[a:b]
        if not v.asks(k) or re.search("吗|还是|谁|什么|怎么|如何|为什么", text):
            continue
        for m in re.finditer("有没有|能不能|会不会|可不可以|要不要|是不是|知不知道", text):
            tail, clause = text[m.end() :], re.split("[，：]", text[: m.start()])[-1]
            if re.search("知道|想|问|不管|无论|看看|确认|[不没]", clause + tail):
                continue
            if not re.search("，|[呢呀啊吧了]$", tail) and len(tail) > 1:
                yield a + m.start(), b, f"{TWICE[m.group()]}{tail}吗"


# 36 of 36 right
@rule
def ma_to_whether(v: View) -> Iterator[Edit]:
    """你会来吗？ → 你会不会来？ / 你是否会来？"""
    bad = "[了过]$|什么|谁|哪|多少|还是|已经|没|怎么|为什么|如何"
    for c in v.clauses:
        end, k = v.sentences[c.sentence][1], subject(v, c.first)
        if not v.asks(c.sentence) or c.end != end or v.text[end - 1] != "吗" or k is None:
            continue
        word, at, rest = v.word(k), v.tokens[k].start, v.text[v.tokens[k].end : end - 1]
        if word in ASKED and "不" not in v.span(c) and rest and not re.search(bad, rest):
            if word in {"可以", "知道", "会", "能", "有", "是"}:
                yield at, c.end, ONCE[word] + rest
            yield at, c.end, f"是否{word}{rest}"


# 16 of 16 right
@rule
def reason_question(v: View) -> Iterator[Edit]:
    """天空为什么变红？ → 天空变红的原因是什么？"""
    bad = "要|[你我您]|就|才|还|竟|偏|呢|的$|这么|那么|却|总|不能|是"
    for k, (a, b) in enumerate(v.sentences):
        m = re.fullmatch("(?:(.*，))?([^，]{0,12})为(?:什么|何)([^，]{3,24})", v.text[a:b])
        if not m or not v.asks(k) or re.search(bad, m[2] + m[3]):
            continue
        start = a + len(m[1] or "")
        named = subject_only(v, v.starts.get(start, 0), start + len(m[2]))
        if named if m[2] else subject(v, v.starts.get(a + m.start(3), 0)):
            yield start, b, f"{m[2]}{m[3]}的原因是什么"


# 38 of 42 right
# 15 of 15 right
# 27 of 29 right
@rule
def in_my_view(v: View) -> Iterator[Edit]:
    """我认为这不公平 → 在我看来，这不公平"""
    find = re.compile("(我|他|她|他们|她们|我们|[一-龥]{2,6}?)(认为|觉得)，?")
    for c in v.clauses:
        m = find.match(v.text, c.start)
        if not m or not filled(v, *m.span(1)) or c.end - m.end() <= 4:
            continue
        if QUESTION.search(v.text[c.start : v.sentences[c.sentence][1]]) or m[1] == "个人":
            continue
        if v.text.count("认为") + v.text.count("觉得") > 1 or v.text[m.end()] in "很太非好有":
            continue
        if v.subject_at(m.end()) and v.word(v.starts[m.end()]) != m[1]:
            yield c.start, m.end(), f"在{m[1]}看来，"
