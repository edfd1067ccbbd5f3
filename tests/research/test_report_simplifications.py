"""The report of simplifications: a small set by hand, MCTS's figures, and refused input."""

import json
from pathlib import Path

import pytest

from gaixie.research.report_simplifications import main


@pytest.fixture
def folder(tmp_path) -> Path:
    lines = {
        "orig": ["他罹患疾病。", "我很高兴。"],
        "simp.0": ["他生病了。", "我很高兴。"],
        "simp.1": ["他病了。", "我高兴。"],
    }
    for name, texts in lines.items():
        (tmp_path / f"small.dev.{name}").write_text("\n".join(texts) + "\n", "utf-8")
    return tmp_path


def test_a_small_set_by_hand(folder):
    system = folder / "system.txt"
    system.write_text("他生病了。\n我高兴。\n", "utf-8")
    line = ["--data", str(folder), "--output", str(folder / "out"), "--system", f"ours={system}"]
    assert main(line) == 0
    result = json.loads((folder / "out/simplifications.json").read_text("utf-8"))
    assert {*result["systems"]} == {"source", "a person", "person 0", "person 1", "ours"}
    assert result["systems"]["ours"]["bleu"]["score"] == pytest.approx(100)  # each is a reference
    people = [result["systems"][f"person {k}"]["sari"]["score"] for k in range(2)]
    assert result["systems"]["a person"]["sari"]["score"] == pytest.approx(sum(people) / 2)
    # 他 罹患 疾病 。 我 很 高兴 。: 他 我 很 高兴 are of levels 1 to 3
    assert result["systems"]["source"]["hsk-easy"]["score"] == pytest.approx(50)
    # 他 罹患 疾病: levels 1, 8 and 6; 我 很 高兴: 1. Only the first reaches level 3.54
    choice = result["choice"]["source"]
    assert choice["level"]["score"] == pytest.approx((15 / 3 + 1) / 2)
    assert choice["kept"]["score"] == pytest.approx(50)
    # one reference of four has 他病, one word to the segmenter, which no list has
    assert result["choice"]["a person"]["kept"]["score"] == pytest.approx(25)
    text = (folder / "out/simplifications.md").read_text("utf-8")
    assert "| ours | " in text
    assert "| a person | " in text


def test_a_mistake_is_one_line(folder, refused):
    (folder / "small.dev.simp.0").write_text("他\n", "utf-8")
    refused(main, ["--data", folder, "--output", folder / "out"], "small.dev.simp.0")
    assert not (folder / "out").exists()
