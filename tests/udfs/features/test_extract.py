"""extract: every feature of every pair must equal its reference, whatever the text."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_features import reference

from gaixie.udfs.features import FEATURES, extract
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

REPLACEMENT = "\ufffd"  # a reader's mark for broken bytes; such rows are NaN by design


def strings(texts) -> pa.Array:
    return pa.array(list(texts), pa.string())


def assert_as_reference(pairs, segmenter):
    actual = extract(*map(strings, zip(*pairs, strict=True)), segmenter)
    texts = [(normalise(a), normalise(b)) for a, b in pairs]
    expected = [reference(a, b, *segmenter.cut([a, b])) for a, b in texts]
    assert (actual.shape, actual.dtype) == ((len(pairs), len(FEATURES)), np.float32)
    for k, name in enumerate(FEATURES):
        column = np.array([row[name] for row in expected])
        np.testing.assert_allclose(actual[:, k], column, rtol=1e-6, atol=1e-9, err_msg=name)


# Pairs

SHARING = "的一是不在人有,。.1a "
WORDY = "我们今天在北京大学图书馆看书。，3"
CLAUSES = ["走吧", "天黑了", "好", "3.5", "，", "。", " ", ","]
AWKWARD = [
    *"的体體,，。!！？；:：.．、…",  # punctuation in both widths; traditional characters
    *"019½①²ⅣＡａAaéﬁﷺ㍿㋿ｶﾞ",  # compatibility forms, one to eighteen characters
    *" \t\n\r\x0b\x1c\x85\xa0\u1680\u2028\u3000\u200b\ufeff",  # spaces, and two that are not
    *"\u0301\u0308\u0327\u3099´¨\u0f71\u0344",  # marks, and what decomposes into space and mark
    *"\u1100\u1161\u11a8가각ﾡￂ",  # conjoining, composed and halfwidth Hangul
    *"𠮷𝐀😀👩\u200d👧🇨🇳\ufe0f\U0002fa1d\U000e0100\U0010ffff",
    *"\x00\x01\u0401_-%\ue000\u9fff\u3007",
]
UNICODE = st.characters(codec="utf-8", exclude_characters=REPLACEMENT)

TEXTS = {
    "few characters": st.text(SHARING, max_size=15),
    "awkward characters": st.text(AWKWARD, max_size=10),
    "any": st.text(UNICODE, max_size=10),
    "words": st.text(st.one_of(st.sampled_from(WORDY), UNICODE), max_size=10),
    "clauses": st.lists(st.sampled_from(CLAUSES), max_size=6).map("".join),
}


@st.composite
def pairs(draw, kind):
    """Draws pairs: a paraphrase has pieces of its source, moved or repeated, and others."""
    found = []
    for _ in range(draw(st.integers(1, 8))):
        pieces = draw(st.lists(TEXTS[kind], max_size=4))
        piece = st.sampled_from(pieces) | TEXTS[kind] if pieces else TEXTS[kind]
        found.append(("".join(pieces), "".join(draw(st.lists(piece, max_size=5)))))
    return found


@pytest.mark.parametrize("kind", TEXTS)
@settings(max_examples=25)
@given(st.data())
def test_any_text(characters, chunks, kind, data):
    batch = data.draw(pairs(kind))
    assert_as_reference(batch, JiebaSegmenter() if kind == "words" else chunks)
    if kind == "few characters":
        assert_as_reference(batch, characters)


REPETITIVE = [
    ("a" * 300, "a" * 299),
    ("ab" * 100, "ba" * 100),
    ("哈" * 120, "哈" * 60 + "呀" + "哈" * 60),
    ("好的，" * 60, "的好，" * 50),
    (" a" * 80, "a " * 80),
    ("哈。" * 100, "。哈" * 100),
]
for start in (0x4E00, 0x20000, 0xAC00):  # Han, beyond the basic plane, Hangul
    text = "".join(map(chr, range(start, start + 400)))
    REPETITIVE += [(text, text), (text, text[250:] + text[:250]), (text, ""), ("", text)]


def test_long_texts(characters):
    assert_as_reference(REPETITIVE, characters)


# Batches


ROWS = ["今天天气很好，我们出去走走。", "我们出去走走，今天天气很好。", "", "好", "b a"]
ROWS += ["的" * 1000, "的一，" * 333, "的 " * 500]  # the maximum number of runs


def test_a_row_does_not_depend_on_its_neighbours(chunks):
    """A row must not depend on its neighbours: a kernel might leave the shared scratch dirty."""
    batch = [(a, b) for a in ROWS for b in ROWS]
    together = extract(*map(strings, zip(*batch, strict=True)), chunks)
    alone = np.concatenate([extract(strings([a]), strings([b]), chunks) for a, b in batch])
    assert np.array_equal(together, alone, equal_nan=True)


@pytest.mark.parametrize("text", [None, b"\xe4\xbb", ("今天" + REPLACEMENT).encode()])
def test_null_and_undecodable_rows_are_nan(characters, text):
    good = "今天天气很好".encode()
    whole, broken = pa.array([good] * 3, pa.binary()), pa.array([good, text, good], pa.binary())
    for a, b in ((whole, broken), (broken, whole), (broken, broken)):
        values = extract(a, b, characters)
        assert np.isnan(values[1]).all()
        assert not np.isnan(values[[0, 2]]).any()


def test_columns_are_strings_of_one_length(characters):
    with pytest.raises(ValueError, match="2 sources, but 1 paraphrases"):
        extract(strings(["好", "好"]), strings(["好"]), characters)
    with pytest.raises(TypeError, match="int64"):
        extract(pa.array([1]), strings(["好"]), characters)
