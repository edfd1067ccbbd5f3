"""Cuts words with LTP: the segmenter behind ``ltp:NAME_OR_FOLDER``.

A spec names a local model folder (``research/train_segmenter.py`` writes one) or a model of the
Hugging Face hub (``LTP/small``, ``LTP/legacy``). Two kinds exist, and ``config.json`` says which:

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

from gaixie.udfs.text.code_points import CodePoints, Words, to_strings, word_ends

CONFIG = "config.json"
NEURAL_WEIGHTS = "pytorch_model.bin"
# The files that decide a neural model's cuts, if the folder has them.
_NEURAL_FILES = (CONFIG, NEURAL_WEIGHTS, "vocab.txt", "tokenizer.json", "tokenizer_config.json")
_NEURAL_BATCH = 32
# LTP truncates at 512 tokens, two of them its own, and appends all that follows to the last word.
_NEURAL_CHARACTERS = 500

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
_SPACE, _SPACES_OR_WORD = re.compile(r"\s"), re.compile(r"\s+|\S+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TASK = re.compile(rb'"name"\s*:\s*"(cws|pos|ner)"')
_GAP = -1


class LtpSegmenter:
    """Cuts sentences into words with an LTP model.

    model: a local folder, or OWNER/NAME (optionally @REVISION) on the Hugging Face hub.

    The constructor checks the folder and digests the model. The first cut loads the model, once per
    process: a pickled segmenter holds only the model's path and required version. On a Spark worker
    a local folder must be at the same path as on the driver.

    Raises ValueError or OSError, in one line, if the folder, its config.json or a model file is
    missing or invalid, if a name cannot be downloaded, or if ``ltp`` is not installed for a neural
    model. Unpickling raises ValueError if the model has changed.
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
        self._model = model if _is_hub_name(model) else str(self._folder)
        if self._neural:
            short_name = self._model.partition("@")[0].rpartition("/")[2]
            self.name = f"ltp-{short_name.lower()}"
            backend, digest = "ltp", self._digest_neural()
        else:
            self.name = "ltp-legacy"
            data = self._legacy_file("cws").read_bytes()
            backend, digest = "ltp-extension", hashlib.sha256(data).hexdigest()
        self.version = f"{package_version(backend)}-{digest[:12]}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._model, self.version)

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the words of each text: ``"".join(words) == text``. A run of spaces is a word."""
        if self._neural:
            return [[word for word, _ in row] for row in self._run_neural(texts, ["cws"])]
        # One call for each text: calls on a list leak memory (HIT-SCIR/ltp issue 623, release
        # 4.2.11); calls on one string do not.
        predict = self._legacy("CWSModel", "cws").predict
        rows = []
        for text in texts:
            words = predict(_SURROGATE.sub("\ufffd", text))
            if _SPACE.search(text) or "".join(words) != text:
                words = [word for word, _ in _cover(text, words)]
            rows.append(words)
        return rows

    def word_ends(self, text: CodePoints) -> Words:
        """Makes the same cuts in a column of code points."""
        return word_ends(self.cut(to_strings(text)))

    def tag(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Returns (word, tag) for each text: the words of :meth:`cut`, the tags of the model.

        A run of spaces has the tag ``""``. Raises ValueError if the folder has no pos model.
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

    def _legacy_file(self, task: str) -> Path:
        """Returns the checked file of the folder's model for a task."""
        config, tasks = self._folder / CONFIG, self._config.get("tasks")
        if not isinstance(tasks, dict) or not isinstance(tasks.get(task), str):
            raise ValueError(f'{config}: no {task} task; expected "tasks": {{"{task}": FILE}}')
        path = self._folder / tasks[task]
        if not path.is_file():
            raise FileNotFoundError(f"{path}: missing; {config} names it as the {task} model")
        _check_avro(path, task)
        return path

    def _legacy(self, model_class: str, task: str) -> Any:
        if task not in self._models:
            from ltp_extension import perceptron

            path = self._legacy_file(task)
            try:
                self._models[task] = getattr(perceptron, model_class).load(str(path))
            except RuntimeError as error:
                reason = str(error).partition("\n")[0]
                raise ValueError(f"{path}: not a {task} model of LTP ({reason})") from error
        return self._models[task]

    def _digest_neural(self) -> str:
        if "cws" not in ((self._config.get("model") or {}).get("heads") or {}):
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
        for path in filter(Path.is_file, map(self._folder.joinpath, _NEURAL_FILES)):
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def _run_neural(self, texts: Sequence[str], tasks: list[str]) -> list[list[tuple[str, str]]]:
        """Returns (word, tag) for each text; the tag is ``""`` for gaps or without a pos task."""
        if "neural" not in self._models:
            self._models["neural"] = open_neural(self._folder)
        model = self._models["neural"]
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
                count = len(output.cws[k])  # rows of a batch are padded to the longest
                words[row] += output.cws[k]
                tags[row] += output.pos[k][:count] if "pos" in tasks else [""] * count
        return [
            [(word, "" if k == _GAP else row_tags[k]) for word, k in _cover(text, row_words)]
            for text, row_words, row_tags in zip(texts, words, tags, strict=True)
        ]


