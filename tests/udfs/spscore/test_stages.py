"""Stages, bins and quantiles must equal plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.spscore.stages import SCORE_BINS, quantile, stage

CUTS = (0.4, 0.5, 0.6)


def test_golden():
    """A cut must belong to the stage above it, also as float32."""
    below = np.nextafter(np.float32(0.4), np.float32(0))
    result = stage(np.array([0.0, 0.4, below, 0.5, 0.6, math.nan], np.float32), CUTS)
    assert result.dtype == np.int8
    assert result.tolist() == [0, 1, 0, 2, 3, 0]


def test_meaning_below_the_least_keeps_a_pair_in_stage_1():
    scores = np.array([0.3, 0.45, 0.55, 0.7, 0.7, math.nan], np.float32)
    meaning = np.array([0.1, 0.79, 0.79, 0.79, 0.8, 0.1], np.float32)
    assert stage(scores, CUTS, meaning, 0.8).tolist() == [0, 1, 1, 1, 3, 0]
    assert stage(scores, CUTS, meaning).tolist() == [0, 1, 2, 3, 3, 0]


SCORES = st.lists(st.one_of(st.just(math.nan), st.floats(0, 1, width=32), st.sampled_from(CUTS)))
THREE_CUTS = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)


@given(SCORES, THREE_CUTS)
def test_stage_is_how_many_cuts_a_score_reaches(scores, cuts):
    expected = [
        sum(float(np.float32(score)) >= float(np.float32(cut)) for cut in cuts) for score in scores
    ]
    assert stage(np.array(scores, np.float32), cuts).tolist() == expected


# Quantiles


@pytest.mark.parametrize(
    ("bins", "share", "expected"),
    [
        # Half of the ten pairs are in bins 1000 and 2000, so the cut is the edge above 2000.
        ({1000: 3, 2000: 2, 3000: 5}, 0.5, 0.20005),
        ({1000: 3, 2000: 2, 3000: 5}, 0.31, 0.20005),
        ({3000: 5, 1000: 3, 2000: 2}, 0.5, 0.20005),  # in any order
        ({1000: 3, 2000: 2, 3000: 5}, 0.0, 0.0),  # no pair is below 0
        ({1000: 0, 2000: 4}, 0.5, 0.20005),  # an empty bin does not count
        ({}, 0.5, math.nan),
        ({5000: 1, SCORE_BINS: 3}, 0.5, 1.00005),  # above the highest score
    ],
)
def test_quantile_golden(bins, share, expected):
    assert quantile(bins, share) == pytest.approx(expected, rel=1e-6, nan_ok=True)


COUNTS = st.dictionaries(st.integers(0, SCORE_BINS), st.integers(1, 1000), min_size=1, max_size=8)


@given(COUNTS, st.one_of(st.floats(0.001, 1), st.integers(1, 100).map(lambda k: k / 100)))
def test_quantile_leaves_the_share_below_and_no_bin_more(bins, share):
    total = sum(bins.values())

    def below(score):
        return sum(n for index, n in bins.items() if index / SCORE_BINS < score)

    cut = quantile(bins, share)
    assert below(cut) >= share * total
    # The next lower edge of a bin would not do.
    lower = max((index for index in bins if index / SCORE_BINS < cut), default=0)
    assert below((lower - 0.5) / SCORE_BINS) < share * total


def test_a_cut_never_divides_a_bin():
    """Bins and stages must agree on both sides of a cut, as quantile's docstring promises."""
    for index in range(SCORE_BINS + 1):
        cut = quantile({index: 1}, 1.0)
        near = np.nextafter(np.float32(cut), np.float32([0, cut, 1]))
        above = np.floor(near.astype(float) * SCORE_BINS + 0.5) > index
        assert ((stage(near, (cut,)) >= 1) == above).all(), index
