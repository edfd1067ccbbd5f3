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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_bart(tmp_path_factory.mktemp("bartscore") / "bart")


def log_likelihood(folder: str, given: str, text: str) -> float:
    """Computes a pair's log-likelihood token by token, from the model's start token."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    inputs = torch.tensor([tokenizer(given)["input_ids"][: POSITIONS - 1]])
    if inputs[0, -1] != tokenizer.eos_token_id:  # the text was cut: the end token follows the rest
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


def test_an_encoder_will_not_do(tmp_path):
    folder = tiny_bert(tmp_path / "bert")
    with pytest.raises(ValueError, match="bert is not a sequence-to-sequence model"):
        BARTScore(folder).sentence_scores(Pairs.of(["好"], ["好"]))
