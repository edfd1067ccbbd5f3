"""Numbers by value: what people write, the kernel against the definition."""

from __future__ import annotations

import plain_numerals
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gaixie.udfs.text import numerals

VALUES = {
    "7": 7,
    "3000": 3000,
    "3,000": 3000,
    "1,234,567.5": 1234567.5,
    "0.75": 0.75,
    "12%": 0.12,
    "5‰": 0.005,
    "1.2万": 12000,
    "3亿": 3e8,
    "3千万": 3e7,
    "30多万": 300000,
    "十二": 12,
    "二十": 20,
    "两百": 200,
    "三千零五": 3005,
    "三万五": 35000,
    "二百五": 250,
    "一千二": 1200,
    "一万零三十": 10030,
    "一千二百万": 1.2e7,
    "一亿三千万": 1.3e8,
    "一万亿": 1e12,
    "二百零五万三千": 2053000,
    "一九九八": 1998,
    "二〇〇五": 2005,
    "三点五": 3.5,
    "三点一四": 3.14,
    "两点五万": 25000,
    "百分之三十": 0.3,
    "百分之12.5": 0.125,
    "三分之一": 1 / 3,
    "七八": 7.5,
    "三四百": 350,
    "三十多万": 300000,
    "一百余": 100,
}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_values(text, value):
    (number,) = plain_numerals.find(text, [text])
    assert number.value == pytest.approx(value, rel=1e-12)
    assert text[number.start : number.end] == text.removesuffix("余")
    assert not number.weak
    assert numerals.find(text, [text]) == [number]


@pytest.mark.parametrize(
    ("words", "values", "weak"),
    [
        (["一", "个", "人"], [1], [True]),
        (["一起", "去", "四川"], [1, 4], [True, True]),
        (["一心一意"], [1, 1], [True, True]),
        (["百姓", "有", "万一"], [100, 11000], [True, True]),
        (["十分", "千万"], [10, 1e7], [True, True]),
        (["第一", "名"], [1], [False]),
        (["一", "月", "一", "日"], [1, 1], [False, False]),
        (["三个", "人"], [3], [False]),
        (["2024", "年", "3", "月"], [2024, 3], [False, False]),
        (["八点", "二十", "分"], [8, 20], [False, False]),
        (["8", ":", "30"], [8, 30], [False, False]),
        (["A380", "和", "3D"], [3], [False]),
        (["1,0000"], [1, 0], [False, False]),
        (["没有", "数"], [], []),
    ],
)
def test_in_sentences(words, values, weak):
    text = "".join(words)
    numbers = plain_numerals.find(text, words)
    assert [number.value for number in numbers] == values
    assert [number.weak for number in numbers] == weak
    assert numerals.find(text, words) == numbers


PIECES = [*"0123456789,.%‰一二三两零〇十百千万亿点分之多余第年月个人a", "分之", "百分之", "10,000"]


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), max_size=8))
@example(["两", "点", "五万", "分", "之", "3.5%"])
@example(["十多十"])
def test_kernel_is_the_definition(words):
    text = "".join(words)
    numbers = plain_numerals.find(text, words)
    assert [n._replace(value=0.0) for n in numerals.find(text, words)] == [
        n._replace(value=0.0) for n in numbers
    ]
    values = [n.value for n in numerals.find(text, words)]
    assert values == pytest.approx([n.value for n in numbers], rel=1e-12)
