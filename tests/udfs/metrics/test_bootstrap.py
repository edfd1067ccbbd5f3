"""Intervals by resampling groups must be reproducible and right."""

import numpy as np

from gaixie.udfs.metrics import bootstrap
from gaixie.udfs.metrics.bootstrap import bootstrap_interval


def test_bootstrap_interval_holds_the_mean():
    values = np.random.default_rng(0).normal(3, 1, 400)
    low, high = bootstrap_interval(lambda column: column.mean(), (values,), np.arange(400))
    assert low < values.mean() < high
    assert 0.15 < high - low < 0.25


def test_the_same_draws_serve_rows_and_counts():
    """A mean over the rows of drawn groups must equal the mean weighted by each group's draws."""
    groups = np.array([0, 0, 1, 2, 2, 2])
    values = np.array([1.0, 3.0, 10.0, 4.0, 5.0, 6.0])
    low, high = bootstrap_interval(np.mean, (values,), groups, samples=200, seed=3)
    sums, sizes = np.bincount(groups, values), np.bincount(groups)
    means = []
    for drawn in bootstrap.resamples(3, 200, seed=3):
        times = np.bincount(drawn, minlength=3)
        means.append(times @ sums / (times @ sizes))
    np.testing.assert_allclose(bootstrap.interval(means), (low, high))


def test_an_interval_of_nothing():
    assert np.isnan(bootstrap.interval([np.nan, np.inf])).all()
    assert bootstrap.interval([np.nan, 2.0]) == (2.0, 2.0)
