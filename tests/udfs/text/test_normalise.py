"""normalise_column must equal its definition: Python's NFKC, str.split and UTF-8."""

import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaixie.udfs.text import normalise as norm
from gaixie.udfs.text.code_points import to_strings

REPLACEMENT = "\ufffd"
# The blocks of CJK unified and compatibility ideographs, and 〇.
IS_HAN = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")


# Control characters, U+2800, annotation marks, and Default_Ignorable_Code_Point of
# https://www.unicode.org/Public/16.0.0/ucd/DerivedCoreProperties.txt
IGNORABLE = (
    *((0, 8), (0xE, 0x1B), (0x7F, 0x84), (0x86, 0x9F), (0x2800, 0x2800)),
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)


INVISIBLE = {chr(code) for first, last in IGNORABLE for code in range(first, last + 1)}


def without_invisible(text: str) -> str:
    """Decides for one invisible character after another, by its neighbours."""
    kept = [character not in INVISIBLE for character in text]
    for k in [place for place, visible in enumerate(kept) if not visible]:
        character, before, after = text[k], text[k - 1 : k], text[k + 1 : k + 2]
        styled = before in INVISIBLE and before != "\u200d" and kept[k - 1]
        of_emoji = styled or re.match(norm._PICTURE, before)
        if character == "\u200d":
            kept[k] = bool(of_emoji and re.match(norm._PICTURE, after))
        elif character == "\ufe0f" or "\U000e0020" <= character <= "\U000e007f":
            keycap = character + after == "\ufe0f\u20e3" and before in [*"#*0123456789"]
            kept[k] = bool(of_emoji or keycap)
    return "".join(character for k, character in enumerate(text) if kept[k])


def by_definition(text: str) -> str:
    form = unicodedata.normalize("NFKC", without_invisible(text).replace("\u3000", "\n"))
    parts = re.split(r"(\s+)", form)
    for k in range(1, len(parts), 2):
        before, after = parts[k - 1][-1:], parts[k + 1][:1]
        beside = [(before, after), (after, before)]
        layout = {*parts[k]} & {*"\t\n\v\f\r\x85\u2028\u2029"}
        layout = layout and not re.match(f"[{norm._MARKS}]", after)
        goes = any(IS_HAN.match(a) and not re.match("[A-Za-z0-9]", b) for a, b in beside)
        parts[k] = "" if layout and goes else " "
    return "".join(parts).strip()


def column(texts, kind=None) -> tuple[list[str], list[int]]:
    """Returns (normalised rows, flags) of a list of strings or an Arrow array."""
    array = pa.array(texts, kind or pa.string()) if isinstance(texts, list) else texts
    text, flags = norm.normalise_column(array)
    assert (text.values.dtype, text.offsets.dtype, flags.dtype) == (np.uint32, np.int64, np.uint8)
    assert len(text.offsets) - 1 == len(flags) == len(array)
    assert text.offsets[[0, -1]].tolist() == [0, len(text.values)]
    return to_strings(text), flags.tolist()


def assert_as_definition(texts: list[str]) -> None:
    rows, flags = column(texts)
    expected = [by_definition(text) for text in texts]
    assert rows == expected
    assert flags == [norm.HAN if IS_HAN.search(row) else 0 for row in expected]


GOLDEN = [
    ("ＡＢＣ１２３，。！？", "ABC123,。!?"),
    ("  你 好\t\n吗\r\n", "你 好吗"),
    ("\x0b你\x1c\x1d\x1e\x1f\xa0\u1680\u2000\u202f\u205f好", "你 好"),
    ("他说，\n你　好！\r\n\r\n用AI\n3 天\u2028做完", "他说,你好!用AI 3 天做完"),
    ("你\u200b 好 \u2060", "你 好"),
    ("e\u200b\u0301", "é"),
    ("\u3164\uffa0\u1160", ""),
    ("葛\U000e0100城\ufe00", "葛城"),  # variation selectors
    ("☀\ufe0f 1\ufe0f\u20e3 ☀\u200d", "☀\ufe0f 1\ufe0f\u20e3 ☀"),
    ("🏴\U000e0067\U000e007f好\U000e0067", "🏴\U000e0067\U000e007f好"),
    ("👩\U0001f3fd\u200d🚀\u200d", "👩\U0001f3fd\u200d🚀"),
    ("㍿①½㎏", "株式会社11⁄2kg"),
    ("\uf900\U0002f800", "豈丽"),  # compatibility ideographs
    ("´", "\u0301"),  # U+00B4 is a space and a mark: the space is stripped
    ("ﷺ", "صلى الله عليه وسلم"),  # one character becomes eighteen
    ("𝐀𠮷\U0010ffff", "A𠮷\U0010ffff"),
    ("", ""),
    (" \u3000\n", ""),
]


@pytest.mark.parametrize(("text", "expected"), GOLDEN)
def test_golden(text, expected):
    assert norm.normalise(text) == expected
    assert_as_definition([text])


# Every character

SCALARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c != 0xFFFD]
ASSIGNED = [c for c in SCALARS if unicodedata.category(c) not in ("Cn", "Co")]


def test_every_code_point():
    assert_as_definition(SCALARS)


