"""Originals by the mean HSK level of their words: by hand, MCTS's own, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gaixie.research.choose_originals import main
from gaixie.research.simplification.measure import LEAST

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "mcts"
# 我 很 高兴: 1 each; 我 很 安慰: 1, 1, 5; 他 罹患 疾病: 1, 8 (in no list), 6; 。 and - are no words
LINES = ["我很高兴。", "我很安慰。", "他罹患疾病。", "---"]


@pytest.mark.parametrize(
    ("least", "kept"),
    [(1, LINES[:3]), (7 / 3, LINES[1:3]), (2.34, LINES[2:3]), (5, LINES[2:3]), (5.01, [])],
)
def test_by_hand(tmp_path, capsys, least, kept):
    (tmp_path / "in.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    line = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]
    assert main([*line, "--least", str(least)]) == 0
    assert (tmp_path / "out.txt").read_text("utf-8").splitlines() == kept
    assert f"{len(kept)} of 4 sentences" in capsys.readouterr().out


def test_a_table(tmp_path):
    (tmp_path / "in.csv").write_text("id,text\n" + "\n".join(f"1,{x}" for x in LINES), "utf-8")
    line = ["--input", str(tmp_path / "in.csv"), "--output", str(tmp_path / "out.txt")]
    assert main([*line, "--column", "text"]) == 0
    assert (tmp_path / "out.txt").read_text("utf-8") == "他罹患疾病。\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--least", "0"], "--least 0: expected a level from 1 to 8"),
        (["--column", "text"], "no column 'text'"),
        ([], "line 1: not UTF-8"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, more, message):
    path = tmp_path / "in.csv"
    path.write_bytes(b"id\n1\n" if more else b"\xff\n")
    assert main(["--input", str(path), "--output", str(tmp_path / "out.txt"), *more]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the shared corpora in {DATA}")
def test_the_threshold_is_that_of_mcts(tmp_path):
    """95 % of the 366 development originals are at the default or above, and fewer of what people made."""
    shares = []
    for name in ("orig", "simp.0"):
        line = ["--input", str(DATA / f"mcts.dev.{name}"), "--output", str(tmp_path / name)]
        assert main([*line, "--least", str(LEAST)]) == 0
        shares.append(len((tmp_path / name).read_text("utf-8").splitlines()) / 366)
    assert shares[0] == pytest.approx(0.95, abs=0.01)
    assert shares[1] < 0.9
