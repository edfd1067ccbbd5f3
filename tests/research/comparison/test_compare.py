"""Statistics of resamples: rows without a score, paired tests, and coverage of intervals."""

import numpy as np
import pytest

from gaixie.research.comparison import compare


def test_by_hand():
    """Statistics must equal those by hand, without the row that has no score.

    For 1 2 3 against 1 3 2, rho = 1 − 6·(0 + 1 + 1) / (3·8) = 0.5.
    """
    x, y = np.array([1.0, 2, np.nan, 3]), np.array([1.0, 3, 9, 2])
    for name in ("pearson", "spearman"):
        assert compare.statistic_of(name, x, y, [np.arange(4)]) == pytest.approx(0.5)
    # Two of three positives are above the negative.
    x, labels = np.array([1.0, 2, 3, 4]), np.array([1.0, 0, 1, 1])
    assert compare.statistic_of("auc", x, labels, [np.arange(4)]) == pytest.approx(2 / 3)
    for nothing in (np.full(4, np.nan), np.ones(4)):
        assert np.isnan(compare.statistic_of("spearman", nothing, y, [np.arange(4)])).all()


def test_paired():
    """The paired test must tell a better metric from a worse one, but not a metric from itself."""
    generator = np.random.default_rng(0)
    human = generator.normal(size=300)
    good, bad = human + generator.normal(size=300), human + 4 * generator.normal(size=300)
    drawn = compare.draw(np.arange(300), 200)
    found = [compare.statistic_of("spearman", scores, human, drawn) for scores in (good, bad)]
    assert compare.p_value((found[0] - found[1])[1:]) < 0.02
    assert compare.p_value((found[0] - found[0])[1:]) == 1
    assert compare.p_value(np.ones(99)) == pytest.approx(2 / 100)
