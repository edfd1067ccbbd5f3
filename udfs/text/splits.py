"""Assigns a pair to a split by a hash of its group, or of its source if it has no group.

    place = XXH3-64(normalised text in UTF-32, seed) / 2⁶⁴;  train, validation and test share [0, 1)

The column GROUP of a table of pairs names what their sentences share: an English sentence, a
document, a cluster. All pairs of a group are in one split, and so are all pairs of a source without
a group, in every run, release and trainer that has the same seed.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from gaixie.udfs.text.normalise import normalise, normalise_column

SPLITS = ("train", "validation", "test")
GROUP = "group"


def source_hash(text: str, seed: int) -> int:
    """Returns XXH3-64 of a normalised sentence in UTF-32."""
    return xxh3_64_intdigest(normalise(text).encode("utf-32-le"), seed)


def source_hashes(source: pa.Array | pa.ChunkedArray, seed: int) -> np.ndarray:
    """Returns source_hash of each row: uint64, shape (rows,)."""
    text, _ = normalise_column(source)
    data = np.ascontiguousarray(text.values, np.dtype("<u4")).view(np.uint8).data
    ends = (4 * text.offsets).tolist()
    return np.array([xxh3_64_intdigest(data[a:b], seed) for a, b in pairwise(ends)], np.uint64)


def splits_of(source: pa.Array | pa.ChunkedArray, shares: Sequence[float], seed: int) -> np.ndarray:
    """Returns each sentence's number in SPLITS: int64, shape (rows,). shares: add up to 1."""
    taken = np.flatnonzero(np.array(shares) > 0)
    ends = np.cumsum(np.array(shares)[taken])[:-1]  # the last reaches the end, however it rounds
    position = (source_hashes(source, seed) >> np.uint64(11)) / 2**53
    return taken[np.searchsorted(ends, position, side="right")]
