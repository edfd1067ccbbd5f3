import random

import bert_score
import numpy as np
import pyarrow as pa
import pytest
import torch
from tiny_models import CHARACTERS

from gaixie.udfs.metrics import bertscore
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.metric import Pairs


@pytest.fixture(scope="module")
def sentences() -> tuple[list[str], list[str], list[str]]:
    """Returns paraphrases and two columns of references."""
    rng = random.Random(0)

    def sentence() -> str:
        return " ".join("".join(rng.choices(CHARACTERS, k=rng.randint(1, 9))) for _ in "ab")

    return tuple([sentence() for _ in range(60)] for _ in range(3))


def test_equals_the_package(bert, sentences):
    ours, theirs, _ = sentences
    options = {"model_type": bert, "num_layers": 3, "nthreads": 0, "device": "cpu"}
    wanted = bert_score.score(ours, theirs, **options)
    found = BERTScore(bert).compare(pa.array(ours), [pa.array(theirs)])
    np.testing.assert_allclose(found, torch.stack(wanted, dim=1).numpy(), atol=2e-6)


def test_missing_and_empty_sides(bert):
    pairs = Pairs.of(
        [None, None, None, None, None],
        ["今天天气很好", None, "我不知道", "", "你好"],
        ["今天天气很好", "我", None, "我", " "],
        [None, "我", "我不知道", None, "你好"],
    )
    scores = BERTScore(bert).sentence_scores(pairs)
    assert scores == pytest.approx([1, np.nan, 1, 0, 1], nan_ok=True, abs=1e-6)
    assert BERTScore(bert).corpus_score(pairs) == pytest.approx(0.75, abs=1e-6)


def test_chunks_do_not_change_scores(bert, sentences, monkeypatch):
    pairs = Pairs.of(sentences[0], *sentences)
    whole = BERTScore(bert).sentence_scores(pairs)
    monkeypatch.setattr(bertscore, "PAIRS_AT_ONCE", 7)
    monkeypatch.setattr(bertscore, "CELLS_AT_ONCE", 500)
    parts = BERTScore(bert).sentence_scores(pairs)
    np.testing.assert_allclose(parts, whole, atol=1e-6)
