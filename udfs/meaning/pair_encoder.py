"""A Chinese encoder that reads source and paraphrase together, for tier ``full``.

    encoder = PairEncoder.load()
    encoder.predict(sources, paraphrases)    # float32 (rows, tasks), each from 0 to 1

The network is multilingual-e5-small: twelve layers, with the part of its vocabulary that Chinese
uses. It reads ``<s> source </s> paraphrase </s>``. CTranslate2 runs it with eight-bit weights on
the CPU or a GPU. Its last layer gives the state of <s>, the mean states of both sentences, their
difference and product, and for every token of the paraphrase the probability of an error there.
``research/make_pair_encoder.py`` trains it.

A folder holds ``pair_encoder.json`` (format, tasks, digest, summary), ``tokenizer.json``,
``head.npz`` and ``encoder/``, which CTranslate2 loads.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf, expit

FORMAT_VERSION = 2
DESCRIPTION, TOKENIZER, HEAD, ENCODER = (
    "pair_encoder.json",
    "tokenizer.json",
    "head.npz",
    "encoder/model.bin",
)
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

    _on_gpu = False

    def __init__(
        self,
        folder: Path,
        tasks: Sequence[str],
        digest: str,
        threads: int,
        gpu: str | None = None,
    ) -> None:
        from tokenizers import Tokenizer

        self.tasks, self.digest = tuple(tasks), digest
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.enable_truncation(MAXIMUM_TOKENS, strategy="longest_first")
        self._tokenizer.no_padding()
        with np.load(folder / HEAD) as head:
            self._head = {name: head[name].astype(np.float32) for name in head.files}
        where = str(folder / ENCODER).removesuffix("/model.bin")
        self.device = "the CPU"
        """The device that reads; if a requested GPU is not used, also the reason."""
        if gpu is not None:
            self.device = self._try_gpu(where, gpu)
        if not self._on_gpu:
            self._encoder = _network(where, inter_threads=threads, intra_threads=1)

    def _try_gpu(self, where: str, gpu: str) -> str:
        """Uses the GPU with this number (nvidia-smi's) if possible; returns the device."""
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        try:
            self._encoder = _network(where, device="cuda", device_index=int(gpu))
            self._on_gpu = True
            self.predict(["天"], ["天"])  # some libraries load only now
        except (RuntimeError, ValueError) as error:
            self._on_gpu = False
            return f"the CPU, since GPU {gpu} failed: {str(error).splitlines()[0]}"
        return f"GPU {gpu}"

    @property
    def signature(self) -> str:
        """Returns all that decides a prediction; print it with every one that you report."""
        return f"pair-encoder-zh|v:{FORMAT_VERSION}|{self.digest}"

    @classmethod
    def load(
        cls, folder: str | Path = SHIPPED, threads: int | None = None, gpu: str | None = None
    ) -> PairEncoder:
        """Loads the encoder of a folder, by default the shipped one.

        threads: batches that run at once; by default OMP_NUM_THREADS, which Spark sets for its
        workers, or one per core. gpu: the number of a GPU; without it, the CPU reads.

        Raises FileNotFoundError or ValueError, in one line, if the folder holds no such encoder, or
        one that is damaged or of another version.
        """
        folder = Path(folder)
        description = _description(folder)
        given = os.environ.get("OMP_NUM_THREADS", "")
        default = int(given) if given.isdecimal() else len(os.sched_getaffinity(0))
        threads = threads or max(default, 1)
        return cls(folder, description["tasks"], description["digest"], threads, gpu)

    def predict(self, source: Sequence[str], paraphrase: Sequence[str]) -> np.ndarray:
        """Predicts every task: float32 in [0, 1], shape (rows, tasks). Expects normalised text."""
        return self.read(source, paraphrase)[0]

    def read(
        self, source: Sequence[str], paraphrase: Sequence[str]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Returns ``predict``, and how likely each character of each paraphrase is wrong."""
        encoded = self._tokenizer.encode_batch(list(zip(source, paraphrase, strict=True)))
        found = np.empty((len(encoded), len(self.tasks)), np.float32)
        doubts: list[np.ndarray] = [np.empty(0)] * len(encoded)
        waiting = []
        lengths = [-(-len(pair.ids) // STEP) * STEP for pair in encoded]
        for rows in batches(lengths, BATCH_TOKENS, equal=True):
            waiting.append((rows, self._begin([encoded[row] for row in rows], lengths[rows[0]])))
            if len(waiting) > 8:
                self._finish(*waiting.pop(0), encoded, paraphrase, found, doubts)
        for rows, output in waiting:
            self._finish(rows, output, encoded, paraphrase, found, doubts)
        return found, doubts

    def _begin(self, batch: Sequence[Any], length: int) -> Any:
        from ctranslate2 import StorageView

        ids, types = [pair.ids for pair in batch], [pair.type_ids for pair in batch]
        if self._on_gpu:
            return self._encoder.forward_batch(ids, token_type_ids=types)
        padded = np.array([row + [0] * (length - len(row)) for row in ids], np.int32)
        known = np.array([len(row) for row in ids], np.int32)
        types = [row + [0] * (length - len(row)) for row in types]
        return self._encoder.forward_batch(
            StorageView.from_array(padded), StorageView.from_array(known), token_type_ids=types
        )

    def _finish(
        self,
        rows: Sequence[int],
        output: Any,
        encoded: Sequence[Any],
        paraphrase: Sequence[str],
        found: np.ndarray,
        doubts: list[np.ndarray],
    ) -> None:
        last = output.last_hidden_state
        if self._on_gpu:
            import ctranslate2

            last = last.to_device(ctranslate2.Device.cpu)
        states = np.asarray(last, np.float32)
        types = [np.asarray(encoded[row].type_ids) for row in rows]
        lengths = np.array([len(row) for row in types])
        second = np.array([len(row) - int(row.sum()) for row in types])
        place = np.arange(states.shape[1])
        a = (place > 0) & (place < second[:, None] - 1)
        b = (place >= second[:, None]) & (place < lengths[:, None] - 1)
        found[rows], wrong = head_outputs(states, a, b, self._head)
        for row, doubted, first, length in zip(rows, wrong, second, lengths, strict=True):
            characters = np.zeros(len(paraphrase[row]))
            spans = encoded[row].offsets[first : length - 1]
            for (start, end), doubt in zip(spans, doubted[first:], strict=False):
                characters[start:end] = doubt
            doubts[row] = characters


def head_outputs(
    states: np.ndarray, a: np.ndarray, b: np.ndarray, head: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (tasks, doubts of tokens), both from 0 to 1, from the last layer's states.

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
    return expit(inner @ head["outer.weight"].T + head["outer.bias"]), wrong


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


@cache
def load_pair_encoder(folder: str = str(SHIPPED), gpu: str | None = None) -> PairEncoder:
    """Calls PairEncoder.load, once in a process."""
    return PairEncoder.load(folder, gpu=gpu)


def _network(where: str, **given: Any) -> Any:
    """Loads the network of a folder, with one thread per batch: several batches at once are faster
    than several threads on one."""
    import ctranslate2

    return ctranslate2.Encoder(where, compute_type="int8", **given)


def check_folder(folder: Path) -> str:
    """Returns the digest of a pair encoder without loading it. Raises as PairEncoder.load does."""
    return str(_description(folder)["digest"])


def write_description(folder: Path, tasks: Sequence[str], summary: dict[str, Any]) -> None:
    """Writes pair_encoder.json beside the other files of a folder."""
    description = {
        "format": FORMAT_VERSION,
        "tasks": list(tasks),
        "digest": _digest(folder),
        "summary": summary,
    }
    text = json.dumps(description, ensure_ascii=False, indent=2)
    (folder / DESCRIPTION).write_text(text + "\n", "utf-8")


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; expected a pair encoder; {HOW_TO_MAKE}")
    try:
        description = json.loads(path.read_text("utf-8"))
        version, digest = description["format"], description["digest"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected the description of a pair encoder ({error})") from None
    if version != FORMAT_VERSION:
        raise ValueError(f"{path}: format {version!r}, but this version reads {FORMAT_VERSION}")
    for name in (TOKENIZER, HEAD, ENCODER):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder / name}: no such file; {path} lists it")
    if _digest(folder) != digest:
        raise ValueError(f"{path}: digest {digest}, but the files have {_digest(folder)}: damaged")
    return dict(description)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (TOKENIZER, HEAD, ENCODER):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:10]
