"""Each rule must do what its docstring says, and touch nothing else."""

import re
from pathlib import Path

import pyarrow.json as pj
import pytest
import rjieba
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.paraphrase.edits import Edit, apply
from gaixie.udfs.paraphrase.rules import RULES, structural_edits
from gaixie.udfs.paraphrase.rules.tables import words
from gaixie.udfs.paraphrase.rules.view import View
from gaixie.udfs.paraphrase.rules.wordings import Wording, wording_edits, wordings

EXAMPLES = Path(__file__).parents[3] / "examples"


def edits(text: str) -> list[Edit]:
    return [Edit(*own) for own in structural_edits(text, rjieba.tag(text))]


@pytest.mark.parametrize(
    ("text", "rule", "expected"),
    [
        ("他一直没来，因为下雨了。", "the_reason_why", "他之所以一直没来，是因为下雨了。"),
        ("昨天市疾控中心确认了首例病例。", "time_after_subject", "市疾控中心昨天确认了首例病例。"),
        ("如果你太忙，可以不来。", "if_de_hua", "如果你太忙的话，可以不来。"),
        (
            "伤口如果又深又脏，应该打针。",
            "connective_before_subject",
            "如果伤口又深又脏，应该打针。",
        ),
        ("除了主角以外，没有人可信。", "except_frame", "除主角之外，没有人可信。"),
        ("请在周五下午三点前清走。", "weekday", "请在星期五下午三点前清走。"),
    ],
)
def test_what_a_rule_gives(text: str, rule: str, expected: str) -> None:
    given = {apply(text, [own]) for own in edits(text) if own.kind == rule}
    assert expected in given


@pytest.mark.parametrize(
    "text",
    ["他说：“我昨天没去。”", "《如果的事》卖得很好。", "3、4、5号选手依次上场。", "？！", "a"],
)
def test_brackets_and_quotes_stay_whole(text: str) -> None:
    for own in edits(text):
        after = apply(text, [own])
        assert [after.count(mark) for mark in "“”《》"] == [text.count(mark) for mark in "“”《》"]


@given(st.text(alphabet="我他她说在了把被比因为所以如果但是，。？“”《》的三天", max_size=40))
def test_an_edit_changes_its_span_alone(text: str) -> None:
    for own in edits(text):
        assert 0 <= own.start <= own.end <= len(text)
        assert own.new != text[own.start : own.end]
        assert not re.search("[，。；：]{2}", own.new)


def test_a_fifth_of_the_examples_has_an_edit() -> None:
    sources = sorted(set(pj.read_json(EXAMPLES / "pairs.jsonl")["source"].to_pylist()))
    assert sum(bool(edits(text)) for text in sources) >= len(sources) / 5
    assert all(own.kind in RULES for text in sources for own in edits(text))


@pytest.mark.parametrize("wording", wordings(), ids=lambda own: f"{own.source}>{own.give}")
def test_each_wording_gives_its_example(wording: Wording) -> None:
    register = None if wording.register == "all" else wording.register
    given = wording_edits(View(wording.source, rjieba.tag(wording.source)), register)
    assert wording.result in {apply(wording.source, [Edit(*own, "wording")]) for own, _ in given}


def test_written_wordings_leave_conversations_alone() -> None:
    written, spoken = "据统计，奶牛场每天产奶两吨。", "我们奶牛场每天产奶两吨。"
    news = {own[2] for own, _ in wording_edits(View(written, rjieba.tag(written)))}
    talk = {own[2] for own, _ in wording_edits(View(spoken, rjieba.tag(spoken)))}
    assert "每日" in news - talk


def test_the_lists_of_rules_name_rules() -> None:
    assert words("small") <= set(RULES)
