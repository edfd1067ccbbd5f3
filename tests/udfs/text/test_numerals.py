"""Numbers by value: as people write them, and in random words."""

import json
from pathlib import Path

import pytest

from gaixie.udfs.text import numerals

VALUES = {
    **{"7": 7, "3,000": 3000, "1,234,567.5": 1234567.5, "12%": 0.12, "1.2万": 12000},
    **{"30多万": 300000, "两百": 200, "三千零五": 3005, "三万五": 35000, "一万零三十": 10030},
    **{"一千二百万": 1.2e7, "一万亿": 1e12, "二百零五万三千": 2053000, "一九九八": 1998},
    **{"二〇〇五": 2005, "三点一四": 3.14, "两点五万": 25000, "百分之三十": 0.3, "三成五": 0.35},
    **{"百分之12.5": 0.125, "三分之一": 1 / 3, "七成半": 0.75, "七八成": 0.75, "七八": 7.5},
    **{"三四百": 350, "三十多万": 300000},
}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_values(text, value):
    (number,) = numerals.find(text, [text])
    assert number.value == pytest.approx(value, rel=1e-12)
    assert text[number.start : number.end] == text.removesuffix("余")
    assert not number.weak


@pytest.mark.parametrize(
    ("words", "values", "weak"),
    [
        (["一", "个", "人"], [1], [True]),
        (["一起", "去", "四川"], [1, 4], [True, True]),
        (["一心一意"], [1, 1], [True, True]),
        (["十分", "千万"], [10, 1e7], [True, True]),
        (["一", "月", "一", "日"], [1, 1], [False, False]),
        (["三个", "人"], [3], [False]),
        (["八点", "二十", "分"], [8], [False]),
        (["8", ":", "30"], [8], [False]),
        (["3", ":", "2"], [3, 2], [False, False]),
        (["98", ":", "95"], [98, 95], [False, False]),
        (["比分", "21", ":", "15"], [21, 15], [False, False]),
        (["8", "点", "20", "人", "到"], [8, 20], [False, False]),
        (["A380", "和", "3D"], [3], [False]),
        (["1,0000"], [1, 0], [False, False]),
        (["一成不变"], [1], [True]),
        (["三", "成功"], [3], [False]),
        (["三", "成", "一直", "在"], [0.3, 1], [False, True]),
        (["半", "小时"], [0.5], [True]),
        (["半", "数"], [], []),
    ],
)
def test_in_sentences(words, values, weak):
    found = [(number.value, number.weak) for number in numerals.find("".join(words), words)]
    assert found == [*zip(values, weak, strict=True)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("七十二 小时", "三 天", True),
        ("一 个 半 小时", "90 分钟", True),
        ("半 年", "六 个 月", True),
        ("3 个 多 小时", "180 分钟", True),
        ("3千 米", "3 公里", True),
        ("3 日", "3 号", True),
        ("50 周年", "50 年", True),
        ("涨 了 三成", "涨幅 30%", True),
        ("减少 三分之一", "剩 三分之二", True),
        ("降低 了 约 两成", "只有 80%", True),
        ("2kg", "两 公斤", True),
        ("八点 半", "20:30", True),
        ("八点 三十 分", "8:30", True),
        ("二十 点 一刻", "8:15", True),
        ("三 点 建议", "三 条", True),
        ("八点", "八点 半", False),
        ("8:30", "9:30", False),
        ("三 天", "三 小时", False),
        ("一 年", "12 天", False),
        ("减少 三成", "减 至 三成", False),
        ("三成", "三分之一", False),
        ("伍万 元", "五万 元", True),
        ("二○二四 年", "2024 年", True),
        ("15 时 30 分", "三点 半", True),
        ("2KM", "两 公里", True),
        ("到 -5 度", "到 5 度", False),
    ],
)
def test_the_same_quantities(one, other, same):
    one, other = (numerals.find(text.replace(" ", ""), text.split())[0] for text in (one, other))
    assert one.same(other) == other.same(one) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("23 亿", "23亿"), ("百分之 50", "50 %"), ("3 个小时", "三小时"), ("5 kg", "五公斤")),
        *(("降到-5", "零下五"), ("为−2%", "为-2%"), ("18-25", "18到25")),
    ],
)
def test_a_space_and_a_minus(one, other):
    one, other = (numerals.find(text, [*text])[-1] for text in (one, other))
    assert one.same(other)
    assert (one.value < 0) == (other.value < 0)


def test_random_words_stay_as_the_grammar_reads_them():
    """The file holds 600 random sentences, and the numbers that plain regular expressions found
    (tests/support/plain_numerals.py of commit 60dfc93); times of day were read by hand."""
    golden = Path(__file__).parents[1] / "golden/numerals.jsonl"
    for words, expected in map(json.loads, golden.read_text("utf-8").splitlines()):
        found = [[*number] for number in numerals.find("".join(words), words)]
        assert found == [pytest.approx(number, rel=1e-12, abs=1e-12) for number in expected], words
