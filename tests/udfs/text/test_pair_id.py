"""pair_id: a stable 128-bit hash of (source, paraphrase, origin)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.pair_id import pair_ids

ROOT = Path(__file__).parents[3]

# Written down once: releases and re-runs depend on them.
GOLDEN = [
    ("今天天气很好", "天气今天很好", "llm", "834205f22cc7a8dea0510ef70a1601a8"),
    ("a", "b", "parallel", "1f323cefd8008ea4212053774e8cbadc"),
    ("", "", "", "ae4e168640304f672e2fd91375a20aaf"),
]


def ids(rows, kind=None):
    columns = [[row[k] for row in rows] for k in range(3)]
    return pair_ids(*(pa.array(column, kind or pa.string()) for column in columns))


def by_xxhash(row) -> str | None:
    if None in row:
        return None
    parts = [row[0].strip(), row[1].strip(), row[2]]
    return xxhash.xxh3_128_hexdigest("\x1f".join(parts).encode())


def test_golden():
    assert ids([row[:3] for row in GOLDEN]).to_pylist() == [row[3] for row in GOLDEN]


PART = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=20))


@given(st.lists(st.tuples(PART, PART, PART)))
def test_anyone_can_compute_it(rows):
    result = ids(rows)
    result.validate(full=True)
    assert result.type == pa.string()
    assert result.to_pylist() == [by_xxhash(row) for row in rows]
    assert result.null_count == sum(None in row for row in rows)


@given(st.lists(st.tuples(PART, PART, PART)), st.data())
def test_slices(rows, data):
    whole = [[row[k] for row in rows] for k in range(3)]
    start = data.draw(st.integers(0, len(rows)))
    length = data.draw(st.integers(0, len(rows) - start))
    parts = [pa.array(column, pa.string()).slice(start, length) for column in whole]
    assert pair_ids(*parts).to_pylist() == [by_xxhash(row) for row in rows[start : start + length]]


def test_bytes_as_they_came():
    """A row that is not UTF-8 goes to quarantine, but it has an identity."""
    parts = [pa.array([text], pa.binary()) for text in (b"\xff\xfe", b"\xe4", b"llm")]
    assert pair_ids(*parts).to_pylist() == [xxhash.xxh3_128_hexdigest(b"\xff\xfe\x1f\xe4\x1fllm")]


def test_every_place_of_the_separators_counts():
    text = "今天天气很好"
    cuts = [(i, j) for i in range(len(text) + 1) for j in range(i, len(text) + 1)]
    found = ids([(text[:i], text[i:j], text[j:]) for i, j in cuts]).to_pylist()
    assert len(set(found)) == len(cuts)


def test_every_part_counts():
    rows = [(a, b, c) for a in "今天" for b in "今天" for c in ("llm", "human")]
    assert len(set(ids(rows).to_pylist())) == len(rows)
    # Not normalised: ids are of the texts as they came, but for white space around them.
    assert len(set(ids([("Ａ", "好", "llm"), ("A", "好", "llm")]).to_pylist())) == 2
    spaced = ids(
        [("好", "很好", "llm"), (" 好\u3000", "很好\t", "llm"), ("好", "很 好", "llm")]
    ).to_pylist()
    assert spaced[0] == spaced[1] != spaced[2]
