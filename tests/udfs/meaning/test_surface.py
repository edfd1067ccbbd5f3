"""The surface columns must equal values by hand, and the kernel its definition."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.meaning import core_features, surface
from gaixie.udfs.text.code_points import from_strings, word_ends


def columns(source: str, paraphrase: str) -> dict[str, float]:
    """Returns the columns of sentences written 我/爱/北京."""
    texts = (from_strings([text.replace("/", "")]) for text in (source, paraphrase))
    words = (word_ends([text.split("/")]) for text in (source, paraphrase))
    row = core_features.count(*texts, *words)[0, : len(surface.NAMES)]
    return dict(zip(surface.NAMES, row.tolist(), strict=True))


GOLDEN = [
    # Words 昨天 我 看 书 -> 我 昨天 读 书. The LCS is 昨天书; 我 is inserted and deleted, 看 becomes
    # 读; of 5 characters 1 is new, of 4 bigrams 我昨 天读 读书, all 3 trigrams, both 4-grams.
    (
        *("昨天/我/看/书", "我/昨天/读/书"),
        {"chars_kept": 4 / 5, "chars_new": 1 / 5, "chars_lcs": 3 / 5, "chars_edit": 3 / 5}
        | {"chars_replaced": (5 + 5 - 6 - 3) / 5, "chars_moved": 1 / 4, "words_kept": 3 / 4}
        | {"chars_pinc": (1 / 5 + 3 / 4 + 1 + 1) / 4, "words_pinc": (1 / 4 + 1 + 1 + 1) / 4}
        | {"words_moved": 1 / 3, "char_runs": 2},
    ),
    # 他 [昨天] 打 [小明] -> 他 打 [了] [小红]: a gap without, and one with words on both sides.
    (
        *("他/昨天/打/小明", "他/打/了/小红"),
        {"gaps": 2, "gaps_replaced": 1, "gap_a": 2, "gap_b": 3, "moved": 0, "exchanged": 0},
    ),
    ("甲/打/了/乙", "乙/打/了/甲", {"moved": 2, "exchanged": 1}),
    (
        *("天/下雨/了/,/我/不/出门/。", "我/不/出门/,/天/下雨/了/,/真/好/。"),
        {"clauses_added": 1, "clauses_inverted": 1, "clause_worst": 1, "clause_lost": 1}
        | {"clause_new": 0},
    ),
    # Function words are 被 了 的.
    (
        *("你/的/书/。", "书/被/John/拿/了/吗/?/(/真/的"),
        {"end_changed": 1, "unbalanced": 1, "marks_added": 1, "latin_b": 4 / 11}
        | {"latin_added": 4, "function_b": 3 / 11, "function_lost": 0, "function_new": 2}
        | {"de_b": 1 / 11, "de_added": 0, "markers_new": 1},
    ),
]


@pytest.mark.parametrize(("source", "paraphrase", "expected"), GOLDEN)
def test_golden(source, paraphrase, expected):
    found = columns(source, paraphrase)
    assert {name: found[name] for name in expected} == pytest.approx(expected, nan_ok=True)


CLAUSES = ["甲一", "乙二", "丙三", "丁四"]


@given(st.permutations(CLAUSES), st.integers(0, 4))
def test_order_of_clauses(order, place):
    """Exchanged clauses must count and an inserted one must not; features.pmd gives 0 and more than
    0 there."""
    inverted = sum(p > q for p, q in combinations(map(order.index, CLAUSES), 2))
    for paraphrase in (order, [*order[:place], "戊五", *order[place:]]):
        found = columns("/,/".join(CLAUSES), "/,/".join(paraphrase))
        assert found["clauses_inverted"] == pytest.approx(inverted / 6)


def test_nothing_to_compare():
    for source, paraphrase in (("", ""), ("。", "。"), ("", "我"), ("我", ""), ("我", "你")):
        found = columns(source, paraphrase)
        assert math.isnan(found["words_inverted"])
        assert math.isnan(found["chars_moved"])