@pytest.mark.parametrize("before", ["e", "\u1100", "\u0301"], ids=ascii)
def test_every_assigned_character_after(before):
    # Tens of thousands of ideographs and Hangul syllables behave alike, so every 64th is tested.
    some = [c for c in ASSIGNED if ord(c) % 64 == 0 or not (IS_HAN.match(c) or "가" < c <= "힣")]
    assert_as_definition([before + c for c in some])


@pytest.mark.parametrize("after", ["\u0301", "\u1161"], ids=ascii)
def test_every_changing_character_before(after):
    changing = [c for c in ASSIGNED if by_definition(c) != c or unicodedata.decomposition(c)]
    letters = [chr(c) for c in range(0x21, 0x3100)]
    assert_as_definition([c + after for c in changing + letters])


# Any text

TRICKY = [
    *" \u3000\n\x85\u2003\xa0",
    *"的體A１，…①㍿ﷺﬁ⼀\uf900",
    *"\u0301\u0307\u0323\u0327\u0338\u3099\u0f71\u0344\u0f73\u0340",
    *"aeqoかウé´¨﹏ﹰ\u0385\u1fed",
    *"\u1100\u1161\u11a8\u11a7가각ﾡￂᆧ\u0b47\u0b3e\u0b56\u0dd9\u0dca\u0dcf",
    *"\u200b\ufeff\u200d\ufe0f\ufe0e\u00ad\u3164\U000e0067☀👩1\u20e3\U0001f3fd",
    *"𠮷😀\U00011099\U000110ba\U0001d15e\U0002fa1d\U0010ffff\x00",
]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters=REPLACEMENT))


@settings(max_examples=80)
@given(st.lists(st.text(TRICKY, max_size=12) | TEXT, min_size=1, max_size=20))
def test_any_texts(texts):
    assert_as_definition(texts)


@given(st.text("你好 \u200b\ufeff\u200d\ufe0f☀👩e\u0301㍿…", max_size=12))
def test_places_in_the_written_text(text):
    """The character at each place must be the one that the normalised text has, or become it."""
    places = norm.written_places(text)
    if places is not None:
        assert len(places) == len(norm.normalise(text))
        assert places == sorted(places)
        assert not any(text[place] in "\u200b\ufeff" for place in places)


# Bytes that are not UTF-8

BROKEN = [
    *(b"\x80", b"\xc0\x80", b"\xe0\x9f\xbf"),  # a stray continuation, and two that are overlong
    *(b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff"),  # beyond what there is
    *(b"\xc3", b"\xe4\xbb", b"\xe4\xbba"),  # truncated
    *("今天".encode("gbk"), "今天".encode("utf-16")),
]


def assert_as_python_decodes(raw: list[bytes]) -> None:
    for row, text, flag in zip(raw, *column(raw, pa.binary()), strict=True):
        try:
            decoded = row.decode("utf-8")
        except UnicodeDecodeError:
            assert (text, flag) == ("", norm.UNDECODABLE), row
            continue
        assert bool(flag & norm.UNDECODABLE) == (REPLACEMENT in decoded), row
        if REPLACEMENT not in decoded:
            assert text == by_definition(decoded), row


EDGES = [chr(code).encode() for code in (0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000)]
FRAGMENTS = [*BROKEN, *EDGES, *(text.encode() for text, _ in GOLDEN)]
RAW = st.lists(st.sampled_from(FRAGMENTS), max_size=4).map(b"".join)


@given(st.lists(st.binary(max_size=8) | st.text().map(str.encode) | RAW, min_size=1))
def test_decodes_as_python_does(raw):
    assert_as_python_decodes(raw)


def test_decodes_as_python_does_every_two_bytes():
    assert_as_python_decodes([bytes([a, b]) for a in range(256) for b in range(256)])
    leads = range(0xE0, 0x100)
    for tail in (b"\x80", b"\xbf", b"\x80\x80", b"\xbf\xbf", b"\x80a"):
        assert_as_python_decodes([bytes([a, b]) + tail for a in leads for b in range(256)])


# Arrow's forms of a column

MIXED = ["今天", None, "", "e\u0301 ", "  ", "ﷺ", "a", None, "①好", "\u1112\u1161\u11ab", "abc"]
MIXED_ROWS = [by_definition(text or "") for text in MIXED]
MIXED_FLAGS = [norm.HAN, norm.NULL, 0, 0, 0, 0, 0, norm.NULL, norm.HAN, 0, 0]
KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_slice(kind):
    array = pa.array(MIXED, pa.string()).cast(kind)
    for start in range(len(MIXED) + 1):
        for end in range(start, len(MIXED) + 1):
            part = array.slice(start, end - start)
            assert column(part) == (MIXED_ROWS[start:end], MIXED_FLAGS[start:end])


def test_a_null_may_hide_bytes():
    """Bytes under a null must be ignored, because Arrow leaves them undefined."""
    data = b"\xe4\xbb\x8a" + b"\xff\xff" + b"ab"
    offsets = np.array([0, 3, 5, 7], np.int32)
    valid = pa.py_buffer(bytes([0b101]))
    array = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(data), valid, 1)
    assert column(array) == (["今", "", "ab"], [norm.HAN, norm.NULL, 0])


@pytest.mark.parametrize(
    "array",
    [pa.array([1, 2]), pa.array([["好"]]), pa.array(["好"]).dictionary_encode(), pa.nulls(2)],
    ids=lambda array: str(array.type),
)
def test_other_types_are_refused(array):
    with pytest.raises(TypeError, match="must be an Arrow string column"):
        norm.normalise_column(array)
