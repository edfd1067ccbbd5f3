"""Cuts words with LTP: the segmenter behind ``ltp:NAME_OR_FOLDER``; needs ``gaixie[ltp]``.

A spec names a local model folder or a model of the Hugging Face hub (``LTP/small``,
``LTP/legacy``). ``config.json`` says which of two kinds it is: legacy (``"nerual": false``, spelled
so by LTP), an averaged perceptron, or neural, a small BERT.

Source: Che, Feng, Qin, Liu, "N-LTP: An Open-source Neural Language Technology Platform for
Chinese", EMNLP 2021 (demonstrations); the perceptron is LTP 3's, Che, Li, Liu, COLING 2010.
"""

import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download

from gaixie.udfs.text.code_points import CodePoints, Words, to_strings, word_ends

CONFIG = "config.json"
NEURAL_FILES = (CONFIG, "pytorch_model.bin", "vocab.txt", "tokenizer.json", "tokenizer_config.json")
"""The files that decide a neural model's cuts, if the folder has them."""
PIECE = re.compile(r"(?s).{,500}$|.{1,500}(?<=[。!?;,！？；，、 ])|.{1,500}")
"""What a neural model reads at once: up to the end or a mark, since it takes only 512 tokens."""
SURROGATE, GAP = re.compile("[\ud800-\udfff]"), re.compile(r"\s+|\S+")

Tagged = list[tuple[str, str]]
"""The words of a text, each with its tag, or ``""``."""


class LtpSegmenter:
    """Cuts sentences into words with an LTP model.

    model: a local folder, or OWNER/NAME (optionally @REVISION) on the Hugging Face hub. A Spark
    worker needs a local folder at the same path as the driver.

    The constructor digests the model; the first cut loads it, once in a process. Raises ValueError
    or OSError, in one line, if there is no such model, or if one of its files is missing or
    damaged. Unpickling raises ValueError if the model has changed.
    """

    name: str
    """``ltp-legacy``, or ``ltp-`` and the name of the neural model: ``ltp-small``."""
    version: str
    """Back-end version and 12 hexadecimal digits of the model's SHA-256: ``0.1.13-0f3a…``."""

    def __init__(self, model: str):
        folder = Path(model).expanduser().resolve()
        self._model = str(folder) if folder.exists() else model
        self._folder = folder if folder.exists() else _download(model)
        config, digest = self._folder / CONFIG, hashlib.sha256()
        try:
            description = json.loads(config.read_bytes())
            self._neural = bool(description["nerual"])
            if self._neural:
                self.name = f"ltp-{self._model.partition('@')[0].rpartition('/')[2].lower()}"
                for file in filter(Path.is_file, map(self._folder.joinpath, NEURAL_FILES)):
                    digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
            else:
                self.name = "ltp-legacy"
                tasks = {name: self._folder / file for name, file in description["tasks"].items()}
                digest.update({name: _read_legacy(file) for name, file in tasks.items()}["cws"])
            backend = version("ltp" if self._neural else "ltp-extension")
            self.version = f"{backend}-{digest.hexdigest()[:12]}"
        except PackageNotFoundError:
            raise ValueError(f"{folder}: needs ltp: pip install 'gaixie[ltp]'") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{config}: expected that of an LTP model ({error!r})") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._model, self.version)

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the words of each text: ``"".join(words) == text``. A run of spaces is a word."""
        return [[word for word, _ in self._run(text, ["cws"])] for text in texts]

    def word_ends(self, text: CodePoints) -> Words:
        """Makes the same cuts in a column of code points."""
        return word_ends(self.cut(to_strings(text)))

    def tag(self, texts: Sequence[str]) -> list[Tagged]:
        """Returns (word, tag) for each text: the words of :meth:`cut`, the tags of the model.

        A run of spaces has the tag ``""``. Raises ValueError if the model has no pos task.
        """
        return [self._run(text, ["cws", "pos"]) for text in texts]

    def _run(self, text: str, tasks: list[str]) -> Tagged:
        """Covers a text with words; what LTP dropped or altered becomes words with the tag ``""``.

        One text at a time: calls on a list leak memory (HIT-SCIR/ltp issue 623, release 4.2.11).
        """
        model, known = _load(self._folder), SURROGATE.sub("\ufffd", text)
        row, position = [], 0
        for piece in filter(str.strip, PIECE.findall(known) if self._neural else [known]):
            found = model.pipeline(piece, tasks=tasks)
            for whole, tag in zip_longest(found.cws, found.pos or (), fillvalue=""):
                for word in whole.split():
                    if (start := known.find(word, position)) >= 0:
                        row += [(gap, "") for gap in GAP.findall(text[position:start])]
                        position = start + len(word)
                        row.append((text[start:position], tag))
        return row + [(gap, "") for gap in GAP.findall(text[position:])]


def _read_legacy(path: Path) -> bytes:
    """Reads a legacy model. On one that is cut short, LTP would abort the process.

    It is an Avro container: its header ends with a zero and a marker, which also ends each block.
    """
    data = path.read_bytes()
    blocks = data.partition(b"\0")[2]
    if not data.startswith(b"Obj\x01") or len(blocks) <= 32 or not blocks.endswith(blocks[:16]):
        raise ValueError(f"{path}: not a whole Avro file")
    return data


@cache
def _load(folder: Path) -> Any:
    from ltp import LTP  # needs PyTorch

    with contextlib.redirect_stdout(sys.stderr):  # ltp prints as it loads
        model = LTP(str(folder))
    if hasattr(model, "tokenizer"):
        # transformers 5 dropped the older name of __call__, which ltp still uses.
        model.tokenizer.batch_encode_plus = model.tokenizer.__call__
    return model


@cache
def _reopen(model: str, expected: str) -> LtpSegmenter:
    """Reopens a pickled segmenter, once in a process."""
    segmenter = LtpSegmenter(model)
    if segmenter.version != expected:
        raise ValueError(f"ltp:{model}: this model is {segmenter.version}, expected {expected}")
    return segmenter


def _download(model: str) -> Path:
    """Downloads a model of the hub; ltp's own download fails with huggingface_hub 1."""
    name, _, revision = model.partition("@")
    try:
        kinds = ["*.json", "*.bin", "*.txt"]
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=kinds))
    except (OSError, ValueError) as error:  # the hub's errors, and those of its HTTP client
        reason = str(error).partition("\n")[0]
        raise OSError(f"ltp:{model}: neither a folder nor a model of the hub: {reason}") from error
