"""LTP's trainer on a gold corpus."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gaixie.research.segmenter.corpus import Split
from gaixie.udfs.text.gold import Paragraph

MODEL_FILES = {"cws": "cws_model.bin", "pos": "pos_model.bin"}


def train(task: str, epochs: int, split: Split, path: Path) -> None:
    """Train one task and save its model."""
    from ltp_extension.perceptron import CWSTrainer, POSTrainer

    if task == "cws":
        trainer = CWSTrainer()
    else:
        # Of all parts: the trainer aborts the process at a tag that it does not know.
        parts = (split.train, split.choice, split.held_out)
        trainer = POSTrainer(sorted({t for part in parts for p in part for t in p.tags}))
    trainer.epoch = epochs
    trainer.eval_threads = 1
    trainer.shuffle = False  # its order is random without a seed; the split's order is shuffled
    with tempfile.TemporaryDirectory() as folder, _native_output_to_stderr():
        for name, part in (("train", split.train), ("choice", split.choice)):
            lines = "".join(format_paragraph(paragraph, task) for paragraph in part)
            Path(folder, name).write_text(lines, encoding="utf-8")
        trainer.load_train_data(str(Path(folder, "train")))
        trainer.load_eval_data(str(Path(folder, "choice")))
        trainer.train().save(str(path))


def format_paragraph(paragraph: Paragraph, task: str) -> str:
    """A line as LTP's trainers read it."""
    if task == "cws":
        return " ".join(paragraph.words) + "\n"
    return " ".join(f"{w}/{t}" for w, t in zip(*paragraph, strict=True)) + "\n"


@contextlib.contextmanager
def _native_output_to_stderr() -> Iterator[None]:
    """Send what native code prints on standard output, a line an epoch, to standard error."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
