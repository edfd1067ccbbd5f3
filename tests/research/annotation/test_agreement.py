"""research/annotation/agreement.py must give the published figures."""

import numpy as np
import pytest

from gaixie.research.annotation.agreement import krippendorff

_ = np.nan
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
"""Krippendorff 2011, section C: four observers, twelve units; the last unit has one answer."""
BINARY = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]], float).T
"""The same paper, section A: two observers, ten units."""


@pytest.mark.parametrize(
    ("answers", "alpha", "units", "given"), [(EXAMPLE, 0.815, 11, 40), (BINARY, 0.095, 10, 20)]
)
def test_krippendorffs_published_examples(answers, alpha, units, given):
    found = krippendorff(answers)
    assert found["value"] == pytest.approx(alpha, abs=5e-4)
    assert found["low"] < found["value"] < found["high"] <= 1
    assert (found["units"], found["answers"]) == (units, given)
    # The order of annotators does not matter.
    assert krippendorff(answers[:, ::-1]) == pytest.approx(found)


@pytest.mark.parametrize(
    ("answers", "alpha"),
    [
        ([[0, 0], [3, 3], [5, 5]], 1),
        ([[3, 3], [3, 3]], _),
        ([[1, _], [_, 2]], _),
        ([[0, 5], [5, 0], [0, 5], [5, 0]], -0.75),  # 1 − 7 · 8 · 16 / (2 · 4 · 4 · 16)
    ],
)
def test_alpha_by_hand(answers, alpha):
    found = krippendorff(np.array(answers, float), 0)["value"]
    assert found == pytest.approx(alpha, nan_ok=True)
