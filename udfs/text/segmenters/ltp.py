"""Words by LTP: the segmenter behind ``ltp:NAME_OR_FOLDER``.

A spec names a local model folder (``research/train_segmenter.py`` writes one) or a model of the Hugging
Face hub (``LTP/small``, ``LTP/legacy``). Two kinds exist, and ``config.json`` says which:

* legacy (``"nerual": false``, spelled so by LTP): an averaged perceptron. It runs on
  ``ltp_extension`` alone; neither ``ltp`` nor PyTorch is imported.
* neural (``"nerual": true``): a small BERT. It needs ``pip install 'gaixie[ltp]'``.

Source: Che, Feng, Qin, Liu, "N-LTP: An Open-source Neural Language Technology Platform for
Chinese", EMNLP 2021 (demonstrations); the perceptron is LTP 3's, Che, Li, Liu, COLING 2010.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.udfs.text.code_points import CodePoints, Words, to_strings

CONFIG = "config.json"
NEURAL_WEIGHTS = "pytorch_model.bin"
# What decides a neural model's cuts, where the folder has it.
_NEURAL_FILES = (CONFIG, NEURAL_WEIGHTS, "vocab.txt", "tokenizer.json", "tokenizer_config.json")
_NEURAL_BATCH = 32
# LTP truncates at 512 tokens, two of them its own, and glues all that follows to the last word.
_NEURAL_CHARACTERS = 500

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
_SPACES_OR_WORD = re.compile(r"\s+|\S+")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Texts without these are the fast path: LTP's words cover them as they are.
_SPACE_OR_SURROGATE = re.compile("[\\s\ud800-\udfff]")
_GAP = -1


class LtpSegmenter:
    """Cuts sentences into words with an LTP model.

    model: a local folder, or OWNER/NAME (optionally @REVISION) on the Hugging Face hub.

    The constructor checks the folder and digests the model; the model itself is loaded at the first
    cut, once per process: a pickled segmenter carries only where its model is and which version it
    must have. On a Spark worker a local folder must stand at the same path as on the driver.

    Raises ValueError or OSError, in one line, where the folder, its config.json or a model file is
    missing or not what it should be, a name cannot be downloaded, or ``ltp`` is not installed for a
    neural model. Unpickling raises ValueError where the model is another one than was pickled.
    """

    name: str
    """``ltp-legacy``, or ``ltp-`` and the name of the neural model: ``ltp-small``."""
    version: str
    """Back-end version and 12 hexadecimal digits of the model's SHA-256: ``0.1.13-0f3a…``."""

    def __init__(self, model: str):
        self._folder = _find_folder(model)
        self._config = _read_config(self._folder)
        self._neural = bool(self._config["nerual"])
        self._models: dict[str, Any] = {}
        if self._neural:
            short_name = model if _is_hub_name(model) else self._folder.name
            self.name = "ltp-" + short_name.partition("@")[0].rpartition("/")[2].lower()
            backend, digest = "ltp", self._digest_neural()
        else:
            self.name = "ltp-legacy"
            data = self._read_legacy_model("cws")
            backend, digest = "ltp-extension", hashlib.sha256(data).hexdigest()
        self.version = f"{package_version(backend)}-{digest[:12]}"
        self._model = model if _is_hub_name(model) else str(self._folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._model, self.version)

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Words of each text; ``"".join(words) == text``, and a run of spaces is a word."""
        if self._neural:
            return [[word for word, _ in row] for row in self._run_neural(texts, ["cws"])]
        # One call for each text: memory that grows with every call on a list has been reported
        # (HIT-SCIR/ltp issue 623, release 4.2.11); calls on one string are free of it.
        predict = self._legacy("CWSModel", "cws").predict
        rows = []
        for text in texts:
            if _SPACE_OR_SURROGATE.search(text) is None:
                words = predict(text)
                if "".join(words) == text:
                    rows.append(words)
                    continue
            words = predict(_SURROGATE.sub("\ufffd", text))
            rows.append([word for word, _ in _cover(text, words)])
        return rows

    def word_ends(self, text: CodePoints) -> Words:
        """The same cuts for a column of code points."""
        rows = self.cut(to_strings(text))
        counts = np.fromiter(map(len, rows), np.int64, len(rows))
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        lengths = np.fromiter((len(word) for row in rows for word in row), np.int64, offsets[-1])
        row_starts = np.repeat(text.offsets[:-1] - text.offsets[0], counts)
        return Words((np.cumsum(lengths) - row_starts).astype(np.int32), offsets)

    def tag(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """(word, part of speech) of each text: the words of :meth:`cut`, the tags of the model.

        A run of spaces has the tag ``""``. Raises ValueError where the folder has no pos model.
        """
        if self._neural:
            return self._run_neural(texts, ["cws", "pos"])
        predict = self._legacy("POSModel", "pos").predict
        rows = []
        for words in self.cut(texts):
            visible = [_SURROGATE.sub("\ufffd", word) for word in words if not word.isspace()]
            # An empty sentence or word would abort the process, not raise.
            tags = iter(predict(visible) if visible else ())
            rows.append([(word, "" if word.isspace() else next(tags)) for word in words])
        return rows

    # Legacy models

    def _read_legacy_model(self, task: str) -> bytes:
        """The checked bytes of the folder's model for a task."""
        config = self._folder / CONFIG
        tasks = self._config.get("tasks")
        if not isinstance(tasks, dict) or not isinstance(tasks.get(task), str):
            raise ValueError(f'{config}: no {task} task; expected "tasks": {{"{task}": FILE}}')
        path = self._folder / tasks[task]
        if not path.is_file():
            raise FileNotFoundError(f"{path}: missing; {config} names it as the {task} model")
        data = path.read_bytes()
        _check_legacy_model(path, data, task)
        return data

    def _legacy(self, model_class: str, task: str) -> Any:
        if task not in self._models:
            self._read_legacy_model(task)
            from ltp_extension import perceptron

            path = self._folder / self._config["tasks"][task]
            try:
                self._models[task] = getattr(perceptron, model_class).load(str(path))
            except RuntimeError as error:
                reason = str(error).partition("\n")[0]
                raise ValueError(f"{path}: not a {task} model of LTP ({reason})") from error
        return self._models[task]

    # Neural models

    def _digest_neural(self) -> str:
        heads = (self._config.get("model") or {}).get("heads") or {}
        if "cws" not in heads:
            raise ValueError(f"{self._folder / CONFIG}: no cws task among its model's heads")
        weights = self._folder / NEURAL_WEIGHTS
        if not weights.is_file():
            raise FileNotFoundError(f"{weights}: missing; expected the weights of a neural model")
        try:
            package_version("ltp")
        except ModuleNotFoundError as error:
            raise ValueError(
                f"{self._folder}: a neural model needs ltp and torch: pip install 'gaixie[ltp]'"
            ) from error
        digest = hashlib.sha256()
        for name in _NEURAL_FILES:
            path = self._folder / name
            if path.is_file():
                with path.open("rb") as file:
                    digest.update(name.encode() + hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def _open_neural(self) -> Any:
        if "neural" not in self._models:
            self._models["neural"] = open_neural(self._folder)
        return self._models["neural"]

    def _run_neural(self, texts: Sequence[str], tasks: list[str]) -> list[list[tuple[str, str]]]:
        """(word, tag) of each text; the tag is ``""`` for gaps and without the pos task."""
        model = self._open_neural()
        if not model.supported_tasks.issuperset(tasks):
            raise ValueError(f"{self._folder / CONFIG}: no pos task; its tasks are cws only")
        pieces = [
            (row, piece)
            for row, text in enumerate(texts)
            for piece in _short_pieces(_SURROGATE.sub("\ufffd", text))
            if not piece.isspace()
        ]
        words: list[list[str]] = [[] for _ in texts]
        tags: list[list[str]] = [[] for _ in texts]
        for start in range(0, len(pieces), _NEURAL_BATCH):
            batch = pieces[start : start + _NEURAL_BATCH]
            output = model.pipeline([piece for _, piece in batch], tasks=tasks)
            for k, (row, _) in enumerate(batch):
                words[row] += output.cws[k]
                # Rows of a batch are padded to the longest.
                tags[row] += (
                    output.pos[k][: len(output.cws[k])]
                    if "pos" in tasks
                    else [""] * len(output.cws[k])
                )
        return [
            [(word, "" if k == _GAP else row_tags[k]) for word, k in _cover(text, row_words)]
            for text, row_words, row_tags in zip(texts, words, tags, strict=True)
        ]


def open_neural(folder: Path) -> Any:
    """A neural model of the package ltp. Raises ImportError without it."""
    from ltp import LTP

    # ltp prints as it loads; standard output belongs to the caller.
    with contextlib.redirect_stdout(sys.stderr):
        model = LTP(str(folder))
    # transformers 5 dropped the older name of __call__, which ltp still uses.
    if not hasattr(model.tokenizer, "batch_encode_plus"):
        model.tokenizer.batch_encode_plus = model.tokenizer.__call__
    return model


@lru_cache(maxsize=4)
def _reopen(model: str, version: str) -> LtpSegmenter:
    """The segmenter that was pickled; cached, so that a Spark worker loads its model once."""
    segmenter = LtpSegmenter(model)
    if segmenter.version != version:
        raise ValueError(
            f"ltp:{model}: this model is {segmenter.version}, expected {version};"
            " the same model must stand on every machine"
        )
    return segmenter


def _is_hub_name(model: str) -> bool:
    return _HUB_NAME.fullmatch(model) is not None and not Path(model).expanduser().exists()


def _find_folder(model: str) -> Path:
    """The local folder of a model, downloaded where the model is named by its hub name."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if folder.exists():
        raise ValueError(f"ltp:{model}: is a file; expected a model folder with {CONFIG}")
    if not _is_hub_name(model):
        raise FileNotFoundError(
            f"ltp:{model}: no such folder; expected one with {CONFIG}, or a name such as LTP/small"
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ValueError(
            f"ltp:{model}: no such folder, and a model by name needs pip install 'gaixie[ltp]'"
        ) from error
    # Not ltp's own download: it passes an argument that huggingface_hub 1.0 removed.
    name, _, revision = model.partition("@")
    try:
        snapshot = snapshot_download(
            name, revision=revision or None, allow_patterns=["*.json", "*.bin", "*.txt"]
        )
    except Exception as error:  # the hub client raises errors of several libraries
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise OSError(
            f"ltp:{model}: no such folder, and no model of this name could be downloaded"
            f" ({reason}); without the network give a local folder"
        ) from error
    return Path(snapshot)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: no {CONFIG}; expected an LTP model folder")
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}); expected an LTP model's {CONFIG}") from error
    if not isinstance(config, dict) or "nerual" not in config:
        raise ValueError(f'{path}: no "nerual" (LTP\'s spelling); expected true or false')
    return config


def _check_legacy_model(path: Path, data: bytes, task: str) -> None:
    """Raise ValueError unless the bytes are a whole Avro container of this task's model.

    ltp_extension does not raise on a truncated model: it aborts the process, and a Spark worker
    would die without a word.
    """
    if data[:4] != b"Obj\x01":
        raise ValueError(f"{path}: not an LTP legacy model; expected an Avro file")
    truncated = ValueError(f"{path}: truncated; copy or train the {task} model again")
    try:
        metadata, position = {}, 4
        while True:
            count, position = _read_long(data, position)
            if count == 0:
                break
            if count < 0:  # a block that also states its size
                _, position = _read_long(data, position)
            for _ in range(abs(count)):
                pair = []
                for _ in range(2):
                    length, position = _read_long(data, position)
                    pair.append(data[position : position + length])
                    position += length
                metadata[pair[0]] = pair[1]
        position += 16  # the marker that also ends every block
        blocks = 0
        while position < len(data):
            _, position = _read_long(data, position)
            length, position = _read_long(data, position)
            position += length + 16
            blocks += 1
        schema = json.loads(metadata[b"avro.schema"])
    except (IndexError, KeyError, ValueError) as error:
        raise truncated from error
    if position != len(data) or blocks == 0:
        raise truncated
    if schema.get("name") in {"cws", "pos", "ner"} - {task}:
        raise ValueError(f"{path}: holds a {schema['name']} model; expected a {task} model")


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    """An Avro long (zigzag, seven bits a byte) and the position after it. IndexError at the end."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _cover(text: str, words: list[str]) -> list[tuple[str, int]]:
    """Words that cover a text without gaps, each with the index of LTP's word, or -1 for a gap.

    LTP reads past spaces: it drops those at the start, glues others to the word before them, and
    drops some control characters. Found again left to right, its words lose the spaces inside them,
    and what no word covers becomes words of its own.
    """
    pieces = []
    position = 0
    searchable = _SURROGATE.sub("\ufffd", text)
    for index, word in enumerate(words):
        for part in word.split():
            start = searchable.find(part, position)
            if start < 0:  # not a part of the text; its characters count as a gap
                continue
            pieces += [(gap, _GAP) for gap in _SPACES_OR_WORD.findall(text[position:start])]
            position = start + len(part)
            pieces.append((text[start:position], index))
    pieces += [(gap, _GAP) for gap in _SPACES_OR_WORD.findall(text[position:])]
    return pieces


def _short_pieces(text: str) -> Iterator[str]:
    """The text in pieces that a neural model takes whole, cut after punctuation where possible."""
    start = 0
    while len(text) - start > _NEURAL_CHARACTERS:
        window = text[start : start + _NEURAL_CHARACTERS]
        cut = max(window.rfind(mark) for mark in "。!?;,!？；，、 ") + 1
        yield window[: cut or _NEURAL_CHARACTERS]
        start += cut or _NEURAL_CHARACTERS
    if start < len(text):
        yield text[start:]
