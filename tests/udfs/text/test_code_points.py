"""Python strings to code points and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.code_points import CodePoints, from_strings, to_strings

GOLDEN = [
    ([], [], [0]),
    ([""], [], [0, 0]),
    (["好"], [0x597D], [0, 1]),
    (["好", "", "a𠮷"], [0x597D, 0x61, 0x20BB7], [0, 1, 1, 3]),
    (["e\u0301"], [0x65, 0x301], [0, 2]),  # nothing is normalised
    (["\ud800\x00\U0010ffff"], [0xD800, 0, 0x10FFFF], [0, 3]),
]


@pytest.mark.parametrize(("texts", "values", "offsets"), GOLDEN)
def test_golden(texts, values, offsets):
    text = from_strings(texts)
    assert text.values.tolist() == values
    assert text.offsets.tolist() == offsets
    assert (text.values.dtype, text.offsets.dtype) == (np.uint32, np.int64)
    assert to_strings(text) == texts


@given(st.lists(st.text(st.characters())))
def test_there_and_back(texts):
    text = from_strings(texts)
    assert to_strings(text) == texts
    assert np.diff(text.offsets).tolist() == [len(row) for row in texts]
    for row, (start, end) in enumerate(zip(text.offsets, text.offsets[1:], strict=False)):
        assert [chr(code) for code in text.values[start:end]] == list(texts[row])


def test_rows_need_not_start_at_the_front():
    """A slice of a column: offsets that start later into the same characters."""
    text = from_strings(["今天", "天气", "很好"])
    assert to_strings(CodePoints(text.values, text.offsets[1:])) == ["天气", "很好"]
