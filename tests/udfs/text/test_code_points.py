"""Python strings must survive the way to code points and back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.code_points import from_strings, to_strings


@given(st.lists(st.text(st.characters() | st.sampled_from("\ud800\x00𠮷"))))
def test_there_and_back(texts):
    text = from_strings(texts)
    assert to_strings(text) == texts
    assert (text.values.dtype, text.offsets.dtype) == (np.uint32, np.int64)
    assert np.diff(text.offsets).tolist() == [len(row) for row in texts]
    for row, (start, end) in enumerate(zip(text.offsets, text.offsets[1:], strict=False)):
        assert [chr(code) for code in text.values[start:end]] == list(texts[row])
