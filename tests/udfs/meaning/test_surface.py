"""The surface columns: by hand, and the kernel against the definition."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import plain_surface
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.meaning import counted, numbering, surface
from gaixie.udfs.text.code_points import from_strings, word_ends


def by_kernel(sources: list[list[str]], paraphrases: list[list[str]]) -> np.ndarray:
    a, b = (from_strings(["".join(words) for words in rows]) for rows in (sources, paraphrases))
    rows = counted.features(a, b, word_ends(sources), word_ends(paraphrases))
    return rows[:, : len(surface.NAMES)]


def by_reference(source: list[str], paraphrase: list[str]) -> np.ndarray:
    found = plain_surface.reference("".join(source), "".join(paraphrase), source, paraphrase)
    assert tuple(found) == surface.NAMES
    return np.array([*found.values()], np.float32)


def columns(source: str, paraphrase: str) -> dict[str, float]:
    """Of sentences written 我/爱/北京, by both ways."""
    source, paraphrase = source.split("/"), paraphrase.split("/")
    row = by_kernel([source], [paraphrase])[0]
    np.testing.assert_array_equal(row, by_reference(source, paraphrase))
    return dict(zip(surface.NAMES, row.tolist(), strict=True))


def test_units():
    # Words 昨天 我 看 书 -> 我 昨天 读 书; characters 昨天我看书 -> 我昨天读书.
    found = columns("昨天/我/看/书", "我/昨天/读/书")
    assert found["chars_kept"] == pytest.approx(4 / 5)
    assert found["chars_new"] == pytest.approx(1 / 5)
    assert found["chars_lcs"] == pytest.approx(3 / 5)  # 昨天书
    assert found["chars_edit"] == pytest.approx(3 / 5)  # 我 in, 我 out, 看 to 读
    assert found["chars_replaced"] == pytest.approx((5 + 5 - 6 - 3) / 5)
    assert found["chars_moved"] == pytest.approx(1 / 4)
    # 1 of 5 characters is new, of 4 pairs 我昨 天读 读书, of 3 all, of 2 all.
    assert found["chars_pinc"] == pytest.approx((1 / 5 + 3 / 4 + 1 + 1) / 4)
    assert found["words_kept"] == pytest.approx(3 / 4)
    assert found["words_pinc"] == pytest.approx((1 / 4 + 1 + 1 + 1) / 4)
    assert found["words_moved"] == pytest.approx(1 / 3)
    assert found["char_runs"] == 2


def test_choice_of_words():
    found = columns("他/帮助/老人/买/票", "他/帮忙/老人/订购/票/票")
    assert found["words_added"] == 1
    assert found["words_repeated"] == 1
    assert found["long_kept"] == pytest.approx(1 / 2)
    assert found["long_new"] == pytest.approx(2 / 3)
    assert found["half_lost"] == pytest.approx(1 / 2)  # 帮助, not 买
    assert found["half_new"] == pytest.approx(1 / 3)  # 帮忙, not 订购 nor the second 票
    assert (found["whole_lost"], found["whole_new"]) == (0, 1)


def test_order():
    found = columns("昨天/我/看/书/了", "哦/我/看/书/昨天/吗")
    assert found["words_inverted"] == pytest.approx(3 / 6)  # 昨天 with 我, 看 and 书
    assert found["first_at"] == pytest.approx(4 / 6)
    assert found["last_at"] == pytest.approx(4 / 6)
    assert found["first_lost"] == 0
    assert found["last_lost"] == pytest.approx(1 / 5)


def test_gaps():
    # 他 [昨天] 打 [小明] -> 他 打 [了] [小红]: a gap without, and one with words on both sides.
    found = columns("他/昨天/打/小明", "他/打/了/小红")
    assert (found["gaps"], found["gaps_replaced"]) == (2, 1)
    assert (found["gap_a"], found["gap_b"]) == (2, 3)
    assert (found["moved"], found["exchanged"]) == (0, 0)


def test_exchange():
    swapped = columns("甲/打/了/乙", "乙/打/了/甲")
    assert (swapped["moved"], swapped["exchanged"]) == (2, 1)
    moved = columns("今天/明天/我/很/忙", "我/很/忙/今天/明天")
    assert (moved["moved"], moved["exchanged"]) == (2, 0)


def test_clauses():
    found = columns("天/下雨/了/,/我/不/出门/。", "我/不/出门/,/天/下雨/了/,/真/好/。")
    assert found["clauses_added"] == 1
    assert found["clauses_inverted"] == 1
    assert found["clause_worst"] == 1
    assert (found["clause_lost"], found["clause_new"]) == (1, 0)
    lost = columns("天/下雨/了/,/我/不/出门/。", "我/不/出门/。")
    assert (lost["clause_worst"], lost["clause_lost"], lost["clauses_added"]) == (0, 0, -1)
    assert math.isnan(lost["clauses_inverted"])


def test_many_clauses():
    clauses = ["甲一", "乙二", "丙三", "丁四", "戊五", "己六"]
    found = columns("/,/".join(clauses), "/,/".join(reversed(clauses)))
    assert found["clauses_inverted"] == 1
    assert found["clause_worst"] == 1


CLAUSES = ["甲一", "乙二", "丙三", "丁四"]


@given(st.permutations(CLAUSES), st.integers(0, 4))
def test_order_of_clauses(order, place):
    """Exchanges count, an insertion does not: where features.pmd says 0 and more than 0."""
    places = [order.index(clause) for clause in CLAUSES]
    inverted = sum(p > q for p, q in combinations(places, 2))
    longer = [*order[:place], "戊五", *order[place:]]
    for paraphrase in (order, longer):
        found = columns("/,/".join(CLAUSES), "/,/".join(paraphrase))
        assert found["clauses_inverted"] == pytest.approx(inverted / 6)


def test_the_first_two_of_three_clauses():
    found = columns("天黑了/,/我们/回家/,/吃/晚饭", "我们/回家/,/天黑了/,/吃/晚饭")
    assert found["clauses_inverted"] == pytest.approx(1 / 3)


def test_stretches():
    found = columns("我们/爱/吃/鱼", "我们/都/喜欢/吃/鱼")
    assert (found["stretch_new"], found["stretch_lost"]) == (3, 1)
    assert found["head_kept"] == pytest.approx(2 / 5)
    assert found["tail_kept"] == pytest.approx(2 / 5)


def test_marks():
    found = columns("你/的/书/。", "书/被/John/拿/了/吗/?/(/真/的")
    assert found["end_changed"] == 1
    assert found["unbalanced"] == 1
    assert found["marks_added"] == 1
    assert found["latin_b"] == pytest.approx(4 / 11)
    assert found["latin_added"] == 4
    assert found["function_b"] == pytest.approx(3 / 11)  # 被 了 的
    assert (found["function_lost"], found["function_new"]) == (0, 2)
    assert (found["de_b"], found["de_added"]) == (pytest.approx(1 / 11), 0)
    assert found["markers_new"] == 1


def test_a_copy_changes_nothing():
    found = columns(*["今天/天气/很/好/,/我们/去/公园/。"] * 2)
    kept = {
        "chars_kept",
        "words_kept",
        "chars_lcs",
        "words_lcs",
        "long_kept",
        "last_at",
        "head_kept",
    }
    kept |= {"tail_kept", "clause_worst", "clause_lost", "clause_new", "char_runs"}
    none = {"half_lost", "half_new"}
    assert {name for name, value in found.items() if value == 1} == kept
    assert {name for name, value in found.items() if math.isnan(value)} == none
    assert {name for name, value in found.items() if value != 0} == kept | none | {"function_b"}


def test_nothing_to_compare():
    for source, paraphrase in (("", ""), ("。", "。"), ("", "我"), ("我", ""), ("我", "你")):
        found = columns(source, paraphrase)
        assert math.isnan(found["words_inverted"])
        assert math.isnan(found["chars_moved"])


def test_too_long():
    text = ["甲"] * (numbering.LONGEST + 1)
    rows = by_kernel([text, ["甲"]], [["乙"], ["甲"]])
    assert np.isnan(rows[0]).all()
    assert rows[1, 0] == 1
    assert np.isnan(by_reference(text, ["乙"])).all()


WORDS = st.lists(st.text('甲乙丙的了被aB1·,。?!;"《》() 𠀀é', min_size=1, max_size=5), max_size=12)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3))
def test_kernel_is_the_definition(pairs):
    rows = by_kernel(*map(list, zip(*pairs, strict=True)))
    for row, pair in zip(rows, pairs, strict=True):
        np.testing.assert_allclose(row, by_reference(*pair), rtol=1e-6)


@given(
    st.lists(st.sampled_from(["甲", "乙丙", "丁", "戊己庚", "，", ",", "的"]), max_size=90),
    st.randoms(),
)
def test_long_sentences(words, random):
    other = list(words)
    for _ in range(len(words) // 4):
        other.insert(random.randrange(len(other)), other.pop(random.randrange(len(other))))
    np.testing.assert_allclose(
        by_kernel([words], [other])[0], by_reference(words, other), rtol=1e-6
    )
