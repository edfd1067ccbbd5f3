"""Frames of two parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from gaixie.udfs.paraphrase.rules.adverbials import NEVER_LAST, more_times, own_pronoun
from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.nouns import MEASURE, ROLE
from gaixie.udfs.paraphrase.rules.view import (
    NOUN,
    NUMERAL,
    PERSONS,
    QUESTION,
    TIME,
    Edit,
    Words,
    balanced,
    predicate,
    rule,
    subject,
    view,
)
from gaixie.udfs.paraphrase.rules.voice import follows


# 17 of 18 right
@rule
def pronoun_after_but(text: str, words: Words) -> Iterator[Edit]:
    """我很累，但我没有休息 → 我很累，但没有休息"""
    v = view(text, words)
    for a, b in pairwise(v.clauses):
        one, two = v.word(a.first), v.word(b.first + 1)
        if (
            one != two
            or one not in PERSONS
            or v.word(b.first) not in {"但", "但是", "不过", "并", "并且", "而且", "然后"}
        ):
            continue
        said = re.search(
            "[说想问]|觉得|认为|知道|希望|告诉|看到|听|表示|相信|记得|如果|当",
            text[a.start : a.end],
        )
        if a.sentence != b.sentence or said or text[a.end : b.start] != "，" or a.number:
            continue
        if subject(v, a.first) == a.first + 1 and subject(v, b.first + 1) == b.first + 2:
            bad = {"是", "说", "想", "知道", "认为", "觉得", "有", "对", "为", "的", "在"}
            if v.word(b.first + 2) not in bad:
                yield v.tokens[b.first + 1].start, v.tokens[b.first + 1].end, ""


# 33 of 34 right
@rule
def split_at_but(text: str, words: Words) -> Iterator[Edit]:
    """早餐不多，但面包很好 → 早餐不多。不过，面包很好"""
    v = view(text, words)
    for m in re.finditer("，(但是?|所以|因此|不过|然而|可是|然后|于是)(?=[^，])", text):
        c = next((c for c in v.clauses if c.start == m.start() + 1), None)
        before = re.split("[。！？；\n]", text[: m.start()])[-1]
        if not c or re.search(
            "虽|尽管|因为|由于|如果|不仅|既然|“|（|即使|只要|说|认为|表示", before
        ):
            continue
        lone = (
            len(
                re.findall(
                    "但|所以|因此|不过|然而|可是|然后|于是",
                    before + text[c.start : v.sentences[c.sentence][1]],
                )
            )
            == 1
        )
        if (
            lone
            and len(before) >= 8
            and v.at(m.start(1), m.end(1))
            and subject(v, v.starts[m.end(1)])
        ):
            if v.mark(c.sentence) in {"。", "！"}:
                new = {"但": "不过，", "但是": "不过，", "所以": "因此，", "因此": "因此，"}.get(
                    m[1], m[1]
                )
                yield m.start(), m.end(), f"。{new}"


# 20 of 20 right
@rule
def join_at_but(text: str, words: Words) -> Iterator[Edit]:
    """早餐不多。但面包很好。 → 早餐不多，但面包很好。"""
    v = view(text, words)
    for m in re.finditer("(?<=[一-龥])。(?=(?:但|所以|因此|因为|而且|并且))", text):
        one = v.ends.get(m.start())
        before = re.split("[。！？\n]", text[: m.start()])[-1]
        if (
            one
            and len(before) <= 24
            and not re.search("但|不过|所以|因此|；|因为", before)
            and balanced(before)
        ):
            yield m.start(), m.end(), "，"


# 10 of 10 right
@rule
def semicolon(text: str, words: Words) -> Iterator[Edit]:
    """A；B → A。B"""
    for m in re.finditer("(?<=[一-龥])；(?=[一-龥])", text):
        before, after = (
            re.split("[。！？\n]", text[: m.start()])[-1],
            re.split("[。！？\n]", text[m.end() :])[0],
        )
        if (
            "；" not in before + after
            and balanced(before)
            and balanced(after)
            and "：" not in before
        ):
            if len(before) > 7 and len(after) > 7 and not re.search("^(?:而|又|并|或)", after):
                yield m.start(), m.end(), "。"


# 10 of 10 right
@rule
def both_being(text: str, words: Words) -> Iterator[Edit]:
    """他是作家，也是画家。 → 他既是作家，也是画家。"""
    v = view(text, words)
    for a, b in v.sentences:
        m = re.fullmatch(
            "([^，是：]{1,14})(是[^，是：]{2,24})，(同时)?也是([^，：]{2,40})", text[a:b]
        )
        if m and v.at(a, a + len(m[1])) and subject_only(v, v.starts[a], a + len(m[1])):
            yield a + len(m[1]), a + len(m[1]), "既"


# 16 of 18 right
@rule
def after_verb_subject(text: str, words: Words) -> Iterator[Edit]:
    """毕业后，他去了北京 → 他毕业后去了北京"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile("([^，。！？；：“”了]{2,8}(?:之后|以后|之前|以前|后|前|时|的时候))，").match(
            text, c.start
        )
        if not m or m.end() != c.end + 1 or c.end + 1 not in v.starts or v.tag(c.first) != "v":
            continue
        k = subject(v, v.starts[c.end + 1])
        persons = any(v.word(i) in PERSONS for i in range(c.first, c.last))
        if (
            k
            and not persons
            and v.word(k) not in {"就", "才", "也", "都", "便"}
            and not re.match("到|有|看|直到|自", m[1])
        ):
            named = v.word(k - 1) in PERSONS and not re.match("换|可", m[1])
            bad = "目前|面前|空前|提前|背后|落后|同时|及时|最后|在前|在后|谁|小时"
            if named and not re.search(bad, m[1]) and not subject(v, c.first):
                yield c.start, v.tokens[k].start, text[m.end() : v.tokens[k].start] + m[1]


