"""Reads vectors of words from a file.

It reads any word2vec file, binary (.bin) or text, gzipped or not, as gensim writes, or a folder with
``vectors.bin``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash

VECTORS_FILE = "vectors.bin"


class WordVectors(NamedTuple):
    """Word vectors. rows: each word's row. matrix: float32, (words, dimensions), rows of length 1.

    A vector of zeros stays zero.
    """

    rows: Mapping[str, int]
    matrix: np.ndarray


def load(path: str | Path) -> WordVectors:
    """Loads the vectors of a file or a folder, and caches them until the file changes.

    Raises FileNotFoundError, and ValueError if the file holds no word vectors.
    """
    file = _file(path)
    status = file.stat()
    return _load(file, status.st_mtime_ns, status.st_size)


def digest(path: str | Path) -> str:
    """Returns 12 hexadecimal digits of a file's XXH3, for a signature."""
    hashed = xxhash.xxh3_128()
    with _file(path).open("rb") as file:
        while block := file.read(1 << 20):
            hashed.update(block)
    return hashed.hexdigest()[:12]


def _file(path: str | Path) -> Path:
    file = Path(path).expanduser()
    if file.is_dir():
        file = file / VECTORS_FILE
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file; expected word vectors")
    return file


@lru_cache(maxsize=2)
def _load(file: Path, modified: int, size: int) -> WordVectors:
    from gensim.models import KeyedVectors

    try:
        vectors = KeyedVectors.load_word2vec_format(str(file), binary=".bin" in file.suffixes)
        matrix = vectors.get_normed_vectors()
    except Exception as error:  # gensim's parser raises many kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{file}: no word vectors could be read from it ({reason})") from error
    return WordVectors(vectors.key_to_index, matrix)
