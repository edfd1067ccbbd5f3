"""Entities: which are found, which overlapping one wins, and that no text makes it slow."""

import time
from pathlib import Path
from timeit import Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.entities import KINDS, EntityFinder, EntitySettings, load_settings
from gaixie.udfs.text.normalise import normalise

finder = EntityFinder(load_settings(Path(__file__).parents[3] / "conf/entities.yaml"))


def found(text: str) -> list[tuple[str, str]]:
    return [(kind, text[start:end]) for kind, start, end in finder.find(text)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *[("title", "他读完了[《平凡的世界》]。"), ("note", "长城[(又名万里长城)]很长")],
        *[("quote", "她说[“一路平安”]就走了"), ("quote", '她说["一路平安"]就走了')],
        *[("date", "事发[2024年3月5日]清早"), ("date", "事发[二〇二四年三月]清早")],
        *[("date", "事发[2024-03-05]清早"), ("date", "约在[2024 年 3 月 15 日]见")],
        *[("date", "约在[3/15]见"), ("date", "约在[3.15日]见"), ("date", "约在[3月15]见")],
        *[("date", "约在[星期三]见"), ("time", "约在[8:30]见"), ("time", "约在[下午三点半]见")],
        *[("percent", "涨了[12.5%]左右"), ("percent", "涨了[百分之三十五]左右")],
        *[("money", "花了[300万元]买下"), ("money", "花了[$1,200]买下")],
        *[("quantity", "走了[25.5公里]才到"), ("quantity", "来了[三百多名]学生")],
        *[("phone", "请打[13800138000]找他"), ("phone", "请打[+86 138 0013 8000]找他")],
        ("email", "请写信到[editor@example.org]询问"),
        ("url", "请看[https://example.org/a?b=c],谢谢"),
        *[("latin", "买了[iPhone 15 Pro]回家"), ("latin", "感染[COVID-19]以后")],
        ("number", "编号是[1,234,567]吗"),
    ],
)
def test_each_kind(kind, text):
    entity = text.partition("[")[2].partition("]")[0]
    assert found(text.replace("[", "").replace("]", "")) == [(kind, entity)]


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
        once = Timer(lambda: finder.find(text), timer=time.thread_time)
        return min(once.repeat(2, number=1))

    assert seconds(40_000) < 24 * seconds(5_000) + 0.05


@pytest.mark.parametrize(
    "text", ["kinds: [date, planet]", "longest: {title: 0}", "units: [[米, '']]"]
)
def test_bad_settings(tmp_path, text):
    path = tmp_path / "entities.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=f"^{path}: .+$"):
        load_settings(path)