# 2 of 2 right
@rule
def subject_after_verb(text: str, words: Words) -> Iterator[Edit]:
    """他毕业后，去了北京 → 毕业后，他去了北京"""
    v = view(text, words)
    for a, b in pairwise(v.clauses):
        k = subject(v, a.first)
        named = v.word(a.first) in PERSONS or (v.tag(a.first) == "nr" and k == a.first + 1)
        if not k or not named or a.number or a.sentence != b.sentence or v.tag(k) != "v":
            continue
        if text[a.end : b.start] != "，":
            continue
        if re.search("(?:之后|以后|之前|后|时|的时候)$", text[a.start : a.end]) and v.tag(
            b.first
        ) in {"v", "d"}:
            if (
                v.tag(b.first + 1) != "uj"
                and not re.search(
                    "同时|及时|最后|随时|让|[把被]|^在", text[v.tokens[k].start : a.end]
                )
                and v.tag(b.first + 1) != "x"
            ):
                subj = text[a.start : v.tokens[k].start]
                if v.word(b.first) not in {"就", "让", "使", "有", "请", "也", "出现", "发现"}:
                    yield a.start, b.start, text[v.tokens[k].start : b.start] + subj


# 8 of 8 right
@rule
def year_first(text: str, words: Words) -> Iterator[Edit]:
    """学院于1993年成立 → 1993年，学院成立"""
    v = view(text, words)
    pattern = "[于在]([0-9]{4}年(?:[0-9]{1,2}月(?:[0-9]{1,2}[日号])?)?)(?=[一-龥])"
    for m in re.finditer(pattern, text):
        c = next((c for c in v.clauses if c.start < m.start() < c.end), None)
        if not c or c.number or not v.at(m.start(), m.end()) or more_times(v, c, m):
            continue
        if subject_only(v, c.first, m.start()) and predicate(
            v, v.starts.get(m.end(), len(v.tokens))
        ):
            if v.tag(c.first) != "m":
                yield c.start, m.end(), f"{m[1]}，{text[c.start : m.start()]}"


