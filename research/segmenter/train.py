"""Trains LTP models on a gold corpus, and scores them."""

from __future__ import annotations

import tempfile
from itertools import accumulate
from pathlib import Path

from gaixie.research.segmenter.corpus import Split
from gaixie.udfs.text.gold import Paragraph
from gaixie.udfs.text.segmenters.ltp import LtpSegmenter

MODEL_FILES = {"cws": "cws_model.bin", "pos": "pos_model.bin"}


def train(task: str, epochs: int, split: Split, path: Path) -> None:
    """Trains one task and saves its model."""
    from ltp_extension.perceptron import CWSTrainer, POSTrainer

    if task == "cws":
        trainer = CWSTrainer()
    else:  # tags of all parts, because the trainer aborts the process at an unknown tag
        trainer = POSTrainer(sorted({tag for part in split for own in part for tag in own.tags}))
    trainer.epoch = epochs
    trainer.eval_threads = 1
    trainer.shuffle = False  # its shuffle takes no seed; the split is already shuffled
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("train", split.train), ("choice", split.choice)):
            lines = [" ".join(_tokens(paragraph, task)) + "\n" for paragraph in part]
            Path(folder, name).write_text("".join(lines), encoding="utf-8")
        trainer.load_train_data(str(Path(folder, "train")))
        trainer.load_eval_data(str(Path(folder, "choice")))
        trainer.train().save(str(path))


def _tokens(paragraph: Paragraph, task: str) -> list[str]:
    if task == "cws":
        return paragraph.words
    return [f"{word}/{tag}" for word, tag in zip(*paragraph, strict=True)]


def score(task: str, folder: Path, paragraphs: list[Paragraph]) -> dict[str, float]:
    """Scores the saved model: precision, recall and F1 of words, or accuracy of tags on gold
    words."""
    gold = [paragraph.words for paragraph in paragraphs]
    if task == "cws":
        cut = LtpSegmenter(str(folder)).cut(["".join(words) for words in gold])
        return word_scores(gold, cut)
    from ltp_extension.perceptron import POSModel

    model = POSModel.load(str(folder / MODEL_FILES["pos"]))
    agreed = [
        found == tag
        for paragraph in paragraphs
        for found, tag in zip(model.predict(paragraph.words), paragraph.tags, strict=True)
    ]
    return {"accuracy": sum(agreed) / len(agreed)}


def word_scores(gold: list[list[str]], cut: list[list[str]]) -> dict[str, float]:
    """Returns precision, recall and F1 of words; a word is right if both its ends agree.

    gold, cut: words of the same sentences. Values are shares from 0 to 1; 0 if no word is right.
    """
    both = [
        {(row, *span) for row, words in enumerate(side) for span in _spans(words)}
        for side in (gold, cut)
    ]
    agreed, (wanted, given) = len(both[0] & both[1]), map(len, both)
    return {
        "precision": agreed / max(given, 1),
        "recall": agreed / max(wanted, 1),
        "f1": 2 * agreed / max(given + wanted, 1),
    }


def _spans(words: list[str]) -> set[tuple[int, int]]:
    ends = list(accumulate(map(len, words)))
    return set(zip([0, *ends], ends, strict=False))
