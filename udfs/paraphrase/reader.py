"""Reads a sentence and its paraphrase together: is it the same, is it good Chinese, would an editor
print it?

A cross-encoder of bge-small-zh's size with eight-bit weights, run by CTranslate2 on the CPU. What
it was trained on stands in its card, udfs/models/reader-zh/card.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf, expit

FOLDER = Path(__file__).parents[1] / "models/reader-zh"
NAMES = ("same", "fluent", "good")
LONGEST = 160
"""Tokens of a pair; what is longer is cut."""
BATCH_TOKENS = 4096


class Reading(NamedTuple):
    """Probabilities, float32, shape (pairs,) each."""

    same: np.ndarray
    """The two say the same."""
    fluent: np.ndarray
    """The paraphrase is good Chinese."""
    good: np.ndarray
    """Both: rated 4 of 5 or more for meaning and fluency."""


class Reader:
    """An encoder and its head. Raises FileNotFoundError or ValueError, in one line, for a bad
    folder.
    """

    def __init__(self, folder: str | Path = FOLDER, threads: int | None = None):
        import ctranslate2
        from tokenizers import Tokenizer

        own = Path(folder)
        for name in ("reader.json", "tokenizer.json", "head.npz", "encoder/model.bin"):
            if not (own / name).is_file():
                raise FileNotFoundError(f"{own / name}: no such file")
        self.signature = str(json.loads((own / "reader.json").read_text("utf-8"))["signature"])
        self._tokenizer = Tokenizer.from_file(str(own / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.no_padding()
        cores = threads or len(os.sched_getaffinity(0))
        self._encoder = ctranslate2.Encoder(
            str(own / "encoder"), compute_type="int8", inter_threads=cores, intra_threads=1
        )
        with np.load(own / "head.npz") as head:
            self._head = {name: head[name] for name in head.files}

    def read(self, pairs: Sequence[tuple[str, str]]) -> Reading:
        """Reads pairs (source, paraphrase), any number of them, in batches of like length."""
        found = np.empty((len(pairs), len(NAMES)), np.float32)
        encoded = self._tokenizer.encode_batch(list(pairs))
        order = sorted(range(len(pairs)), key=lambda k: len(encoded[k].ids))
        batches: list[list[int]] = []
        for k in order:
            if not batches or (len(batches[-1]) + 1) * len(encoded[k].ids) > BATCH_TOKENS:
                batches.append([])
            batches[-1].append(k)
        for batch in batches:
            found[batch] = self._read([encoded[k] for k in batch])
        return Reading(*found.T)

    def _read(self, batch: Sequence[Any]) -> np.ndarray:
        output = self._encoder.forward_batch(
            [own.ids for own in batch], token_type_ids=[own.type_ids for own in batch]
        )
        hidden = np.asarray(output.last_hidden_state, np.float32)
        lengths = np.array([len(own.ids) for own in batch])
        inside = np.arange(hidden.shape[1]) < lengths[:, None]
        mean = (hidden * inside[:, :, None]).sum(1) / lengths[:, None]
        pooled = np.concatenate([hidden[:, 0], mean], 1)
        inner = pooled @ self._head["inner"].T + self._head["inner_bias"]
        inner = inner * (1 + erf(inner / np.sqrt(2))) / 2  # GELU
        return expit(inner @ self._head["outer"].T + self._head["outer_bias"])


@cache
def shipped() -> Reader:
    """The reader that ships, loaded once."""
    return Reader()
