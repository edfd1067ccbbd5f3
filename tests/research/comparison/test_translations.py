"""Translations of a segment, ranked by metrics and by people."""

import json

import numpy as np
import pytest

from gaixie.research.comparison.translations import translations


@pytest.fixture
def judged(tmp_path):
    """Four documents of two segments; a text's length says how good people found it."""
    rows = [
        {"segment": f"{document}-{k}", "document": document, "text": "字" * n, "score": 10 * n}
        for document in "abcd"
        for k in range(2)
        for n in (1, 2, 3, 4)
    ]
    path = tmp_path / "judged.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_a_metric_that_ranks_as_people_do_has_tau_1_and_one_that_sees_nothing_0(judged):
    metrics = {
        "blind": lambda a, b: np.zeros(len(b)),
        "length": lambda a, b: np.array([len(text) for text in b]),
        "backwards": lambda a, b: -np.array([len(text) for text in b]),
        # Swaps the best two: 4 of 6 pairs of texts more are right than wrong.
        "swapped": lambda a, b: np.array([(0, 1, 2, 4, 3)[len(text)] for text in b]),
    }
    found = translations(judged, metrics)
    assert (found["documents"], found["segments"], found["texts"]) == (4, 8, 32)
    taus = {row["metric"]: row["tau"] for row in found["metrics"]}
    assert taus == pytest.approx({"length": 1, "swapped": 4 / 6, "blind": 0, "backwards": -1})
    assert found["metrics"][-1]["metric"] == "backwards"


def test_a_text_is_compared_with_every_other_of_its_segment(judged):
    seen = []
    metrics = {"seen": lambda a, b: seen.extend(zip(a, b, strict=True)) or np.zeros(len(b))}
    translations(judged, metrics)
    assert len(seen) == 8 * 4 * 3
    assert all(source != paraphrase for source, paraphrase in seen)
