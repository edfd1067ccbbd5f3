"""Quarantine: every reason, their order, and rows that are accepted."""

import re

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.code_points import from_strings, to_strings
from gaixie.udfs.text.normalise import normalise, normalise_column
from gaixie.udfs.text.validate import REASONS, quarantine_reasons, take_rows

SHORTEST, LONGEST = 3, 6
HAN = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")


def as_bytes(text):
    return text.encode() if isinstance(text, str) else text


def reasons(pairs, shortest=SHORTEST, longest=LONGEST) -> list[str | None]:
    pairs = list(pairs)
    columns = [pa.array(map(as_bytes, side), pa.binary()) for side in zip(*pairs, strict=True)]
    (a, flags_a), (b, flags_b) = map(normalise_column, columns)
    codes = quarantine_reasons(a, flags_a, b, flags_b, shortest, longest)
    assert (codes.dtype, codes.shape) == (np.uint8, (len(pairs),))
    return [REASONS[code - 1] if code else None for code in codes]


GOOD = "今天好"
CASES = [
    ("今天好", "好今天", None),
    ("今天很好啊呀", "好今天", None),  # six characters are not too many
    (None, GOOD, "null"),
    (b"\xff", GOOD, "undecodable"),
    ("今\ufffd好", GOOD, "undecodable"),
    ("", GOOD, "empty"),
    (" \u3000\n", GOOD, "empty"),
    ("今天", GOOD, "too_short"),
    ("今天 \u3000", GOOD, "too_short"),  # three characters only before normalisation
    ("e\u0301好", GOOD, "too_short"),
    ("今天…好啊", GOOD, "too_long"),  # … becomes three characters: seven in all
    ("今天       好", GOOD, None),  # ten characters, four after normalisation
    ("今天   \n\n  好", GOOD, "identical"),
    ("𠮷𠮷𠮷𠮷𠮷𠮷", GOOD, None),  # 24 bytes, six characters
    ("abc", GOOD, "no_han"),
    ("ひらが", GOOD, "no_han"),
    ("一bc", GOOD, None),
    (GOOD, GOOD, "identical"),
    ("今天好，", "今天好,", "identical"),  # after normalisation
    ("今\u200b天好", "今天好\ufeff", "identical"),
    ("\u200b", GOOD, "empty"),
]


def test_reasons():
    sources, paraphrases, expected = map(list, zip(*CASES, strict=True))
    for sides in ((sources, paraphrases), (paraphrases, sources)):
        assert reasons(zip(*sides, strict=True)) == expected


def by_definition(source, paraphrase) -> str | None:
    """Returns the reason by the table of design section 5, in plain Python."""
    if source is None or paraphrase is None:
        return "null"
    sides = []
    for text in map(as_bytes, (source, paraphrase)):
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            return "undecodable"
        if "\ufffd" in decoded:
            return "undecodable"
        sides.append(normalise(decoded))
    if not all(sides):
        return "empty"
    if min(map(len, sides)) < SHORTEST:
        return "too_short"
    if max(map(len, sides)) > LONGEST:
        return "too_long"
    if not all(HAN.search(side) for side in sides):
        return "no_han"
    return "identical" if sides[0] == sides[1] else None


SENTENCE = st.one_of(
    st.none(),
    st.binary(max_size=4),
    st.text("今天好， …a\u0301\u3000", max_size=9),
    st.text("今天好,a", min_size=SHORTEST, max_size=LONGEST),
    st.text("好 ", min_size=2, max_size=4),
    st.text(max_size=9),
)


@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=12))
def test_fit_exactly_where_no_reason_holds(pairs):
    assert reasons(pairs) == [by_definition(*pair) for pair in pairs]


@given(st.lists(st.tuples(st.text(max_size=5), st.booleans())))
def test_take_rows(rows):
    texts = [text for text, _ in rows]
    kept = take_rows(from_strings(texts), np.array([keep for _, keep in rows], bool))
    assert to_strings(kept) == [text for text, keep in rows if keep]
    assert (kept.values.dtype, kept.offsets.dtype) == (np.uint32, np.int64)
