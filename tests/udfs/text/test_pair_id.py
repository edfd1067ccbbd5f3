"""pair_id: a stable 128-bit hash of (source, paraphrase, origin)."""

import pyarrow as pa
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.normalise import visible
from gaixie.udfs.text.pair_id import pair_ids

# Fixed for ever, because releases and re-runs depend on them.
GOLDEN = [
    ("今天天气很好", "天气今天很好", "llm", "834205f22cc7a8dea0510ef70a1601a8"),
    ("a", "b", "parallel", "1f323cefd8008ea4212053774e8cbadc"),
    ("", "", "", "ae4e168640304f672e2fd91375a20aaf"),
]


def by_xxhash(row) -> str | None:
    if None in row:
        return None
    parts = [visible(row[0]).strip(), visible(row[1]).strip(), row[2]]
    return xxhash.xxh3_128_hexdigest("\x1f".join(parts).encode())


def test_golden():
    *columns, expected = zip(*GOLDEN, strict=True)
    assert pair_ids(*map(pa.array, columns)).to_pylist() == list(expected)


def test_invisible_characters_do_not_count():
    texts = ["今天天气很好", " 今天天气\u200b很好\ufeff", "今天天气很好 \u2060", None]
    sides = pa.array(texts), pa.array(["天气今天很好"] * 4), pa.array(["llm"] * 4)
    assert pair_ids(*sides).to_pylist() == [GOLDEN[0][3]] * 3 + [None]


PART = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=20))


@given(st.lists(st.tuples(PART, PART, PART)), st.data())
def test_anyone_can_compute_it(rows, data):
    whole = [[row[k] for row in rows] for k in range(3)]
    start = data.draw(st.integers(0, len(rows)))
    length = data.draw(st.integers(0, len(rows) - start))
    result = pair_ids(*[pa.array(column, pa.string()).slice(start, length) for column in whole])
    result.validate(full=True)
    assert result.type == pa.string()
    assert result.to_pylist() == [by_xxhash(row) for row in rows[start : start + length]]


def test_bytes_as_they_came():
    """Raw bytes must have an id too, because a row that is not UTF-8 goes to quarantine with it."""
    parts = [pa.array([text], pa.binary()) for text in (b"\xff\xfe", b"\xe4", b"llm")]
    assert pair_ids(*parts).to_pylist() == [xxhash.xxh3_128_hexdigest(b"\xff\xfe\x1f\xe4\x1fllm")]
