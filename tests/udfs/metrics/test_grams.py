"""Any Arrow column of strings is cut into tokens; BLEU, ROUGE and PINC show that they are right."""

import pyarrow as pa
import pytest

from gaixie.udfs.metrics.grams import overlap, tokenize_columns


def test_any_arrow_layout_of_strings():
    texts = ["春眠", None, "不觉晓", "𠮷 家", ""]
    whole = pa.array(["x", *texts, "y"])
    expected = tokenize_columns([pa.array(texts)], "char")
    for column in (whole.slice(1, 5), pa.array(texts, pa.large_string())):
        found = tokenize_columns([column], "char")
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    empty = tokenize_columns([pa.array([], pa.string())] * 2, "char")
    assert overlap(empty, 4).matches.shape == (0, 4)


def test_bytes_that_are_not_utf8_are_refused():
    array = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(UnicodeDecodeError):
        tokenize_columns([array], "char")