# 15 of 16 right
@rule
def in_year_after_subject(text: str, words: Words) -> Iterator[Edit]:
    """在1993年，学院搬迁 → 学院在1993年搬迁"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile(
            "(?:在|自|从)[0-9]{4}年(?:[0-9]{1,2}月(?:[0-9]{1,2}[日号])?)?(?:以来|起)?(?=，)"
        ).match(text, c.start)
        if m and m.end() == c.end and m.end() + 1 in v.starts:
            k = subject(v, v.starts[m.end() + 1])
            if k and v.word(k) not in NEVER_LAST | {"在", "于"} and not more_times(v, c, m):
                yield c.start, v.tokens[k].start, text[m.end() + 1 : v.tokens[k].start] + m.group()


# 9 of 11 right
@rule
def for_someone(text: str, words: Words) -> Iterator[Edit]:
    """对我来说，这很难 → 这对我来说很难"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile("(对于?[^，。！？；：]{1,12}(?:来说|而言|来讲))，").match(text, c.start)
        if not m or m.end() not in v.starts:
            continue
        k, j = v.starts[m.end()], None
        j = k + 1 if v.word(k) in {"这", "那", "它"} and predicate(v, k + 1) else subject(v, k)
        if j and not own_pronoun(v, m, j) and v.word(j) != "对":
            yield c.start, v.tokens[j].start, text[m.end() : v.tokens[j].start] + m[1]


# 16 of 16 right
@rule
def for_someone_first(text: str, words: Words) -> Iterator[Edit]:
    """这对我来说很难 → 对我来说，这很难"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile(
            "([^，。！？；：对]{1,10})(对于?[^，。！？；：]{1,10}?(?:来说|而言|来讲))(?=[一-龥])"
        ).match(text, c.start)
        if m and v.at(c.start, m.end(1)) and v.at(m.start(2), m.end(2)):
            if m[1] in {"这", "那", "它"} or subject_only(v, c.first, m.end(1)):
                yield c.start, m.end(), f"{m[2]}，{m[1]}"


# 15 of 15 right
@rule
def called(text: str, words: Words) -> Iterator[Edit]:
    """他被称为铁人 → 人们称他为铁人"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile(
            "([^，。！？；：被]{1,14}?)(也|常|通常|常常|又)?被(称为|称作|认为是)(?=[^，。！？；：])"
        ).match(text, c.start)
        asks = QUESTION.search(text[c.start : v.sentences[c.sentence][1]])
        if m and not asks and v.at(c.start, m.end(1)) and subject_only(v, c.first, m.end(1)):
            by = m[2] or ""
            new = f"人们{by}认为{m[1]}是" if m[3] == "认为是" else f"人们{by}把{m[1]}{m[3]}"
            if not follows(v, c):
                yield c.start, m.end(), new


# 15 of 15 right
@rule
def what_is(text: str, words: Words) -> Iterator[Edit]:
    """什么是磁场？ → 磁场是什么？; 他是谁？ → 谁是他"""
    v = view(text, words)
    for k, (a, b) in enumerate(v.sentences):
        if v.mark(k) not in {"？", "?"}:
            continue
        m = re.search("(?:^|[，：])((?:什么|谁)是)([^，是不]{2,20})$", text[a:b])
        if (
            m
            and not m[2].endswith(("的", "呢"))
            and v.at(a + m.start(2), b)
            and v.tag(v.ends[b] - 1) in NOUN
        ):
            yield a + m.start(1), b, f"{m[2]}是{m[1][:-1]}"


# 16 of 16 right
@rule
def reason_question(text: str, words: Words) -> Iterator[Edit]:
    """天空为什么变红？ → 天空变红的原因是什么？"""
    v = view(text, words)
    for k, (a, b) in enumerate(v.sentences):
        m = re.fullmatch("(?:(.*，))?([^，]{0,12})为(?:什么|何)([^，]{3,24})", text[a:b])
        if (
            v.mark(k) not in {"？", "?"}
            or not m
            or re.search("要|[你我您]|就|才|还|竟|偏|呢|的$|这么|那么|却|总|不能|是", m[2] + m[3])
        ):
            continue
        if not m[1] or re.search("[，]$", m[1]):
            whole = m[2] + m[3]
            start = a + len(m[1] or "")
            if (
                subject_only(v, v.starts.get(start, 0), start + len(m[2]))
                if m[2]
                else subject(v, v.starts.get(a + m.start(3), 0))
            ):
                yield start, b, f"{whole}的原因是什么"


