"""A Chinese encoder that reads source and paraphrase together, for tier ``full``.

    encoder = PairEncoder.load()
    encoder.predict(sources, paraphrases)    # float32 (rows, tasks), each from 0 to 1

The network is multilingual-e5-small: twelve layers, with the part of its vocabulary that Chinese
uses. It reads ``<s> source </s> paraphrase </s>``. CTranslate2 runs it with eight-bit weights on
the CPU. Its last layer gives the state of <s>, the mean states of both sentences, their
difference and product, and for every token of the paraphrase the probability of an error there.
``research/make_pair_encoder.py`` trains it.

A folder holds ``pair_encoder.json`` (format, tasks, digest, summary), ``tokenizer.json``,
``head.npz`` and ``encoder/``, which CTranslate2 loads.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf, expit

from gaixie.udfs.meaning.array_folder import check_digest, read_json, write_json

FORMAT_VERSION = 2
DESCRIPTION, TOKENIZER = "pair_encoder.json", "tokenizer.json"
HEAD, ENCODER = "head.npz", "encoder/model.bin"
SHIPPED = Path(__file__).parents[1] / "models/pair-encoder-zh"
TASKS = (
    *("structure", "synonyms", "meaning", "fluency", "overall"),
    *("same", "fluent", "good", "question", "similar", "quality", "human"),
)
"""What the network predicts: the five ratings; whether both mean the same, whether the paraphrase
is good Chinese, and both; then the labels of other data sets."""
MAXIMUM_TOKENS = 400
"""The most tokens of both sentences together; beyond it, the longer sentence is cut first."""
BATCH_TOKENS = 4096
"""Tokens of a batch, padding included."""
STEP = 16
"""A pair is padded to a multiple of this many tokens, and batched only with pairs of that length.
With longer pairs, sums round differently, which eight-bit weights amplify to up to 0.09."""
HOW_TO_MAKE = "python research/make_pair_encoder.py makes it"


class PairEncoder:
    """A trained network with its tokenizer. Get one from :meth:`load`."""

    def __init__(self, folder: Path, tasks: Sequence[str], digest: str, threads: int) -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self.tasks, self.digest = tuple(tasks), digest
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.enable_truncation(MAXIMUM_TOKENS, strategy="longest_first")
        self._tokenizer.no_padding()
        with np.load(folder / HEAD) as head:
            self._head = {name: head[name].astype(np.float32) for name in head.files}
        # One thread per batch: several batches at once are faster than several threads on one.
        self._encoder: Any = ctranslate2.Encoder(
            str((folder / ENCODER).parent),
            compute_type="int8",
            inter_threads=threads,
            intra_threads=1,
        )

    @classmethod
    def load(cls, folder: str | Path = SHIPPED, threads: int | None = None) -> PairEncoder:
        """Loads the encoder of a folder, by default the shipped one.

        threads: batches that run at once; by default OMP_NUM_THREADS, which Spark sets for its
        workers, or one per core.

        Raises FileNotFoundError or ValueError, in one line, if the folder holds no such encoder, or
        one that is damaged or of another version.
        """
        description = _description(Path(folder))
        given = os.environ.get("OMP_NUM_THREADS", "")
        default = int(given) if given.isdecimal() else len(os.sched_getaffinity(0))
        threads = threads or max(default, 1)
        return cls(Path(folder), description["tasks"], description["digest"], threads)

    def predict(self, source: Sequence[str], paraphrase: Sequence[str]) -> np.ndarray:
        """Predicts every task: float32 in [0, 1], shape (rows, tasks). Expects normalised text."""
        encoded = self._tokenizer.encode_batch(list(zip(source, paraphrase, strict=True)))
        found = np.empty((len(encoded), len(self.tasks)), np.float32)
        lengths = [-(-len(pair.ids) // STEP) * STEP for pair in encoded]
        waiting: deque[tuple[list[int], Any]] = deque()
        for rows in batches(lengths, BATCH_TOKENS, equal=True):
            waiting.append((rows, self._begin([encoded[row] for row in rows], lengths[rows[0]])))
            if len(waiting) > 8:
                self._finish(*waiting.popleft(), encoded, found)
        for rows, output in waiting:
            self._finish(rows, output, encoded, found)
        return found

    def _begin(self, batch: Sequence[Any], length: int) -> Any:
        from ctranslate2 import StorageView

        ids = [pair.ids + [0] * (length - len(pair)) for pair in batch]
        types = [pair.type_ids + [0] * (length - len(pair)) for pair in batch]
        padded, known = np.array(ids, np.int32), np.array([len(pair) for pair in batch], np.int32)
        views = StorageView.from_array(padded), StorageView.from_array(known)
        return self._encoder.forward_batch(*views, token_type_ids=types)

    def _finish(
        self, rows: Sequence[int], output: Any, encoded: Sequence[Any], found: np.ndarray
    ) -> None:
        states = np.asarray(output.last_hidden_state, np.float32)
        lengths = np.array([len(encoded[row]) for row in rows])
        second = lengths - np.array([sum(encoded[row].type_ids) for row in rows])
        place = np.arange(states.shape[1])
        a = (place > 0) & (place < second[:, None] - 1)
        b = (place >= second[:, None]) & (place < lengths[:, None] - 1)
        found[rows] = head_outputs(states, a, b, self._head)


def head_outputs(
    states: np.ndarray, a: np.ndarray, b: np.ndarray, head: dict[str, np.ndarray]
) -> np.ndarray:
    """Returns the tasks, from 0 to 1, from the last layer's states.

    states: float32, shape (pairs, tokens, width). a, b: masks of the tokens of the source and of
    the paraphrase.
    """
    wrong = expit(states @ head["token.weight"][0] + head["token.bias"][0])
    mean_a, mean_b = (_mean(states, side) for side in (a, b))
    doubt = wrong * b
    doubts = np.stack([doubt.max(1), doubt.sum(1) / b.sum(1).clip(1)], 1)
    parts = [states[:, 0], mean_a, mean_b, np.abs(mean_a - mean_b), mean_a * mean_b, doubts]
    inner = np.concatenate(parts, 1) @ head["inner.weight"].T + head["inner.bias"]
    inner = inner * (1 + erf(inner / np.sqrt(2))) / 2  # GELU
    return expit(inner @ head["outer.weight"].T + head["outer.bias"])


def _mean(states: np.ndarray, side: np.ndarray) -> np.ndarray:
    weights = (side / side.sum(1, keepdims=True).clip(1)).astype(np.float32)
    return np.matmul(weights[:, None, :], states)[:, 0]


def batches(lengths: Sequence[int], limit: int, equal: bool = False) -> Iterator[list[int]]:
    """Yields batches of rows of similar or equal length, at most limit tokens with padding.

    A longer pair is a batch of its own.
    """
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        other = equal and rows and lengths[rows[0]] != lengths[row]
        if other or (rows and (len(rows) + 1) * lengths[row] > limit):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


load_pair_encoder = cache(PairEncoder.load)
"""Calls PairEncoder.load, once in a process."""


def check_folder(folder: Path) -> str:
    """Returns the digest of a pair encoder without loading it. Raises as PairEncoder.load does."""
    return str(_description(folder)["digest"])


def write_description(folder: Path, tasks: Sequence[str], summary: dict[str, Any]) -> None:
    """Writes pair_encoder.json beside the other files of a folder."""
    files = {"format": FORMAT_VERSION, "tasks": list(tasks), "digest": _digest(folder)}
    write_json(folder / DESCRIPTION, files | {"summary": summary})


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    description = read_json(path, f"a pair encoder; {HOW_TO_MAKE}", {"format": FORMAT_VERSION})
    for name in (TOKENIZER, HEAD, ENCODER):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder / name}: no such file; {path} lists it")
    check_digest(path, description, _digest(folder))
    return description


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (TOKENIZER, HEAD, ENCODER):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:10]
