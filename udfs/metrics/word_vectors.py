"""Vectors of words, from a file.

Files: whatever ``research/train_word_vectors.py`` writes (its folder), any word2vec file, binary or
text, gzipped or not, text without the header line (as GloVe has it), and gensim's own format, of
KeyedVectors or of a whole model. The content decides which, not the name. gensim's own format is a
pickle, which runs code as it is read: read no such file from a stranger.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash

VECTORS_FILE = "vectors.bin"
_PICKLE = b"\x80"
_HEADER = re.compile(rb"\d+ \d+\r?\n")


class WordVectors(NamedTuple):
    """rows: row of each word. matrix: float32, shape (words, dimensions), rows of length 1.

    A vector of zeros stays one.
    """

    rows: Mapping[str, int]
    matrix: np.ndarray


def load(path: str | Path) -> WordVectors:
    """The vectors of a file or a folder; kept in memory until the file changes.

    Raises FileNotFoundError, and ValueError where the file holds no word vectors.
    """
    file = _file(path)
    status = file.stat()
    return _load(file, status.st_mtime_ns, status.st_size)


def digest(path: str | Path) -> str:
    """12 hexadecimal digits of a file's XXH3, for a signature."""
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

    with file.open("rb") as opened:
        zipped = opened.read(2) == b"\x1f\x8b"
    with gzip.open(file, "rb") if zipped else file.open("rb") as opened:
        first = opened.readline(1 << 20)
        header = _HEADER.fullmatch(first) is not None
        sample = opened.readline(1 << 20) if header else first
    try:
        if first[:1] == _PICKLE:
            loaded = KeyedVectors.load(str(file), mmap=None)
            vectors = getattr(loaded, "wv", loaded)
        else:
            vectors = KeyedVectors.load_word2vec_format(
                str(file), binary=not _is_text(sample), no_header=not header
            )
        matrix = vectors.get_normed_vectors()
    except Exception as error:  # gensim raises whatever its parsing meets
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{file}: no word vectors could be read from it ({reason})") from error
    return WordVectors(vectors.key_to_index, matrix)


def _is_text(line: bytes) -> bool:
    """Whether a line is a word and numbers, separated by spaces."""
    try:
        _, *numbers = line.decode("utf-8").split()
        return len([float(number) for number in numbers]) > 0
    except ValueError:
        return False