# 11 of 13 right
@rule
def who_cleft(text: str, words: Words) -> Iterator[Edit]:
    """谁发明了电话？ → 是谁发明了电话？; 哪个国家赢得了比赛？ → 赢得了比赛的是哪个国家？"""
    v = view(text, words)
    for k, (a, b) in enumerate(v.sentences):
        m = re.search(
            (
                "(?:^|，|告诉我)((?:谁|哪(?:个|位|家|支|一个)"
                "[一-龥]{0,4}?))((?:[一-龥]{2}[了过])[^，吗呢]{1,20})$"
            ),
            text[a:b],
        )
        if (
            m
            and v.mark(k) in {"？", "?"}
            and v.at(a + m.start(2), b)
            and v.tag(v.starts[a + m.start(2)]) == "v"
        ):
            if not m[2].endswith("的") and v.tag(v.starts[a + m.start(2)] - 1) in NOUN | {"r"}:
                yield a + m.start(1), b, f"{m[2]}的是{m[1]}"


# 10 of 10 right
@rule
def live_in(text: str, words: Words) -> Iterator[Edit]:
    """他住在北京 → 他在北京住; 生活在海里 → 在海里生活; 发生在周二 → 在周二发生"""
    v = view(text, words)
    for m in re.finditer(
        "(生活|居住|工作|发生|出生|就读|诞生)在([^，。！？；：的]{2,12})(?=[，。；！]|$)", text
    ):
        if (
            v.at(m.start(), m.start(2)) and subject_only(v, v.starts.get(m.start(2), 0), m.end(2))
        ) or TIME.fullmatch(m[2]):
            yield m.start(), m.end(), f"在{m[2]}{m[1]}"
    for m in re.finditer(
        "在([^，。！？；：的在]{2,12})(生活|居住|工作|发生|出生)(?=[，。；！]|$)", text
    ):
        if v.at(m.start(), m.end(1)) and subject_only(v, v.starts[m.start()] + 1, m.end(1)):
            yield m.start(), m.end(), f"{m[2]}在{m[1]}"


# 14 of 15 right
@rule
def kin(text: str, words: Words) -> Iterator[Edit]:
    """我的妈妈 → 我妈妈"""
    v = view(text, words)
    kin_words = (
        "妈妈|爸爸|母亲|父亲|父母|丈夫|妻子|女朋友|男朋友|朋友|奶奶|爷爷|"
        "外婆|外公|儿子|女儿|姐姐|妹妹|哥哥|弟弟|老师|家人|老板|室友|同事"
    )
    for m in re.finditer(f"([我你他她])(的)({kin_words})(?![一-龥]{{0,1}}的|[们])", text):
        if (
            v.at(m.start(2), m.end(2))
            and v.at(m.start(3), m.end(3))
            and v.tag(v.starts[m.start(1)] - 1 if m.start(1) in v.starts else 0) != "uj"
        ):
            yield m.start(2), m.end(2), ""


# 13 of 13 right
@rule
def kin_de(text: str, words: Words) -> Iterator[Edit]:
    """我妈妈 → 我的妈妈"""
    v = view(text, words)
    kin_words = {
        "妈妈",
        "母亲",
        "父亲",
        "丈夫",
        "妻子",
        "女朋友",
        "男朋友",
        "儿子",
        "女儿",
        "老师",
        "家人",
        "老板",
        "室友",
        "同事",
    }
    for k in range(1, len(v.tokens)):
        if (
            v.word(k) in kin_words
            and v.word(k - 1) in {"我", "你", "他", "她"}
            and v.tag(k + 1) not in {"n", "uj", "nr"}
        ):
            if v.tag(k - 2) != "v":
                yield v.tokens[k].start, v.tokens[k].start, "的"