def open_neural(folder: Path) -> Any:
    """Opens a neural model with the package ltp. Raises ImportError without it."""
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
    """Reopens a pickled segmenter; cached, so that a Spark worker loads its model once."""
    segmenter = LtpSegmenter(model)
    if segmenter.version != version:
        raise ValueError(
            f"ltp:{model}: this model is {segmenter.version}, expected {version};"
            " every machine needs the same model"
        )
    return segmenter


def _is_hub_name(model: str) -> bool:
    return _HUB_NAME.fullmatch(model) is not None and not Path(model).expanduser().exists()


def _find_folder(model: str) -> Path:
    """Returns the local folder of a model; downloads a model that has a hub name."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if folder.exists():
        raise ValueError(f"ltp:{model}: is a file; expected a model folder with {CONFIG}")
    if not _is_hub_name(model):
        raise FileNotFoundError(
            f"ltp:{model}: no such folder; expected one with {CONFIG}, or a name such as LTP/small"
        )
    name, _, revision = model.partition("@")
    try:
        # Not ltp's own download: it passes an argument that huggingface_hub 1.0 removed.
        from huggingface_hub import snapshot_download

        kinds = ["*.json", "*.bin", "*.txt"]
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=kinds))
    except ImportError as error:
        raise ValueError(
            f"ltp:{model}: no such folder, and a model by name needs pip install 'gaixie[ltp]'"
        ) from error
    except Exception as error:  # the hub client raises errors of several libraries
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise OSError(
            f"ltp:{model}: no such folder, and no model of this name could be downloaded"
            f" ({reason}); if there is no network, give a local folder"
        ) from error


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


def _check_avro(path: Path, task: str) -> None:
    """Raises ValueError unless the file is a whole Avro container of this task's model.

    ltp_extension does not raise on a truncated model but aborts the process, so a Spark worker
    would die without a message. The header of a container ends with a zero and a 16-byte marker,
    which also ends each block.
    """
    data = path.read_bytes()
    if data[:4] != b"Obj\x01":
        raise ValueError(f"{path}: not an LTP legacy model; expected an Avro file")
    header, _, blocks = data.partition(b"\0")
    if len(blocks) <= 32 or not blocks.endswith(blocks[:16]):
        raise ValueError(f"{path}: truncated; copy or train the {task} model again")
    holds = _TASK.search(header)
    if holds and holds[1].decode() != task:
        raise ValueError(f"{path}: holds a {holds[1].decode()} model; expected a {task} model")


def _cover(text: str, words: list[str]) -> list[tuple[str, int]]:
    """Covers a text with words, without gaps; each has the index of LTP's word, or -1 for a gap.

    LTP drops spaces at the start and some control characters, and appends other spaces to the word
    before them. This function finds its words in the text again from left to right. They lose the
    spaces inside them, and uncovered text becomes words of its own.
    """
    pieces = []
    position = 0
    searchable = _SURROGATE.sub("\ufffd", text)
    for index, word in enumerate(words):
        for part in word.split():
            start = searchable.find(part, position)
            if start < 0:  # not in the text; its characters count as a gap
                continue
            pieces += [(gap, _GAP) for gap in _SPACES_OR_WORD.findall(text[position:start])]
            position = start + len(part)
            pieces.append((text[start:position], index))
    pieces += [(gap, _GAP) for gap in _SPACES_OR_WORD.findall(text[position:])]
    return pieces


def _short_pieces(text: str) -> Iterator[str]:
    """Cuts a text, if possible after punctuation, into pieces that a neural model takes whole."""
    start = 0
    while len(text) - start > _NEURAL_CHARACTERS:
        window = text[start : start + _NEURAL_CHARACTERS]
        cut = max(window.rfind(mark) for mark in "。!?;,!？；，、 ") + 1
        yield window[: cut or _NEURAL_CHARACTERS]
        start += cut or _NEURAL_CHARACTERS
    if start < len(text):
        yield text[start:]
