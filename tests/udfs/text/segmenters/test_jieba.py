"""The kernel must cut exactly like rjieba, and its tables survive anything done to their cache."""

import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.code_points import CodePoints, from_strings
from gaixie.udfs.text.segmenters import jieba_tables
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

DATA = Path(__file__).resolve().parents[5] / "shared" / "data"
SEGMENTER = JiebaSegmenter()


def kernel_words(texts: list[str]) -> list[list[str]]:
    ends, offsets = SEGMENTER.word_ends(from_strings(texts))
    rows = []
    for row, text in enumerate(texts):
        stops = ends[offsets[row] : offsets[row + 1]].tolist()
        rows.append([text[a:b] for a, b in itertools.pairwise([0, *stops])])
    return rows


def frequent_characters(count: int) -> list[str]:
    ids = jieba_tables.load().characters & jieba_tables.ID_MASK
    return [chr(point) for point in np.flatnonzero((ids > 0) & (ids <= count))]


@st.composite
def sentences(draw):
    """Draws texts of everything that the algorithm treats specially, with ties between routes."""
    piece = st.one_of(
        st.sampled_from(frequent_characters(400)),
        st.sampled_from(frequent_characters(20_000)),
        st.sampled_from(
            ["C++", "c#", "AT&T", "T恤", "4S店", "γ射线", "一国两制", "哈哈", "啊啊啊"]
        ),
        st.text("abzABZ0189.-_%+#&", min_size=1, max_size=8),
        st.sampled_from([*" \t\n\r\u3000\u00a0\u200b", "\r\n"]),
        st.sampled_from(list("，。！？、；：“”（）《》…—·,!?;:'\"()@/\\~^*=<>|$")),
        st.sampled_from(
            ["👪", "😀", "👩\u200d🚀", "❤\ufe0f", "é", "e\u0301", "ß", "あ", "한", "Ж"]
        ),
        st.sampled_from(list("㐀䶿\u9fd5\u9fd6\u9fff豈𠀀𪛟𪜀𫝀𫠠𬺰丽𪛠〇々")),
        st.sampled_from(list("１２ＡＢａｂ％．－＿")),
        st.characters(exclude_categories=["Cs"]),
    )
    pieces = draw(st.lists(st.tuples(piece, st.integers(1, 3) | st.integers(1, 60)), max_size=15))
    return "".join(piece * (times if len(pieces) < 6 else 1) for piece, times in pieces)


@given(st.lists(sentences(), max_size=10))
def test_kernel_equals_rjieba(texts):
    words = kernel_words(texts)
    assert words == SEGMENTER.cut(texts)
    assert ["".join(row) for row in words] == texts
    assert all(all(row) for row in words)


@pytest.mark.parametrize(
    "words",
    [
        ["我们", "中出", "了", "一个", "叛徒"],
        ["FZ-35"],
        ["B-35%"],
        ["a", "--", "b"],
        ["ab%", "cd"],
        ["不", "-", "2"],
        ["caf", "é", "-", "35"],
        ["C++", "和", "c#"],
        ["\r\n", "\n", "\r", " ", " "],
        # Routes that differ only by rounding: they need jieba-rs's model to the bit.
        ["要", "一国", "国国们", "也", "的", "不成", "会", "时说", "之", "于", "之中", "对"],
        ["啊", *["啊啊啊"] * 31],
    ],
)
def test_known_cuts(words):
    assert kernel_words(["".join(words)]) == [words]
    assert SEGMENTER.cut(["".join(words)]) == [words]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the shared corpora in {DATA}")
def test_corpus_of_chinese_sentences():
    texts = pq.read_table(DATA / "zh_sentences.parquet")["text"].to_pylist()[::20]
    assert kernel_words(texts) == SEGMENTER.cut(texts)


def test_any_number_is_a_character():
    values = np.array([0x4E2D, 0x56FD, 0xD800, 0xDFFF, 0x2FA20, 0x110000, 2**31, 2**32 - 1])
    text = CodePoints(values.astype(np.uint32), np.array([0, len(values)]))
    assert SEGMENTER.word_ends(text).ends.tolist() == [2, 3, 4, 5, 6, 7, 8]


def load_afresh() -> jieba_tables.Tables:
    return jieba_tables.load.__wrapped__()


def assert_same_tables(tables: jieba_tables.Tables) -> None:
    for name, array, expected in zip(tables._fields, tables, jieba_tables.load(), strict=True):
        assert array.dtype == expected.dtype, name
        np.testing.assert_array_equal(array, expected, err_msg=name)


def test_a_cache_is_made_read_and_made_anew_where_it_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("GAIXIE_CACHE_DIR", str(tmp_path / "new" / "folder"))
    monkeypatch.setattr(jieba_tables, "build", cache(jieba_tables.build))  # it takes seconds
    path = jieba_tables.cache_path()
    assert_same_tables(load_afresh())
    whole = path.read_bytes()
    one_byte = whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]
    for there in (whole, whole[: len(whole) // 2], one_byte):
        path.write_bytes(there)
        assert_same_tables(load_afresh())
        with monkeypatch.context() as patch:
            patch.setattr(jieba_tables, "build", lambda: pytest.fail("built, not read"))
            assert_same_tables(load_afresh())
