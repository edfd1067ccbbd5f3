import plain_metrics
import pytest
from tiny_models import tiny_bert

from gaixie.udfs.metrics.encoder import load_encoder
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.similarity import SentenceSimilarity

SOURCES = ["今天天气很好", "我不知道", "你去北京了吗", "好"]
PARAPHRASES = ["今天的天气不错", "我不清楚", "我不知道", "好"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("similarity") / "bert")


def hidden(folder, text):
    """Returns the last hidden states (tokens, width)."""
    import torch

    encoder = load_encoder(folder)
    with torch.inference_mode():
        batch = encoder.tokenizer([text], return_tensors="pt")
        return encoder.network(batch["input_ids"]).last_hidden_state[0].numpy()


@pytest.mark.parametrize("prefix", ["", "abc "])
def test_equals_the_reference(folder, prefix):
    scores = SentenceSimilarity(folder, prefix).sentence_scores(Pairs.of(SOURCES, PARAPHRASES))
    for row, pair in enumerate(zip(SOURCES, PARAPHRASES, strict=True)):
        wanted = plain_metrics.similarity(*(hidden(folder, prefix + text) for text in pair))
        assert scores[row] == pytest.approx(wanted, abs=1e-6)
    assert scores[3] == pytest.approx(1)


def test_signature(folder):
    signature = SentenceSimilarity(folder).signature()
    assert signature.startswith("Similarity|model:bert@")
    assert "|layer:3|prefix:query:|precision:float32|v:" in signature
    assert "|prefix:none|" in SentenceSimilarity(folder, "").signature()
