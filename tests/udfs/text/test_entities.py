"""Entities: which are found, which overlapping one wins, and that no text makes it slow."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.entities import KINDS, EntityFinder, EntitySettings, load_settings
from gaixie.udfs.text.normalise import normalise

CONFIG = Path(__file__).parents[3] / "conf/entities.yaml"
finder = EntityFinder(load_settings(CONFIG))


def found(text: str) -> list[tuple[str, str]]:
    return [(kind, text[start:end]) for kind, start, end in finder.find(text)]


@pytest.mark.parametrize(
    ("text", "kind", "entity"),
    [
        ("他读完了《平凡的世界》。", "title", "《平凡的世界》"),
        ("她说“一路平安”就走了", "quote", "“一路平安”"),
        ('她说"一路平安"就走了', "quote", '"一路平安"'),
        ("长城(又名万里长城)很长", "note", "(又名万里长城)"),
        ("事发2024年3月5日清早", "date", "2024年3月5日"),
        ("事发二〇二四年三月清早", "date", "二〇二四年三月"),
        ("事发2024-03-05清早", "date", "2024-03-05"),
        ("约在3/15见", "date", "3/15"),
        ("约在3.15日见", "date", "3.15日"),
        ("约在2024 年 3 月 15 日见", "date", "2024 年 3 月 15 日"),
        ("约在3月15见", "date", "3月15"),
        ("约在星期三见", "date", "星期三"),
        ("约在8:30见", "time", "8:30"),
        ("约在下午三点半见", "time", "下午三点半"),
        ("涨了12.5%左右", "percent", "12.5%"),
        ("涨了百分之三十五左右", "percent", "百分之三十五"),
        ("花了300万元买下", "money", "300万元"),
        ("花了$1,200买下", "money", "$1,200"),
        ("走了25.5公里才到", "quantity", "25.5公里"),
        ("来了三百多名学生", "quantity", "三百多名"),
        ("请打13800138000找他", "phone", "13800138000"),
        ("请打+86 138 0013 8000找他", "phone", "+86 138 0013 8000"),
        ("请写信到editor@example.org询问", "email", "editor@example.org"),
        ("请看https://example.org/a?b=c,谢谢", "url", "https://example.org/a?b=c"),
        ("买了iPhone 15 Pro回家", "latin", "iPhone 15 Pro"),
        ("感染COVID-19以后", "latin", "COVID-19"),
        ("编号是1,234,567吗", "number", "1,234,567"),
    ],
)
def test_each_kind(text, kind, entity):
    assert found(text) == [(kind, entity)]


@pytest.mark.parametrize("text", ["分13/45段", "分3/15/20段", "约3-15%", "共3-15人来"])
def test_numbers_that_are_no_dates(text):
    assert "date" not in [kind for kind, _ in found(text)]


def test_short_dates_are_off_unless_asked_for():
    old = EntityFinder(EntitySettings(kinds=("date", "number")))
    kinds = [e.kind for e in old.find("约在3/15见,3月15见")]
    assert kinds == ["number", "number", "date", "number"]  # 3, 15, 3月, 15


@pytest.mark.parametrize(
    "text",
    [
        "有一点,十分重要,一个人说了算",
        "他说“走了。然后没有回来",
        "第一(这里没有关上",
        "《" + "长" * 41 + "》",
        "“前一句。后一句”",
        "1" * 21,
        "版本1.2.3",
        "",
    ],
)
def test_what_is_none(text):
    assert found(text) == []


def test_the_first_wins_then_the_longest_then_the_order_of_kinds():
    assert found("《1984》里的2024年3月") == [("title", "《1984》"), ("date", "2024年3月")]
    assert found("(见《史记》,2014年)") == [("note", "(见《史记》,2014年)")]
    assert found("“他读《史记》”") == [("quote", "“他读《史记》”")]
    assert found("《论“语”》") == [("title", "《论“语”》")]
    assert found("(开着《史记》") == [("title", "《史记》")]  # the bracket is never closed
    first = EntityFinder(EntitySettings(kinds=("number", "date")))
    assert [entity.kind for entity in first.find("2024年")] == ["date"]  # longer than the number
    for kinds in (("latin", "number"), ("number", "latin")):
        both = EntityFinder(EntitySettings(kinds=kinds))
        assert [entity.kind for entity in both.find("第5G代")] == ["latin"]


MARKS = '《》“”()「」"年月日点分百一二0123.:,%$aB-@/ 。的元个'


@given(st.text(st.sampled_from(MARKS), max_size=60) | st.text())
def test_entities_are_in_order_and_in_the_text(text):
    text = normalise(text)
    place = 0
    for kind, start, end in finder.find(text):
        assert kind in KINDS
        assert place <= start < end <= len(text)
        place = end


@pytest.mark.parametrize("piece", ["[(《“", "1,111", "a.a."])
def test_no_text_takes_quadratic_time(piece):
    """Eight times the text must take about eight times as long, not 64 times."""

    def seconds(characters: int) -> float:
        text = (piece * characters)[:characters]
        best = float("inf")
        for _ in range(2):
            started = time.thread_time()
            finder.find(text)
            best = min(best, time.thread_time() - started)
        return best

    assert seconds(40_000) < 24 * seconds(5_000) + 0.05


@pytest.mark.parametrize(
    "text",
    ["kinds: [date, planet]", "kinds: [date, date]", "longest: {title: 0}", "units: [[米, '']]"],
)
def test_bad_settings(tmp_path, text):
    path = tmp_path / "entities.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=f"^{path}: .+$"):
        load_settings(path)
