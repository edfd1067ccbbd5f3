"""Tokens must be cut like sacrebleu's and rouge_score's; shared n-grams must equal plain counts."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.metrics.grams import overlap, tokenize_columns, tokenizer

ANY = st.text(st.characters(codec="utf-8"), max_size=12)
SHARING = st.text("的一是 𠮷", max_size=40)
COLUMN = st.lists(st.one_of(st.none(), ANY, SHARING), min_size=3, max_size=3)


def tokens_of(tokens, column):
    offsets = tokens.offsets[column]
    return [tokens.values[offsets[i] : offsets[i + 1]].tolist() for i in range(len(offsets) - 1)]


@given(COLUMN, COLUMN)
def test_characters_are_sacrebleus(first, second):
    columns = [pa.array(column, pa.string()) for column in (first, second)]
    tokens = tokenize_columns(columns, "char")
    for c, column in enumerate((first, second)):
        expected = [[ord(t) for t in tokenizer("char")(text or "")] for text in column]
        assert tokens_of(tokens, c) == expected
        assert tokens.present[c].tolist() == [text is not None for text in column]


@pytest.mark.parametrize("name", ["zh", "13a", "word"])
def test_words_have_one_id_in_all_columns(name):
    columns = ["他说 Hello, world。", None, "我们买了3.5斤"], ["world 他说", "  ", "买了 3.5"]
    tokens = tokenize_columns([pa.array(column, pa.string()) for column in columns], name)
    ids = {}
    for c, column in enumerate(columns):
        for text, numbers in zip(column, tokens_of(tokens, c), strict=True):
            words = tokenizer(name)(text or "")
            assert [ids.setdefault(w, n) for w, n in zip(words, numbers, strict=True)] == numbers
    assert len(set(ids.values())) == len(ids)


def test_any_arrow_layout_of_strings():
    texts = ["春眠", None, "不觉晓", "𠮷 家", ""]
    whole = pa.array(["x", *texts, "y"])
    for column in (whole.slice(1, 5), pa.array(texts, pa.large_string())):
        assert tokens_of(tokenize_columns([column], "char"), 0) == [
            [ord(c) for c in (text or "").replace(" ", "")] for text in texts
        ]
    empty = tokenize_columns([pa.array([], pa.string())] * 2, "char")
    assert overlap(empty, 4).matches.shape == (0, 4)


def test_bytes_that_are_not_utf8_are_refused():
    array = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(UnicodeDecodeError):
        tokenize_columns([array], "char")


def plain_overlap(paraphrase, others, order):
    rows = []
    for n in range(1, order + 1):
        grams, *clips = (
            Counter(text[i : i + n] for i in range(len(text) - n + 1))
            for text in (paraphrase, *others)
        )
        clip = Counter()
        for counts in clips:
            clip |= counts
        rows.append(((grams & clip).total(), len(grams), len(grams.keys() & clip.keys())))
    return rows


@given(SHARING, st.lists(SHARING, min_size=1, max_size=3))
def test_overlap_is_counted_exactly(paraphrase, others):
    # The row comes twice, so that the second meets what the first left in the scratch.
    columns = [pa.array([text] * 2) for text in (paraphrase, *others)]
    actual = overlap(tokenize_columns(columns, "char"), 5)
    paraphrase, *others = (text.replace(" ", "") for text in (paraphrase, *others))
    expected = plain_overlap(paraphrase, others, 5)
    for row in range(2):
        counts = (actual.matches[row], actual.distinct[row], actual.shared[row])
        assert list(zip(*map(np.ndarray.tolist, counts), strict=True)) == expected
        assert actual.length[row] == len(paraphrase)
        closest = min((abs(len(o) - len(paraphrase)), len(o)) for o in others)[1]
        assert actual.closest[row] == closest
