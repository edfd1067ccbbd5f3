"""Computes the identity of a pair: a stable 128-bit hash of (source, paraphrase, origin).

The hash is XXH3-128 (Yann Collet's xxHash, canonical digest) of the three texts' UTF-8 bytes joined
by U+001F, as 32 hexadecimal digits. The texts lose only surrounding white space and invisible
characters (udfs/text/normalise.py), so anyone can compute the hash again:

    parts = [visible(source).strip(), visible(paraphrase).strip(), origin]
    xxhash.xxh3_128_hexdigest("\\x1f".join(parts).encode())
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128_digest

from gaixie.udfs.text.normalise import may_hide, visible

_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)


def _stripped(texts: pa.Array) -> pa.Array:
    try:
        texts = texts.cast(pa.large_string())
    except pa.ArrowInvalid:  # some texts are not UTF-8; they go to quarantine
        return texts
    if (rows := may_hide(texts)).any():
        mask = pa.array(rows)
        shown = [text and visible(text) for text in texts.filter(mask).to_pylist()]
        texts = pc.replace_with_mask(texts, mask, pa.array(shown, pa.large_string()))
    return pc.utf8_trim_whitespace(texts)


def pair_ids(source: pa.Array, paraphrase: pa.Array, origin: pa.Array) -> pa.Array:
    """Returns the pair_id of each row: Arrow strings of 32 characters, null if a part is null."""
    texts = [_stripped(source), _stripped(paraphrase), origin]
    parts = [text.cast(pa.large_binary()) for text in texts]
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b"\x1f", pa.large_binary()))
    _, offsets, data = joined.buffers()
    rows = len(joined)
    bounds = np.frombuffer(offsets, np.int64)[joined.offset : joined.offset + rows + 1].tolist()
    view = memoryview(data) if data else memoryview(b"")
    digests = b"".join([xxh3_128_digest(view[start:end]) for start, end in pairwise(bounds)])
    digits = _HEX[np.frombuffer(digests, np.uint8)]
    ends = np.arange(0, 32 * rows + 1, 32, dtype=np.int32)
    nulls = joined.is_valid().buffers()[1] if joined.null_count else None
    buffers = pa.py_buffer(ends), pa.py_buffer(digits), nulls
    return pa.StringArray.from_buffers(rows, *buffers, joined.null_count)
