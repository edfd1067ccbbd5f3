"""Intervals of any statistic, by resampling groups."""

import numpy as np

from gaixie.research.ratings.resampling import bootstrap_interval
from gaixie.udfs.metrics.bootstrap import interval, resamples


def test_the_same_draws_serve_rows_and_counts():
    """A mean over the rows of drawn groups must equal the mean weighted by each group's draws."""
    groups = np.array([0, 0, 1, 2, 2, 2])
    values = np.array([1.0, 3.0, 10.0, 4.0, 5.0, 6.0])
    low, high = bootstrap_interval(np.mean, (values,), groups, samples=200, seed=3)
    sums, sizes = np.bincount(groups, values), np.bincount(groups)
    means = []
    for drawn in resamples(3, 200, seed=3):
        times = np.bincount(drawn, minlength=3)
        means.append(times @ sums / (times @ sizes))
    np.testing.assert_allclose(interval(means), (low, high))
