"""gaixie check: its exit codes by share of good pairs, and its output."""

import json

import pytest

from gaixie.udfs import check

ROWS = [
    {"source": "他昨天没有去北京。", "paraphrase": "三家银行下个月会降低利率。"},
    {"source": "会议推迟到了下周。", "paraphrase": "会议延期到下个星期。"},
    {"source": "今天天气很好。", "paraphrase": None},
]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return str(path)


def test_too_few_pass(pairs, capsys) -> None:
    assert check.main([pairs, "--min-meaning", "0.5"]) == 1
    first, *others = capsys.readouterr().out.splitlines()
    assert "row 1: meaning 0." in first
    assert "the negation “没有” is dropped" in "".join(others)
    assert "row 3: meaning unknown" in "".join(others)
    assert "1 of 3 pairs pass (33.3%), 100.0% required; SPScore-zh|" in others[-1]


def test_enough_pass(pairs, capsys) -> None:
    assert check.main([pairs, "--min-meaning", "0.5", "--share", "0.3", "--show", "1"]) == 0
    assert "… and 1 more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "expected --min-score, --min-meaning or another floor"),
        (["--min-score", "4"], "spscore: expected 0 to 1, not 4"),
        (["--min-score", "0.4", "--source", "原句"], "原句"),
    ],
)
def test_mistakes(pairs, line, said, capsys) -> None:
    assert check.main([pairs, *line]) == 2
    assert said in capsys.readouterr().err
