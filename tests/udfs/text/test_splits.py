"""The split of sources: its hash, its bounds, and changes that must not move a source."""

import pyarrow as pa
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.text.splits import source_hash, source_hashes, splits_of

texts = st.lists(st.text(max_size=12), max_size=8)


@given(texts, st.integers(0, 2**32))
def test_a_columns_hashes_are_those_of_its_sentences(column, seed):
    found = source_hashes(pa.array(column, pa.string()), seed)
    assert found.tolist() == [source_hash(text, seed) for text in column]


def test_the_hash_by_hand():
    """The hash must be of the normalised source, four bytes per character, low byte first."""
    data = b"".join(ord(c).to_bytes(4, "little") for c in "春天A")
    assert source_hash(" 春天Ａ　", 7) == xxhash.xxh3_64_intdigest(data, 7)


@given(texts, st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda w: sum(w) > 0.1))
def test_the_plain_definition(column, weights):
    shares = [weight / sum(weights) for weight in weights]
    found = splits_of(pa.array(column, pa.string()), shares, 13)
    for text, split in zip(column, found, strict=True):
        place, expected = (source_hash(text, 13) >> 11) / 2**53, None
        reached = 0.0
        for number, share in enumerate(shares):
            reached += share
            if share > 0:
                expected = number
                if place < reached:
                    break
        assert split == expected


def test_a_split_without_a_share():
    assert set(splits_of(pa.array([f"{n}" for n in range(500)]), [0.9, 0, 0.1], 1)) == {0, 2}
