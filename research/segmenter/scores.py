"""Scores of a trained model on held-out paragraphs."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from gaixie.research.segmenter.train import MODEL_FILES
from gaixie.udfs.text.gold import Paragraph
from gaixie.udfs.text.segmenters.ltp import LtpSegmenter


def score_words(folder: Path, paragraphs: list[Paragraph]) -> dict[str, float]:
    """Word precision, recall and F1 of the saved model, as the scoring job will use it."""
    gold = [paragraph.words for paragraph in paragraphs]
    return word_scores(gold, LtpSegmenter(str(folder)).cut(["".join(words) for words in gold]))


def word_scores(gold: list[list[str]], cut: list[list[str]]) -> dict[str, float]:
    """Precision, recall and F1 over words: a word counts where both its ends agree.

    gold, cut: words of the same sentences. Shares between 0 and 1; 0 where nothing agrees.
    """
    agreed = wanted = given = 0
    for gold_words, cut_words in zip(gold, cut, strict=True):
        gold_spans, cut_spans = _spans(gold_words), _spans(cut_words)
        agreed += len(gold_spans & cut_spans)
        wanted += len(gold_spans)
        given += len(cut_spans)
    precision = agreed / given if given else 0.0
    recall = agreed / wanted if wanted else 0.0
    f1 = 2 * precision * recall / (precision + recall) if agreed else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _spans(words: list[str]) -> set[tuple[int, int]]:
    ends = list(accumulate(map(len, words)))
    return set(zip([0, *ends], ends, strict=False))


def score_tags(folder: Path, paragraphs: list[Paragraph]) -> dict[str, float]:
    """Share of the gold words whose tag the saved model finds."""
    from ltp_extension.perceptron import POSModel

    model = POSModel.load(str(folder / MODEL_FILES["pos"]))
    agreed = total = 0
    for paragraph in paragraphs:
        tags = model.predict(paragraph.words)
        agreed += sum(map(str.__eq__, tags, paragraph.tags))
        total += len(tags)
    return {"accuracy": agreed / total}
