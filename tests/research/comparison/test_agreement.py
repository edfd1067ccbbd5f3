"""Weighted statistics against scipy and scikit-learn on the sample with its rows repeated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from gaixie.research.comparison import agreement
from gaixie.udfs.metrics.bootstrap import estimate_of

rows = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(-3, 3), st.integers(0, 3)), min_size=2, max_size=30
)


@settings(deadline=None, max_examples=100)
@given(rows)
def test_the_statistics_of_the_repeated_sample(sample):
    x, y, times = (np.array(column) for column in zip(*sample, strict=True))
    x, y = x / 3, y.astype(float)
    repeated_x, repeated_y = np.repeat(x, times), np.repeat(y, times)
    if len(np.unique(repeated_x)) < 2 or len(np.unique(repeated_y)) < 2:
        for statistic in (agreement.spearman, agreement.kendall, agreement.pearson):
            assert np.isnan(statistic(x, y, times[None]))
        return
    [r] = agreement.pearson(x, y, times[None])
    assert r == pytest.approx(stats.pearsonr(repeated_x, repeated_y).statistic, abs=1e-9)
    [rho] = agreement.spearman(x, y, times[None])
    assert rho == pytest.approx(stats.spearmanr(repeated_x, repeated_y).statistic, abs=1e-9)
    [tau] = agreement.kendall(x, y, times[None])
    assert tau == pytest.approx(stats.kendalltau(repeated_x, repeated_y).statistic, abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(rows)
def test_the_curves_of_the_repeated_sample(sample):
    x, y, times = (np.array(column) for column in zip(*sample, strict=True))
    x, labels = x / 3, (y > 0).astype(float)
    repeated_x, repeated = np.repeat(x, times), np.repeat(labels, times)
    [area] = agreement.auc(x, labels, times[None])
    [precision] = agreement.average_precision(x, labels, times[None])
    if len(np.unique(repeated)) < 2:
        assert np.isnan(area)
        return
    assert area == pytest.approx(roc_auc_score(repeated, repeated_x), abs=1e-9)
    assert precision == pytest.approx(average_precision_score(repeated, repeated_x), abs=1e-9)


def test_by_hand():
    """x against y = 1 2 3 / 1 3 2: one of three pairs is the wrong way round: tau = (2 − 1) / 3;
    rho = 1 − 6·(0 + 1 + 1) / (3·8) = 0.5."""
    x, y, once = np.array([1.0, 2, 3]), np.array([1.0, 3, 2]), np.ones((1, 3), np.int64)
    assert agreement.kendall(x, y, once) == pytest.approx(1 / 3)
    assert agreement.spearman(x, y, once) == pytest.approx(0.5)
    assert agreement.pearson(x, y, once) == pytest.approx(0.5)


def test_sources_are_drawn_whole():
    groups = np.array(["b", "a", "b", "c", "c", "c"])
    times = agreement.draw(groups, samples=50, seed=1)
    assert times.shape == (51, 6)
    assert (times[0] == 1).all()
    assert (times[:, 0] == times[:, 2]).all()
    assert (times[:, 3] == times[:, 5]).all()
    assert (times[1:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert len(np.unique(times, axis=0)) > 5
    np.testing.assert_array_equal(times, agreement.draw(groups, samples=50, seed=1))


def test_intervals_cover_what_they_should():
    """Of 200 samples of 80 pairs with a correlation of 0.5, about 95 % have it in their interval."""
    generator = np.random.default_rng(0)
    covered = 0
    for sample in range(200):
        x = generator.normal(size=80)
        y = 0.5 * x + np.sqrt(0.75) * generator.normal(size=80)
        times = agreement.draw(np.arange(80), samples=400, seed=sample)
        found = estimate_of(agreement.pearson(x, y, times))
        covered += found.low <= 0.5 <= found.high
    assert 178 <= covered <= 198  # 190 ± 4 standard deviations of 3.1, less a percentile's bias


def test_paired():
    """The better of two metrics is told from the worse, and a metric not from itself."""
    generator = np.random.default_rng(0)
    human = generator.normal(size=300)
    good, bad = human + generator.normal(size=300), human + 4 * generator.normal(size=300)
    times = agreement.draw(np.arange(300))
    found = [agreement.statistics_of(scores, human, times, False) for scores in (good, bad)]
    assert agreement.p_value((found[0]["spearman"] - found[1]["spearman"])[1:]) < 0.01
    assert agreement.p_value((found[0]["kendall"] - found[0]["kendall"])[1:]) == 1


def test_rows_without_a_score_are_left_out():
    scores = np.array([1.0, np.nan, 2.0, 3.0])
    human = np.array([1.0, 9.0, 2.0, 2.5])
    found = agreement.statistics_of(scores, human, np.ones((1, 4), np.int64), False)
    assert found["spearman"] == pytest.approx(1)
    found = agreement.statistics_of(np.full(4, np.nan), human, np.ones((1, 4), np.int64), False)
    assert np.isnan(found["kendall"]).all()
