"""Identification: thresholds and labels by hand, a training that resumes, the model as a metric."""

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_models import tiny_bert

from gaixie.research import identify_paraphrases as script
from gaixie.udfs.metrics import Pairs, load_metric

# By hand


def test_f1_and_threshold():
    label = np.array([True, True, False, False])
    said = np.array([True, False, True, False])
    assert script.f1(label, said) == 0.5
    assert script.f1(label, ~label) == 0
    probability = np.array([0.9, 0.3, 0.4, 0.1])
    # above 0.2: 2 of 3 right, none missed, F1 0.8; above 0.65: 1 of 1 right, one missed, F1 2/3;
    # all: F1 2/3
    assert script.best_threshold(label, probability) == pytest.approx(0.2)
    assert script.best_threshold(np.array([True, True]), np.array([0.3, 0.3])) < 0.3


def test_a_half_is_judged_by_the_other():
    label = np.arange(60) % 2 == 1
    pairs = pd.DataFrame({"source": [f"s{k}" for k in range(60)], "label": label})
    assert (script.crossed(pairs, 0.2 * label) == label).all()
    found = script.report((pairs, 1.0 * label), (pairs, 1.0 * label), samples=20)
    assert found["half"]["f1"] == found["auc"] == {"score": 1, "low": 1, "high": 1}


def test_ties_of_crowd_judgements_are_left_out(tmp_path):
    rows = "".join(f"s{k}\tp{k}\t{votes}\n" for k, votes in enumerate((0, 2, 3, 4, 6)))
    (tmp_path / "crowd.tsv").write_text("source\tparaphrase\thuman\n" + rows)
    crowd = script.PairSet(name="crowd", path="crowd.tsv", positive=4, tie=3)
    assert script.read_pairs(crowd, tmp_path).label.tolist() == [0, 0, 1, 1]


# The command


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Returns pairs that are paraphrases if they begin with the same character; read-only."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    rows = []
    for number in range(40):
        first = "我你他"[number % 3]
        source = first + "".join(rng.choice(list("今天气很好"), 3)) + "abc"[number % 3] * 2
        for second in "我你他":
            label = int(second == first)
            rows.append(f"{source}\t{second}{''.join(rng.choice(list('北京上海'), 2))}\t{label}")
    (folder / "one.tsv").write_text("a\tb\tlabel\n" + "\n".join(rows) + "\n", "utf-8")
    keys = "source: a, paraphrase: b, human: label, labels: true"
    (folder / "sets.yaml").write_text(f"sets:\n  - {{name: one, path: one.tsv, {keys}}}\n")
    return folder


def line(data: Path, encoder: str, output: Path, *more: str) -> list[str]:
    first = ["--config", str(data / "sets.yaml"), "--data", str(data), "--encoder", encoder]
    return [*first, "--output", str(output), *more]


def test_members_are_averaged_in_report_and_metric(data, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "EPOCHS", 1)
    monkeypatch.setattr(script, "FROZEN", 0)
    monkeypatch.setattr(script, "report", partial(script.report, samples=20))
    model, encoder = tmp_path / "model", tiny_bert(tmp_path / "encoder", layers=1)
    assert script.main(line(data, encoder, model, "--members", "2")) == 0
    assert len(json.loads((model / "identification.json").read_text("utf-8"))["members"]) == 2
    assert "| member 1 |" in (model / "identification.md").read_text("utf-8")

    def scores(folder: Path, source: list, paraphrase: list, more: str = "") -> np.ndarray:
        metric = load_metric(f"identification:model={folder}{more}")
        return metric.sentence_scores(Pairs.of(source, paraphrase))

    pairs = ["我今天", None, "他很好"], ["我北京", "我", "你上海"]
    assert np.isnan(scores(model, *pairs)).tolist() == [False, True, False]
    there = scores(model, *pairs, ":both=false")
    back = scores(model, *pairs[::-1], ":both=false")
    assert scores(model, *pairs) == pytest.approx((there + back) / 2, nan_ok=True)
    alone = []
    for name, folder in (("one", model), ("other", model / "member-1")):  # without other members
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("member-*"))
        alone.append(scores(tmp_path / name, *pairs, ":both=false"))
    assert not np.allclose(*alone, atol=1e-6, equal_nan=True)
    odds = np.exp(np.mean([np.log(p / (1 - p)) for p in alone], axis=0))
    assert there == pytest.approx(odds / (1 + odds), rel=1e-5, nan_ok=True)
    signature = load_metric(f"identification:model={model}").signature()
    assert "Identification|model:model@" in signature
    assert signature.count("member:member-") == 1


def test_a_mistake_is_one_line(data, tmp_path, refused):
    refused(script.main, [*line(data, "none", tmp_path / "out"), "--set", "none"], "none")
