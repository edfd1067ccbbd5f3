"""The prompt of causal models, and the degrees of change that pairs are given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.paraphrase.prompt import degree, overlap, prompt


def test_the_prompt():
    assert prompt("他在看书。", "4") == "原句：他在看书。\n改写4："
    assert prompt("他在看书。", "口语") == "原句：他在看书。\n改写口语："
    assert prompt("他在看书。") == "原句：他在看书。\n改写："


@pytest.mark.parametrize(
    ("source", "paraphrase", "shared"),
    [
        ("甲乙丙丁", "甲乙丙丁", 1),
        ("甲乙丙丁", "戊己庚辛", 0),
        # Bigrams 甲乙 乙丙 丙丁, and 甲乙 乙丙 丙戊: 2 × 2 / 6; trigrams: one of two, 2 × 1 / 4.
        ("甲乙丙丁", "甲乙丙戊", (2 / 3 + 1 / 2) / 2),
        # A bigram that occurs twice counts twice: 甲甲 2 of 3 and 2; 2 × 2 / 5, 2 × 1 / 3.
        ("甲甲甲甲", "甲甲甲", (4 / 5 + 2 / 3) / 2),
        ("甲", "甲", 0),
    ],
)
def test_overlap_by_hand(source, paraphrase, shared):
    assert overlap(source, paraphrase) == pytest.approx(shared)


@given(st.text("甲乙丙丁", max_size=20), st.text("甲乙丙丁", max_size=20))
def test_overlap_is_a_share_and_symmetric(source, paraphrase):
    assert 0 <= overlap(source, paraphrase) <= 1
    assert overlap(source, paraphrase) == overlap(paraphrase, source)
    assert 1 <= degree(source, paraphrase) <= 5


def test_degrees():
    """A copy must have degree 1, other words degree 5, and 0.58 of shared grams degree 1."""
    assert degree("甲乙丙丁", "甲乙丙丁") == degree("甲乙丙丁", "甲乙丙戊") == 1
    assert degree("甲乙丙丁", "戊己庚辛") == 5
    light = "海面平静得如同一面镜子。", "海面很平静，如同一面镜子。"
    full = "海面平静得如同一面镜子。", "没有一丝波澜，大海像镜面一样。"
    assert degree(*light) < degree(*full)
