"""The page of papers' figures: sections present or left out, and diversity by hand."""

import json

import pytest

pytest.importorskip("transformers", reason="a metric of identification is one of them")

from gaixie.research import report_simplifications
from gaixie.research.papers.diversity import human_diversity
from gaixie.research.reproduce_papers import main


def test_diversity_by_hand():
    found = human_diversity(
        {"a b c d": ["a b c d", "w x y z", "w x y z", "b c d e"], "one": ["two"]},
        *(2, None, "13a", 20),
    )
    assert (found["sources"], found["paraphrases"]) == (1, 2)  # no copy of the source, no duplicate
    row = {name: value["score"] for name, value in found["rows"]["Self-BLEU"].items()}
    assert row["min"] == 0
    assert row["max"] == pytest.approx(2 * row["mean"]) == pytest.approx(2 * row["sd"])
    # Exactly ``count`` paraphrases are all taken: 100 and 0, whose mean and sd are 50.
    given = {"a b c d": ["a b c d", "w x y z"], "e f g h": ["i j k l", "i j k l"]}
    row = human_diversity(given, 2, None, "13a", 20)["rows"]["Self-BLEU"]
    assert [row[name]["score"] for name in ("min", "mean", "sd", "max")] == [0, 25, 25, 50]
    with pytest.raises(ValueError, match="no source has 3 paraphrases"):
        human_diversity({"one": ["two"]}, 3, None, "13a")


def test_the_page(tmp_path, capsys):
    """The page must have a section for each command whose figures exist, and no other."""
    value = {"score": 0.9, "low": 0.8, "high": 1.0}
    rho = {"pairs": 9, "spearman": 0.4, "pearson": 0.5}
    rho |= {f"{kind}_{end}": 0.3 for kind in ("spearman", "pearson") for end in ("low", "high")}
    row = {"label": "lr", "real": rho | {"spearman": 0.71, "pearson": 0.72}}
    figures = {
        "generators/generators.json": {
            "reviews": 10,
            "intrinsic": {"PG1": {"pinc": value, "weem4pg": value}},
        },
        "cspc/paper/evaluation.json": {
            "ablation": [row],
            "correlations": {"real": {"spscore": rho}},
        },
        "cspc/paper/test.json": {"spscore": rho},
    }
    for name, own in figures.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(own))
    data = tmp_path / "mcts.dev"
    data.mkdir()
    for name, text in (("orig", "他罹患疾病。"), ("simp.0", "他生病了。"), ("simp.1", "他病了。")):
        (data / f"mcts.dev.{name}").write_text(text + "\n", "utf-8")
    assert report_simplifications.main(["--data", str(data), "--output", f"{tmp_path}/mcts"]) == 0
    page = tmp_path / "papers.md"
    assert main([str(tmp_path), "--page", str(page)]) == 0
    text = page.read_text("utf-8")
    for line in (
        "| a person, Table 5 | 48.11 | 61.62 | 46.25 | 39.50 |",
        "| a person, here | ",
        "4.17 ± 0.89",
        "| compression | ",
        "| spscore | 0.400 (0.300–0.300) | 0.500 (0.300–0.300) | ",
        "| lr | 0.710 (0.300–0.300) | 0.720 (0.300–0.300) | ",
        "10 hotel reviews (ChnSentiCorp):",
        "| PG1 | 0.900 (0.800–1.000)",
    ):
        assert line in text
    assert "## MultiPIT" not in text
    assert "multipit: left out: " in capsys.readouterr().err


def test_without_figures_the_page_stays(tmp_path, capsys):
    page = tmp_path / "p.md"
    page.write_text("as it was")
    assert main([str(tmp_path), "--page", str(page)]) == 2
    assert "has no figures, so there is no page to write" in capsys.readouterr().err
    assert page.read_text() == "as it was"
