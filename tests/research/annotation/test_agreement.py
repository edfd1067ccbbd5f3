"""research/annotation/agreement.py against published and hand-worked figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gaixie.research.annotation.agreement import kappas, krippendorff

_ = np.nan
EXAMPLE = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
"""Krippendorff 2011, section C: four observers, twelve units, missing values."""
BINARY = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]], float).T
"""The same paper, section A: two observers, ten units."""


@pytest.mark.parametrize(
    ("answers", "level", "alpha", "units", "given"),
    [
        (EXAMPLE, "nominal", 0.743, 11, 40),  # the last unit has one answer
        (EXAMPLE, "ordinal", 0.815, 11, 40),
        (EXAMPLE, "interval", 0.849, 11, 40),
        (BINARY, "nominal", 0.095, 10, 20),
        (BINARY, "ordinal", 0.095, 10, 20),
    ],
)
def test_krippendorffs_published_examples(answers, level, alpha, units, given):
    found = krippendorff(answers, level)
    assert found["value"] == pytest.approx(alpha, abs=5e-4)
    assert found["low"] < found["value"] < found["high"] <= 1
    assert (found["units"], found["answers"]) == (units, given)
    # The order of annotators does not matter.
    assert krippendorff(answers[:, ::-1], level) == pytest.approx(found)


def test_alpha_of_perfect_agreement_and_of_none():
    answers = np.array([[0, 0], [3, 3], [5, 5]], float)
    assert krippendorff(answers, "ordinal", 0)["value"] == 1
    assert np.isnan(krippendorff(np.full((4, 2), 3.0), "ordinal")["value"])
    assert np.isnan(krippendorff(np.array([[1, _], [_, 2]]), "interval")["value"])
    opposite = np.array([[0, 5], [5, 0], [0, 5], [5, 0]], float)
    assert krippendorff(opposite, "interval", 0)["value"] < 0


def test_weighted_kappa_by_hand():
    # Squared distances 0, 1, 1, 0: mean 1/2. By chance, over all 16 combinations of (0, 1, 2, 2)
    # and (0, 2, 1, 2): 0+4+1+4 + 1+1+0+1 + 2 (4+0+1+0) = 22: mean 11/8. 1 - (1/2) / (11/8) = 7/11.
    table = pd.DataFrame({"a": [0, 1, 2, 2.0, _], "b": [0, 2, 1, 2.0, _], "c": [_, _, _, 2, 2]})
    first, second, third = kappas(table)
    assert first["value"] == pytest.approx(7 / 11)
    assert (first["first"], first["second"], first["units"], first["same"]) == ("a", "b", 4, 0.5)
    assert [second["units"], third["units"]] == [1, 1]
    assert np.isnan(second["value"])
    # A distance is one of values, not of places among those that occur: mean 1/4, by chance
    # var(a) + var(b) + (mean(a) - mean(b))^2 = 6.25 + 5.1875 + 0.0625.
    [apart] = kappas(pd.DataFrame({"a": [0, 0, 5, 5.0], "b": [0, 1, 5, 5.0]}))
    assert apart["value"] == pytest.approx(1 - 0.25 / 11.5)
