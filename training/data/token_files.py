"""Keeps the tokens of pairs, made once, in files that all processes of a machine read in place.

    FOLDER/KEY/DIGEST.tokens      of up to ROWS pairs: int64 offsets, 2 × pairs + 1; then the ids
                                  of source, paraphrase, source, …, as uint16 or int32

KEY identifies everything that decides a text's tokens: the tokenizer's files, versions, max_length.
DIGEST identifies the texts, so a file fits whatever run or release they come from. The first
process that needs a file makes it; the others wait at a lock, which ends with its holder. A file
appears whole or not at all. Processes start at different files, so they share the work.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gaixie.training.data.corpus import COLUMNS
from gaixie.training.modeling.vocabulary import segmenter_name
from gaixie.udfs.text.normalise import NORMALISATION

ROWS = 16_384
"""Pairs of one file."""
SAID = 100_000
"""From this many pairs on, making tokens is reported."""


class Tokens:
    """The tokens of numbered pairs, from 0, in files."""

    def __init__(self, files: Sequence[tuple[np.ndarray, np.ndarray]]):
        """files: (offsets, ids) of each file, in the order of the pairs."""
        self._files = files
        self._starts = np.cumsum([0, *(len(offsets) // 2 for offsets, _ in files)])

    def lengths(self) -> np.ndarray:
        """Returns the number of tokens of source and paraphrase, shape (pairs, 2)."""
        parts = [np.diff(offsets).reshape(-1, 2) for offsets, _ in self._files]
        return np.concatenate([np.empty((0, 2), np.int64), *parts]).astype(np.int32)

    def take(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Returns the ids of the sources and of the paraphrases of some pairs."""
        source, paraphrase = [], []
        files = np.searchsorted(self._starts, rows, side="right") - 1
        for file, row in zip(files.tolist(), (rows - self._starts[files]).tolist(), strict=True):
            offsets, ids = self._files[file]
            a, b, c = offsets[2 * row : 2 * row + 3].tolist()
            source.append(ids[a:b])
            paraphrase.append(ids[b:c])
        return source, paraphrase


class _File(NamedTuple):
    path: Path
    texts: pa.RecordBatch


class TokenFiles:
    """The token files of one folder, for one PairEncoder.

    Raises OSError or ValueError, in one line, if the folder cannot be used.
    """

    def __init__(self, folder: str | Path, encode: Any):
        self.encode = encode
        self.folder = Path(folder, _key(encode))
        self.dtype = np.dtype(np.uint16 if len(encode.tokenizer) <= 2**16 else np.int32)

    def of(self, tables: Sequence[pa.Table], turn: float) -> Iterator[Tokens | None]:
        """Yields None as each file is finished, then the tokens of the pairs of some tables.

        tables: with source and paraphrase; a table with the same rows has the same file. turn: 0 to
        1, this process's place among those that make the same files.
        """
        files = [file for table in tables for file in self._files(table)]
        missing = [file for file in files if not file.path.exists()]
        pairs = sum(len(file.texts) for file in missing)
        if turn == 0 and pairs >= SAID:
            print(f"making tokens of {pairs:,} pairs in {self.folder}", flush=True)
        first = int(turn * len(missing))
        for file in missing[first:] + missing[:first]:
            self._make(file)
            yield None
        yield Tokens([self._open(file) for file in files])

    def _files(self, table: pa.Table) -> Iterator[_File]:
        for start in range(0, len(table), ROWS):
            texts = pa.RecordBatch.from_struct_array(
                table.select(COLUMNS).slice(start, ROWS).to_struct_array().combine_chunks()
            )
            digest = hashlib.blake2b(texts.serialize(), digest_size=16).hexdigest()
            yield _File(self.folder / f"{digest}.tokens", texts)

    def _make(self, file: _File) -> None:
        if file.path.exists():
            return
        part = file.path.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("ab") as out:
                fcntl.flock(out, fcntl.LOCK_EX)
                if file.path.exists():  # a previous holder of the lock has made it
                    return
                rows = self.encode.tokens(*(file.texts[name].to_pylist() for name in COLUMNS))
                both = [ids for pair in zip(*rows, strict=True) for ids in pair]
                offsets = np.cumsum([0, *map(len, both)], dtype=np.int64)
                out.truncate(0)
                out.write(offsets.tobytes() + np.concatenate(both).astype(self.dtype).tobytes())
                out.flush()
                os.fsync(out.fileno())
                part.rename(file.path)
        except OSError as error:
            raise OSError(f"cache: {self.folder}: {error.strerror or error}") from None

    def _open(self, file: _File) -> tuple[np.ndarray, np.ndarray]:
        data = np.asarray(np.memmap(file.path, np.uint8, mode="r"))  # slices of a memmap are slow
        ids = 8 * (2 * len(file.texts) + 1)
        size = len(data) - ids
        if size < 0 or size != data[ids - 8 : ids].view(np.int64)[0] * self.dtype.itemsize:
            raise ValueError(
                f"{file.path}: not a complete file of tokens; delete it, and it is made again"
            )
        return data[:ids].view(np.int64), data[ids:].view(self.dtype)


def _key(encode: Any) -> str:
    """Returns hexadecimal digits that identify everything that decides a text's tokens."""
    versions = [version("gaixie"), version("transformers"), segmenter_name(), NORMALISATION]
    digest = hashlib.blake2b(repr((versions, encode.max_length)).encode(), digest_size=8)
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(encode.tokenizer.save_pretrained(folder)):
            if Path(name).is_file():
                digest.update(Path(name).read_bytes())
    return digest.hexdigest()