# 13 of 13 right
@rule
def attribute_out(text: str, words: Words) -> Iterator[Edit]:
    """它是一座位于海边的城堡。 → 它是一座城堡，位于海边。"""
    v = view(text, words)
    verbs = "位于|用于|来自|横跨|流经|属于|坐落在|坐落于"
    for m in re.finditer(
        (
            f"是((?:一(?:{MEASURE}))?)({verbs})([^，。！？；：的]{{2,24}})"
            f"的((?:一(?:{MEASURE}))?)([^，。！？；：的]{{2,10}})(?=[。])"
        ),
        text,
    ):
        if (
            (m[1] or m[4])
            and v.at(m.start(5), m.end(5))
            and subject_only(v, v.starts[m.start(5)], m.end(5))
        ):
            yield m.start(), m.end(), f"是{m[1] or m[4]}{m[5]}，{m[2]}{m[3]}"


# 3 of 3 right
@rule
def role_identity(text: str, words: Words) -> Iterator[Edit]:
    """法国的首都是巴黎。 → 巴黎是法国的首都。"""
    v = view(text, words)
    for c in v.clauses:
        m = re.fullmatch(
            f"([^是，]{{1,14}}的(?:{ROLE}))是([^是，的]{{2,12}})", text[c.start : c.end]
        )
        if m and not follows(v, c) and c.start + m.start(2) in v.starts:
            if subject_only(v, v.starts[c.start + m.start(2)], c.end) and not QUESTION.search(m[2]):
                yield c.start, c.end, f"{m[2]}是{m[1]}"
        m = re.fullmatch(
            f"([^是，的]{{2,12}})是([^是，]{{1,14}}的(?:{ROLE}))", text[c.start : c.end]
        )
        if (
            m
            and not follows(v, c)
            and subject_only(v, c.first, c.start + len(m[1]))
            and m[1] not in PERSONS
        ):
            if not re.match("[这那它]", m[1]):
                yield c.start, c.end, f"{m[2]}是{m[1]}"


# 13 of 14 right
@rule
def one_side(text: str, words: Words) -> Iterator[Edit]:
    """一边唱歌一边跳舞 → 边唱歌边跳舞"""
    for m in re.finditer("一边([^，。！？；：]{1,8})，?一边(?=[^，。！？；：]{1,10})", text):
        yield m.start(), m.end(), f"边{m[1]}边"


# 15 of 15 right
@rule
def both_and(text: str, words: Words) -> Iterator[Edit]:
    """既便宜又好吃 → 又便宜又好吃; 或者A或者B → 要么A要么B"""
    for m in re.finditer("(既|又)([一-龥]{1,4})又(?=[一-龥]{1,4}[，。；的])", text):
        v = view(text, words)
        tag = v.tag(v.starts.get(m.start(2), -1))
        if tag in {"a", "an"}:
            yield m.start(), m.end(), f"{'又' if m[1] == '既' else '既'}{m[2]}又"


# 14 of 14 right
@rule
def already_question(text: str, words: Words) -> Iterator[Edit]:
    """你是否喜欢它？ → 你喜欢它吗？"""
    v = view(text, words)
    for k, (a, b) in enumerate(v.sentences):
        m = re.search("是否([^，是吗呢]{2,24})$", text[a:b])
        if (
            m
            and v.mark(k) in {"？", "?"}
            and not re.search(
                "知道|问|想|确定|看看|无论|不管|取决|决定|判断|确认|检查|还是", text[a:b]
            )
        ):
            yield a + m.start(), b, f"{m[1]}吗"


# 9 of 9 right
@rule
def at_least(text: str, words: Words) -> Iterator[Edit]:
    """至少三人 → 不少于三人; 最多十天 → 不超过十天"""
    for m in re.finditer(f"(至少|最多)(?=({NUMERAL}+)[一-龥]{{1,4}}[，。；])", text):
        before = text[m.start() - 1 : m.start()]
        if not re.search("[，。；：要也都就还能可出]", before or "，"):
            yield m.start(), m.end(), {"至少": "不少于", "最多": "不超过"}[m[1]]
