"""Clauses split and joined; causes and degrees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from gaixie.udfs.paraphrase.rules.adverbials import NEVER_LAST, own_pronoun
from gaixie.udfs.paraphrase.rules.connectives import subject_only
from gaixie.udfs.paraphrase.rules.view import (
    NUMERAL,
    PERSONS,
    Edit,
    Words,
    balanced,
    pairs,
    plain,
    portable,
    predicate,
    rule,
    subject,
    view,
)


# 12 of 13 right
@rule
def but_not_first(text: str, words: Words) -> Iterator[Edit]:
    """这是必然，而不是偶然 → 这不是偶然，而是必然"""
    for m in re.finditer(
        (
            "(?<![不就也还只都总可像别才说])是([^，。！？；：是不这那]{1,12})"
            "，而?不是([^，。！？；：“”是吗这那]{1,12})(?=[。；！])"
        ),
        text,
    ):
        v = view(text, words)
        if v.at(m.start(), m.start() + 1) and v.at(m.start(2), m.end(2)):
            yield m.start(), m.end(), f"不是{m[2]}，而是{m[1]}"


# 10 of 10 right
@rule
def although_last(text: str, words: Words) -> Iterator[Edit]:
    """我没去，尽管雨停了 → 虽然雨停了，但我没去"""
    for a, b, mark in pairs(view(text, words)):
        first, second = text[a.start : a.end], text[b.start : b.end]
        m = re.match("尽管|虽然|虽说", second)
        if m and mark in "。；" and mark and plain(first) and portable(second[2:], first):
            yield a.start, b.end, f"虽然{second[2:]}，但{first}"


# 6 of 7 right
@rule
def although_moved(text: str, words: Words) -> Iterator[Edit]:
    """虽然雨停了，但我没去 → 我没去，尽管雨停了"""
    v = view(text, words)
    for a, b, mark in pairs(v):
        first, second = text[a.start : a.end], text[b.start : b.end]
        m = re.match("但是?|不过|可是", second)
        if (
            not m
            or not re.match("虽然|尽管", first)
            or mark not in "。；"
            or b.start + m.end() not in v.starts
        ):
            continue
        k = subject(v, v.starts[b.start + m.end()])
        if (
            k
            and portable(second[m.end() :], first[2:])
            and not re.search("还是|仍|依然|也|却", second)
        ):
            yield a.start, b.end, f"{second[m.end() :]}，尽管{first[2:]}"


# 22 of 24 right
@rule
def first_of_list(text: str, words: Words) -> Iterator[Edit]:
    """包括苹果、梨和李 → 包括梨、苹果和李"""
    v = view(text, words)
    for k in range(len(v.tokens) - 3):
        one, mark, two, after = v.tokens[k : k + 4]
        if mark.word != "、" or after.word not in {"、", "和", "与", "及", "以及", "等"}:
            continue
        tags = {"n", "ns", "nt", "nz", "nr"}
        left = v.tag(k - 1) in {"v", "p", ""} or v.word(k - 1) in {"，", "：", "。"}
        if (
            left
            and one.tag == two.tag
            and one.tag in tags
            and min(len(one.word), len(two.word)) > 1
        ):
            if not re.search("其|从|依次|先后|继|国际", text[max(0, one.start - 12) : two.end]):
                yield one.start, two.end, f"{two.word}、{one.word}"


# 2 of 2 right
@rule
def degree_before(text: str, words: Words) -> Iterator[Edit]:
    """他高兴得很 → 他非常高兴"""
    v = view(text, words)
    for m in re.finditer("([一-龥]{1,2})(?:得很|极了)(?=[，。；！])", text):
        if (
            m.start() in v.starts
            and v.tag(v.starts[m.start()]) == "a"
            and v.word(v.starts[m.start()]) == m[1]
        ):
            yield m.start(), m.end(), f"非常{m[1]}"


SUBORDINATE = re.compile(
    "当|如果|要是|虽|尽管|因为|由于|为了|除了|随着|^据|[说问讲道]|"
    "认为|表示|发现|觉得|要求|既然|只要|无论|不管|即使|一旦|除非|加上"
    "|每次|每当|第一|不仅|不但|不是|与其|宁|既|一边|越|先|告诉|希望|"
    "想[到象起知]|相信|记得|担心|意味|称|直到|自从|凡|若|万一|谁|什么|怎"
    "|的[人是]$|[时后前年天日]$|不久$|以来$|来说|建议|"
    "提醒|警告|解释|补充|承认|假装|以为|看来|意识|保证|发誓"
    "|请|让|假设|到$|估计|预计|显示|指出|宣布|透露|强调|"
    "报道|预测|回忆|拍摄|至于|对于|关于|根据|但|可是|却|不过"
)


# 44 of 48 right
@rule
def split_clauses(text: str, words: Words) -> Iterator[Edit]:
    """河水涨了三米，我们只好回家。 → 河水涨了三米。我们只好回家。"""
    v = view(text, words)
    for a, b in pairwise(v.clauses):
        start, end = v.sentences[a.sentence]
        if (
            a.sentence != b.sentence
            or text[a.end : b.start] != "，"
            or v.mark(b.sentence) not in {"。", "！"}
        ):
            continue
        first, rest = text[start : a.end], text[b.start : end]
        if SUBORDINATE.search(first) or re.search("[“”（）：]", first) or not 8 <= len(first) <= 36:
            continue
        k = subject(v, b.first)
        pronoun = v.word(b.first) in PERSONS | {"这"} and predicate(v, b.first + 1)
        if (not k and not pronoun) or len(rest) < 8 or not balanced(rest):
            continue
        verb = v.word(k if k else b.first + 1)
        if (
            verb not in NEVER_LAST - {"是"}
            and v.tag(b.first) != "vn"
            and subject(v, v.of(a.sentence)[0].first)
        ):
            if subject(v, a.first) and (pronoun or len(v.of(a.sentence)) == 2):
                yield a.end, b.start, "。"


# 14 of 15 right
@rule
def join_sentences(text: str, words: Words) -> Iterator[Edit]:
    """侵蚀是一种破坏。它很慢。 → 侵蚀是一种破坏，它很慢。"""
    v = view(text, words)
    for k in range(len(v.sentences) - 1):
        (a, b), (c, d) = v.sentences[k], v.sentences[k + 1]
        one, two = v.of(k), v.of(k + 1)
        if (
            text[b:c] != "。"
            or not one
            or not two
            or len(one) > 1
            or len(two) > 2
            or b - a > 22
            or d - c > 30
        ):
            continue
        if v.mark(k + 1) == "。" and v.word(two[0].first) in {
            "它",
            "他",
            "她",
            "它们",
            "他们",
            "我",
            "我们",
            "这",
        }:
            if (
                predicate(v, two[0].first + 1)
                and "：" not in text[a:d]
                and balanced(text[a:b])
                and balanced(text[c:d])
            ):
                if subject(v, one[0].first) and not re.search("谢|您好|大家", text[a:b]):
                    yield b, c, "，"


# 20 of 21 right
@rule
def named_place(text: str, words: Words) -> Iterator[Edit]:
    """在英国，猎狐是非法的 ⇄ 猎狐在英国是非法的"""
    v = view(text, words)
    for c in v.clauses:
        end = c.first + 1
        while v.tag(end) in {"ns", "nt"} and end < c.last:
            end += 1
        if (
            v.word(c.first) == "在"
            and end == c.last > c.first + 1
            and text[c.end : c.end + 1] == "，"
            and c.end + 1 in v.starts
        ):
            k = subject(v, v.starts[c.end + 1])
            if k and v.word(k) not in NEVER_LAST - {"是"} | {"在", "从"}:
                yield (
                    c.start,
                    v.tokens[k].start,
                    text[c.end + 1 : v.tokens[k].start] + text[c.start : c.end],
                )
        for k in range(c.first + 1, c.last - 1):
            if (
                v.word(k) != "在"
                or v.tag(k + 1) != "ns"
                or not subject_only(v, c.first, v.tokens[k - 1].end)
                or c.number
            ):
                continue
            after = v.word(k + 2)
            if (
                predicate(v, k + 2)
                and not re.match("出|住|生活|定居|长大|去世|举|成立|与|和|担任|占|排", after)
                and v.tag(c.first) != "m"
            ):
                name = text[v.tokens[k].start : v.tokens[k + 1].end]
                yield c.start, v.tokens[k + 1].end, f"{name}，{text[c.start : v.tokens[k].start]}"


# 24 of 26 right
@rule
def suo_in(text: str, words: Words) -> Iterator[Edit]:
    """我们需要的时间 → 我们所需要的时间"""
    v = view(text, words)
    verbs = (
        "需要|拥有|使用|了解|看到|听到|面临|经历|熟悉|期待|期望|选择|"
        "掌握|从事|采取|采用|提出|造成|做|写|说|看|处|创作|发现|提供"
    )
    for m in re.finditer(f"(?<=[一-龥])({verbs})的(?=[一-龥])", text):
        k = v.starts.get(m.start(), -1)
        if (
            k > 0
            and v.word(k) == m[1]
            and v.tag(k + 1) == "uj"
            and v.tag(k - 1) in {"r", "nr", "ns", "nt"}
        ):
            if v.word(k - 1) in PERSONS - {"大家"} or v.tag(k - 1) != "r":
                if v.tag(k - 2) not in {"p", "uj", "n"} and v.word(k + 2) not in {
                    "是",
                    "都",
                    "时候",
                    "话",
                    "那样",
                    "一样",
                    "更",
                    "很",
                    "方式",
                    "样子",
                    "原因",
                    "方法",
                    "就是",
                }:
                    yield m.start(), m.start(), "所"


# 14 of 17 right
@rule
def suo_out(text: str, words: Words) -> Iterator[Edit]:
    """我们所需要的时间 → 我们需要的时间"""
    v = view(text, words)
    for m in re.finditer("(?<=[我你他她它们])所(?=[一-龥]{1,3}的)", text):
        if v.at(m.start(), m.end()) and v.tag(v.ends[m.end()]) == "v":
            yield m.start(), m.end(), ""


# 11 of 11 right
@rule
def go_to(text: str, words: Words) -> Iterator[Edit]:
    """我要去超市 → 我要到超市去"""
    places = (
        "超市|医院|学校|商店|银行|公司|机场|车站|火车站|图书馆|公园"
        "|餐厅|酒店|教堂|监狱|海边|乡下|城里|邮局|药店|厨房|办公室"
    )
    v = view(text, words)
    for m in re.finditer(f"去((?:{places})|[一-龥]{{2,5}})(?=[，。；！？]|$)", text):
        k = v.starts.get(m.start(), -1)
        single = k >= 0 and v.word(k) == "去" and v.word(k + 1) == m[1]
        if (
            single
            and (re.fullmatch(places, m[1]) or v.tag(k + 1) == "ns")
            and v.tag(k - 1) not in {"v", "a", "f", "uz"}
        ):
            yield m.start(), m.end(), f"到{m[1]}去"


# 39 of 42 right
@rule
def indefinite(text: str, words: Words) -> Iterator[Edit]:
    """许多人认为 → 有许多人认为; 有一名男子被捕 → 一名男子被捕"""
    v = view(text, words)
    start = "(?:^|(?<=[。！？；\n])|(?<=[^0-9]，))"
    amount = "一[名位]|许多|很多|不少|几[名位]|[0-9]+[名位]|数[百千十][名位]?"
    for m in re.finditer(f"{start}(?:{amount})(?=[一-龥])", text):
        k = m.start() in v.starts and subject(v, v.starts[m.start()])
        if (
            k
            and "的" not in text[m.start() : v.tokens[k].start]
            and v.word(k) not in {"都", "也", "是", "会", "可以", "在", "还", "应", "应该", "将"}
        ):
            yield m.start(), m.start(), "有"
    for m in re.finditer(f"{start}有(?=(?:一[名位]|(?:许多|很多|不少)人)[一-龥])", text):
        k = m.end() in v.starts and subject(v, v.starts[m.end()])
        if k:
            yield m.start(), m.end(), ""


# 27 of 29 right
@rule
def after_frame(text: str, words: Words) -> Iterator[Edit]:
    """他离开后，… → 在他离开之后，…; 在他离开后，… → 他离开后，…"""
    v = view(text, words)
    for c in v.clauses:
        clause = text[c.start : c.end]
        m = re.fullmatch("([^在当自从直先然最]{3,18}?)(之后|以后|后|之前|以前|前)", clause)
        if text[c.end : c.end + 1] != "，" or not v.at(c.start, c.end):
            continue
        if m and not re.search(
            f"{NUMERAL}|此|今|背|落|目|面|空|提|事|不久|生|到|是|每|天$|日$|想|说", m[1][-1:] + m[1]
        ):
            if v.tag(c.first) in {"v", "r", "n", "nr", "ns", "nt"} and v.at(
                c.start + m.start(2), c.end
            ):
                if any(v.tag(i) == "v" for i in range(c.first, c.last)):
                    yield c.start, c.end, f"在{m[1]}之{m[2][-1]}"
        m = re.fullmatch("在([^在]{3,18}?(?:之后|以后|后|之前|以前|时|的时候|期间))", clause)
        if m and v.word(c.first) == "在" and not re.search(f"{NUMERAL}|此|同时|小时", m[1]):
            if any(v.tag(i) == "v" for i in range(c.first + 1, c.last)):
                yield c.start, c.start + 1, ""


# 40 of 42 right
@rule
def moment(text: str, words: Words) -> Iterator[Edit]:
    """下雨的时候 → 下雨时; 他到家时，… → 他到家的时候，…"""
    v = view(text, words)
    for m in re.finditer("(?<=[一-龥]{2})的时候(?=[，一-龥])", text):
        k = v.starts.get(m.start(), 0)
        if v.tag(k - 1) in {"v", "n", "ns", "a", "vn"} and not re.search(
            "[小有这那些老大点]$", text[: m.start()]
        ):
            if len(v.word(k - 1)) > 1 and text[m.end() : m.end() + 1] not in "了是到":
                yield m.start(), m.end(), "时"
    for m in re.finditer("(?<=[一-龥]{2})时(?=，)", text):
        k = v.starts.get(m.start(), -1)
        if (
            k > 0
            and v.word(k) == "时"
            and v.tag(k - 1) in {"v", "n", "ns"}
            and not re.search("^在", text[: m.start()])
        ):
            clause = re.split("[，。！？；：]", text[: m.start()])[-1]
            if any(v.tag(i) == "v" for i in range(v.starts.get(m.start() - len(clause), k), k)):
                yield m.start(), m.end(), "的时候"


# 38 of 42 right
@rule
def whether(text: str, words: Words) -> Iterator[Edit]:
    """我不知道有没有票 → 我不知道是否有票"""
    v = view(text, words)
    twice = {
        "有没有": "有",
        "能不能": "能",
        "会不会": "会",
        "可不可以": "可以",
        "是不是": "是",
        "该不该": "该",
    }
    for m in re.finditer("|".join(twice), text):
        tail = text[m.end() : m.end() + 1]
        if tail and tail not in "，。？！；呢" and v.at(m.start(), m.end()):
            if not re.search("你|吧$|呀|^[^。]*你们", text[: m.start()][-4:]) and not re.match(
                "[^，。？！；]{0,20}[呢呀啊]", text[m.end() :]
            ):
                verb = m.group() == "有没有" and v.tag(v.ends[m.end()]) == "v"
                if verb or re.match("别|麻烦|请|帮|给|已经|都", text[m.end() :]):
                    continue
                bare = m.group() == "是不是" and v.tag(v.ends[m.end()]) in {
                    "d",
                    "v",
                    "a",
                    "zg",
                    "p",
                }
                yield m.start(), m.end(), "是否" if bare else f"是否{twice[m.group()]}"
    for m in re.finditer("是否(有|能|会|可以)(?=[一-龥])", text):
        if v.at(m.start(), m.end()) and text[m.end()] not in "助效关权利意":
            yield (
                m.start(),
                m.end(),
                {"有": "有没有", "能": "能不能", "会": "会不会", "可以": "可不可以"}[m[1]],
            )


# 22 of 24 right
@rule
def except_frame(text: str, words: Words) -> Iterator[Edit]:
    """除了数学，… → 除数学之外，…"""
    for m in re.finditer(
        "(?:^|(?<=[，。！？；：\n但]))除了([^，。！？；：]{2,10}?)(之外|以外|(?<!例)外)?，", text
    ):
        v = view(text, words)
        inside = range(v.starts.get(m.start(1), 0), v.ends.get(m.end(1), 0))
        if inside and not any(v.tag(k) in {"v", "d"} for k in inside):
            yield m.start(), m.end(), f"除{m[1]}之外，"


# 24 of 27 right
@rule
def phrase_moved(text: str, words: Words) -> Iterator[Edit]:
    """像蚯蚓一样，水蛭分节 → 水蛭像蚯蚓一样，分节; 作为医生，他说… → 他作为医生，说…"""
    v = view(text, words)
    frames = (
        "(?:像|与|和|同)[^，。！？；：]{2,14}(?:一样|不同|类似|"
        "相似|相反)|作为[^，。！？；：]{2,14}|经过[^，。！？；：]{2,14}"
    )
    for c in v.clauses:
        m = re.compile(f"({frames})，").match(text, c.start)
        if not m or m.end() != c.end + 1 or c.end + 1 not in v.starts:
            continue
        k = subject(v, v.starts[c.end + 1])
        if (
            k
            and not own_pronoun(v, m, k)
            and v.word(k) not in NEVER_LAST - {"是"}
            and not re.search("[我你他她]|以往|预期|此", m[1])
        ):
            yield c.start, v.tokens[k].start, text[m.end() : v.tokens[k].start] + m.group()


# 10 of 10 right
@rule
def me_last(text: str, words: Words) -> Iterator[Edit]:
    """我和我女朋友都去 → 我女朋友和我都去"""
    v = view(text, words)
    for c in v.clauses:
        m = re.compile(
            "我(和|跟)([^，。！？；：和]{1,8}?)(?=都|一起|是|住|将|已|正|正在|结婚|有一)"
        ).match(text, c.start)
        if m and v.at(m.start(2), m.end(2)) and subject_only(v, v.starts[m.start(2)], m.end(2)):
            yield c.start, m.end(), f"{m[2]}{m[1]}我"


# 25 of 26 right
@rule
def approximately(text: str, words: Words) -> Iterator[Edit]:
    """大约三十人 → 三十人左右; 三十人左右 → 大约三十人"""
    units = (
        "(?:个)?(?:人|年|岁|元|小时|分钟|天|米|公里|公斤|"
        "个月|度|倍|秒|次|吨|周|千米|英里|块|平方米|平方公里|钟头)"
    )
    number = "[0-9.,零一二三四五六七八九十百千万亿两半]+"
    for m in re.finditer(f"(?:大约|大概|约)({number}{units})(?=[，。；！]|的[一-龥]|$)", text):
        if "多" not in m.group():
            yield m.start(), m.end(), f"{m[1]}左右"
    for m in re.finditer(f"(?<![0-9第年月日约概至到-])({number}{units})左右(?![手脚])", text):
        if not re.search("[于在的始后]$", text[: m.start()]):
            yield m.start(), m.end(), f"大约{m[1]}"
