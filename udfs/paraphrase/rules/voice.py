"""Voice, and the frames of verbs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import (
    NUMERAL,
    PERSONS,
    Clause,
    Edit,
    View,
    Words,
    rule,
    subject,
    view,
)

TREAT = (
    "调查|研究|分析|检查|测试|评估|修改|审查|批评|讨论|处理|"
    "管理|监督|改革|改造|维修|检测|采访|统计|整理|介绍|解释|说明"
    "|治疗|观察|比较|监测|攻击|轰炸|袭击|搜查|审理|审核|调整"
    "|补充|更新|升级|修复|清理|干预|限制|控制|规范|投资|访问"
    "|表决|投票|探索|监视|测量|评价|训练|培训|改进|改善|"
    "报道|抗议|谴责|打击|处罚|测验|检验|验证|优化|扩建|翻新"
)


# 9 of 10 right
@rule
def treat_to_verb(text: str, words: Words) -> Iterator[Edit]:
    """对事故进行了调查 → 调查了事故"""
    v = view(text, words)
    pattern = (
        f"对([^，。！？；：对]{{2,16}})(?:进行|予以|加以|作出|做出|开展)"
        f"(了?)(详细|全面|深入|仔细|彻底)?的?({TREAT})(?=[，。；！？”]|$)"
    )
    for m in re.finditer(pattern, text):
        if m[4] in {"表决", "投票", "抗议", "投资", "访问", "比较"} or m.start() not in v.starts:
            continue
        degree = f"{m[3]}" if m[3] else ""
        yield m.start(), m.end(), f"{degree}{m[4]}{m[2]}{m[1]}"


# 19 of 22 right
@rule
def verb_to_treat(text: str, words: Words) -> Iterator[Edit]:
    """调查事故原因 → 对事故原因进行调查"""
    v = view(text, words)
    for m in re.finditer(f"({TREAT})(了?)([^，。！？；：的]{{2,10}})(?=[，。；！？]|$)", text):
        k = v.starts.get(m.start(), -1)
        if v.word(k) != m[1] or v.tag(k) not in {"v", "vn"} or not v.at(m.start(3), m.end(3)):
            continue
        before = v.tag(k - 1)
        fine = before in {"d", "r", "nr", "nt"} or v.word(k - 1) in {
            "将",
            "会",
            "要",
            "需要",
            "必须",
            "正在",
            "可以",
        }
        fine = (
            fine
            and v.tag(v.ends[m.end(3)] - 1) != "vn"
            and not re.search("[时后前]$|小时|分钟|天", m[3])
        )
        if (
            fine
            and subject_only(v, v.starts[m.start(3)], m.end(3))
            and v.tag(k + 1 + bool(m[2])) != "uj"
        ):
            yield m.start(), m.end(), f"对{m[3]}进行{m[2]}{m[1]}"


RESULT = "[掉完好坏断开走光碎破死满错丢倒净]"


# 15 of 15 right
@rule
def verb_to_ba(text: str, words: Words) -> Iterator[Edit]:
    """打开了那扇门 → 把那扇门打开了"""
    v = view(text, words)
    for m in re.finditer(f"([一-龥]{RESULT})了([^，。！？；：了]{{2,10}})(?=[，。；！]|$)", text):
        k = v.starts.get(m.start(), -1)
        if k < 0 or m.start(2) not in v.starts or v.tag(k) not in {"v", "vd"}:
            continue
        if definite(v, m.start(2), m.end(2)) and not re.match("离开|召开|展开|死|充满|公开", m[1]):
            yield m.start(), m.end(), f"把{m[2]}{m[1]}了"


def definite(v: View, start: int, end: int) -> bool:
    """Whether the span is a noun phrase that begins with 这, 那, 该 or an owner."""
    if not v.at(start, end) or not re.match(
        "[这那该此]|我|你|他|她|它|所有|全部", v.text[start:end]
    ):
        return False
    return subject_only(v, v.starts[start], end) and not re.search(NUMERAL, v.text[start:end])


# 3 of 4 right
@rule
def ba_to_verb(text: str, words: Words) -> Iterator[Edit]:
    """把那扇门打开了 → 打开了那扇门"""
    v = view(text, words)
    for m in re.finditer(
        f"把([^，。！？；：把]{{2,10}}?)([一-龥]{RESULT})了(?=[，。；！]|$)", text
    ):
        if v.at(m.start(), m.end(1)) and subject_only(v, v.starts[m.start()] + 1, m.end(1)):
            if m[2][0] not in "乐吓气累忙急":
                yield m.start(), m.end(), f"{m[2]}了{m[1]}"


# 15 of 16 right
@rule
def ba_to_bei(text: str, words: Words) -> Iterator[Edit]:
    """他把杯子打碎了 → 杯子被他打碎了"""
    v = view(text, words)
    for c in v.clauses:
        m = re.search("^([^把，]{1,8})(?:把|将)([^把，]{2,12})$", text[c.start : c.end])
        if not m or follows(v, c):
            continue
        yield from swap_voice(v, c, "[把将]", "被")


# 2 of 2 right
@rule
def bei_to_ba(text: str, words: Words) -> Iterator[Edit]:
    """杯子被他打碎了 → 他把杯子打碎了"""
    v = view(text, words)
    for c in v.clauses:
        if not follows(v, c):
            yield from swap_voice(v, c, "被", "把")


def follows(v: View, clause: Clause) -> bool:
    """Whether a later clause of the sentence may share the subject of this one."""
    after = [c for c in v.of(clause.sentence) if c.start > clause.start]
    return bool(after) and not (subject(v, after[0].first) and v.word(after[0].first) in PERSONS)


def swap_voice(v: View, c: Clause, word: str, other: str) -> Iterator[Edit]:
    """Subject, marker, noun phrase, rest: the two phrases exchanged around another marker."""
    for k in range(c.first + 1, c.last - 2):
        if not re.fullmatch(word, v.word(k)) or not subject_only(v, c.first, v.tokens[k - 1].end):
            continue
        for j in range(k + 2, c.last):
            verb = v.tokens[j]
            if (
                v.tag(j) == "v"
                and v.tag(j - 1) != "vn"
                and subject_only(v, k + 1, v.tokens[j - 1].end)
            ):
                one = v.text[c.start : v.tokens[k - 1].end]
                two = v.text[v.tokens[k].end : verb.start]
                rest = v.text[verb.start : c.end]
                if (
                    re.search(f"了$|{RESULT}了|[在到给成为走出上下进起回]", rest)
                    and "的" not in rest
                ):
                    yield c.start, verb.start, f"{two}{other}{one}"
                break


# 24 of 24 right
@rule
def call_to(text: str, words: Words) -> Iterator[Edit]:
    """给妈妈打电话 → 打电话给妈妈"""
    for m in re.finditer(
        (
            "给([^，。！？；：给的]{1,6})(打|发|写|寄|送)(了?(?:一?[个条封])"
            "?)(电话|短信|信|邮件|消息|微信|私信)(?=[，。；！？]|$)"
        ),
        text,
    ):
        yield m.start(), m.end(), f"{m[2]}{m[3]}{m[4]}给{m[1]}"


# 21 of 21 right
@rule
def call_from(text: str, words: Words) -> Iterator[Edit]:
    """打电话给妈妈 → 给妈妈打电话"""
    for m in re.finditer(
        (
            "(打|发|写|寄)(了?(?:一?[个条封])?)(电话|短信|信|邮件|消息"
            "|微信|私信)给([^，。！？；：给的]{1,6})(?=[，。；！？]|$)"
        ),
        text,
    ):
        yield m.start(), m.end(), f"给{m[4]}{m[1]}{m[2]}{m[3]}"


# 5 of 5 right
@rule
def suffer_to_bei(text: str, words: Words) -> Iterator[Edit]:
    """受到老师的表扬 → 被老师表扬"""
    acts = (
        "表扬|批评|攻击|袭击|处罚|惩罚|指责|邀请|限制|控制|"
        "监视|起诉|指控|谴责|嘲笑|虐待|欺负|骚扰|忽视|排挤|逮捕"
    )
    for m in re.finditer(
        f"(?:受到|遭到|遭受)了?([^，。！？；：的]{{2,12}})的({acts})(?=[，。；！？]|$)", text
    ):
        v = view(text, words)
        whole = v.at(m.start(1), m.end(1)) and subject_only(v, v.starts[m.start(1)], m.end(1))
        if whole and not re.match("[一更很]|了|过", m[1]):
            yield m.start(), m.end(), f"被{m[1]}{m[2]}"


# 4 of 4 right
@rule
def composed_of(text: str, words: Words) -> Iterator[Edit]:
    """委员会由五人组成 → 组成委员会的是五人"""
    v = view(text, words)
    for c in v.clauses:
        m = re.fullmatch("([^由，]{2,12})由([^，被是]{2,16})(组成|构成)", text[c.start : c.end])
        if m and subject_only(v, c.first, c.start + len(m[1])) and not follows(v, c):
            yield c.start, c.end, f"{m[3]}{m[1]}的是{m[2]}"
