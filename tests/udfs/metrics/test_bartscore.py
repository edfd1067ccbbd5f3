from __future__ import annotations

import numpy as np
import plain_metrics
import pytest
import torch
from tiny_models import POSITIONS, tiny_bart, tiny_bert
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from gaixie.udfs.metrics import bartscore
from gaixie.udfs.metrics.bartscore import BARTScore
from gaixie.udfs.metrics.metric import Pairs

SOURCES = ["今天天气很好", "我不知道", "你去北京了吗", "好", "好" * (POSITIONS + 5)]
PARAPHRASES = ["今天的天气不错", "我不清楚", "北京", "他今天不在上海,我很清楚。", "我"]
REFERENCES = ["好", "我不知道", "你在北京", "我很清楚", "好"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_bart(tmp_path_factory.mktemp("bartscore") / "bart")


def log_likelihood(folder: str, given: str, text: str) -> float:
    """One pair, one token after the other, from the model's start token on."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    inputs = torch.tensor([tokenizer(given)["input_ids"][: POSITIONS - 1]])
    if inputs[0, -1] != tokenizer.eos_token_id:  # cut: the end comes after what is kept
        inputs = torch.cat([inputs, torch.tensor([[tokenizer.eos_token_id]])], dim=1)
    tokens, history, rows = tokenizer(text)["input_ids"], [2], []
    for token in tokens:
        with torch.inference_mode():
            logits = network(inputs, decoder_input_ids=torch.tensor([history])).logits[0, -1]
        rows.append(torch.log_softmax(logits.double(), dim=0).numpy())
        history.append(token)
    return plain_metrics.bartscore(np.array(rows), tokens)


@pytest.mark.parametrize("batch_tokens", [1, 2048])
def test_equals_a_loop_over_tokens(folder, batch_tokens, monkeypatch):
    monkeypatch.setattr(bartscore, "BATCH_TOKENS", batch_tokens)
    scores = BARTScore(folder).sentence_scores(Pairs.of(SOURCES, PARAPHRASES))
    wanted = [log_likelihood(folder, *pair) for pair in zip(SOURCES, PARAPHRASES, strict=True)]
    np.testing.assert_allclose(scores, wanted, atol=2e-6)
    assert scores.max() < 0


def test_by_hand():
    # p = 1/2 and then 1/8: the mean of −1 and −3 times log 2.
    table = np.log([[0.5, 0.5], [0.875, 0.125]])
    assert plain_metrics.bartscore(table, [0, 1]) == pytest.approx(-2 * np.log(2))


def test_given_references_the_best_counts(folder):
    pairs = Pairs.of([None] * 5, PARAPHRASES, REFERENCES, SOURCES)
    scores = BARTScore(folder, "reference-paraphrase").sentence_scores(pairs)
    by_side = [
        BARTScore(folder).sentence_scores(Pairs.of(side, PARAPHRASES))
        for side in (REFERENCES, SOURCES)
    ]
    np.testing.assert_allclose(scores, np.maximum(*by_side), atol=2e-6)


def test_missing_sides(folder):
    pairs = Pairs.of(["好", None, "好"], ["好", "好", None], [None, "好", "好"])
    assert list(np.isnan(BARTScore(folder).sentence_scores(pairs))) == [False, True, True]
    by_reference = BARTScore(folder, "reference-paraphrase").sentence_scores(pairs)
    assert list(np.isnan(by_reference)) == [True, False, True]


def test_direction_decides_what_is_needed(folder):
    assert BARTScore(folder).needs_source
    assert not BARTScore(folder).needs_reference
    metric = BARTScore(folder, "reference-paraphrase")
    assert not metric.needs_source
    with pytest.raises(ValueError, match="bartscore needs a reference"):
        metric.sentence_scores(Pairs.of(["好"], ["好"]))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "bartscore needs a sequence-to-sequence model"),
        (
            {"model": "m", "direction": "up"},
            "direction 'up': expected one of source-paraphrase, ref",
        ),
        (
            {"model": "m", "precision": "half"},
            "precision 'half': expected one of float32, bfloat16",
        ),
    ],
)
def test_settings_that_make_no_sense(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        BARTScore(**settings)


def test_an_encoder_will_not_do(tmp_path):
    folder = tiny_bert(tmp_path / "bert")
    with pytest.raises(ValueError, match="bert is no sequence-to-sequence model"):
        BARTScore(folder).sentence_scores(Pairs.of(["好"], ["好"]))
