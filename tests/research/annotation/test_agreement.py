"""research/annotation/agreement.py against published and hand-worked figures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from gaixie.research.annotation.agreement import kappas, krippendorff, weighted_kappa, with_the_rest

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


@pytest.mark.parametrize(
    ("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorffs_published_example(level, alpha):
    found = krippendorff(EXAMPLE, level)
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.low < found.value < found.high <= 1
    assert (found.units, found.answers) == (11, 40)  # the last unit has one answer


def test_krippendorffs_binary_example():
    """The same paper, section A: two observers, ten units, alpha 0.095."""
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    answers = np.array([first, second], float).T
    assert krippendorff(answers, "nominal", 0).value == pytest.approx(0.095, abs=5e-4)
    ordinal = krippendorff(answers, "ordinal", 0).value
    assert ordinal == pytest.approx(krippendorff(answers, "nominal", 0).value)


def test_alpha_of_perfect_agreement_and_of_none():
    answers = np.array([[0, 0], [3, 3], [5, 5]], float)
    assert krippendorff(answers, "ordinal", 0).value == 1
    assert np.isnan(krippendorff(np.full((4, 2), 3.0), "ordinal").value)
    assert np.isnan(krippendorff(np.array([[1, _], [_, 2]]), "interval").value)
    opposite = np.array([[0, 5], [5, 0], [0, 5], [5, 0]], float)
    assert krippendorff(opposite, "interval", 0).value < 0


def test_an_interval_does_not_depend_on_the_order_of_annotators():
    a, b = krippendorff(EXAMPLE, "ordinal"), krippendorff(EXAMPLE[:, ::-1], "ordinal")
    assert a == pytest.approx(b)
    assert krippendorff(EXAMPLE, "ordinal", seed=1).low != a.low


def test_weighted_kappa_by_hand():
    # Squared distances 0, 1, 1, 0: mean 1/2. By chance, over all 16 combinations of (0, 1, 2, 2)
    # and (0, 2, 1, 2): 0+4+1+4 + 1+1+0+1 + 2 (4+0+1+0) = 22: mean 11/8. 1 - (1/2) / (11/8) = 7/11.
    first, second = np.array([0, 1, 2, 2.0]), np.array([0, 2, 1, 2.0])
    assert weighted_kappa(first, second) == pytest.approx(7 / 11)
    assert np.isnan(weighted_kappa(np.ones(3), np.ones(3)))


def test_weighted_kappa_is_scikit_learns():
    draw = np.random.default_rng(3)
    first = draw.integers(0, 6, 80)
    second = np.clip(first + draw.integers(-2, 3, 80), 0, 5)
    expected = cohen_kappa_score(first, second, weights="quadratic")
    assert weighted_kappa(first.astype(float), second.astype(float)) == pytest.approx(expected)


def test_kappas_of_those_who_met():
    answers = np.array([[1, 1, _], [2, 3, _], [4, 4, _], [_, 2, 2]])
    found = kappas(answers, ["a", "b", "c"])
    assert [(k.first, k.second, k.units) for k in found] == [("a", "b", 3), ("b", "c", 1)]
    assert found[0].same == pytest.approx(2 / 3)


def test_each_annotator_with_the_rest():
    answers = np.array([[0, 1, 1], [2, 3, 3], [4, 5, 5], [1, 2, 2.0]])
    a, b, _c = with_the_rest(answers, ["a", "b", "c"])
    assert (a.difference, a.distance, a.spearman) == (-1, 1, pytest.approx(1))
    assert b.difference == pytest.approx(0.5)
