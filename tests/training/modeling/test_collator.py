"""What a model reads and must predict, token by token, and the loss of it."""

import math

import pytest
import torch
from tiny_causal import tiny_causal
from transformers import AutoTokenizer

from gaixie.training.loop.stage import count_right, token_loss
from gaixie.training.modeling.collator import IGNORED, Collator
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import EOS
from gaixie.udfs.paraphrase.prompt import degree
from gaixie.udfs.text.entities import load_settings
from gaixie.udfs.text.entities_kept import ENTITIES

PAIRS = [
    {"source": "他2024年3月去了山里", "paraphrase": "2024年3月他在山里"},
    {"source": "春天", "paraphrase": "春天来了，春天来了"},
]


@pytest.fixture(scope="module")
def aligned() -> EntityAlignedTokenizer:
    return EntityAlignedTokenizer.from_words(["春天", "山里", "说法"], load_settings(ENTITIES))


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    tokenizer = AutoTokenizer.from_pretrained(tiny_causal(tmp_path_factory.mktemp("m"), False))
    tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def test_a_pair_for_a_sequence_to_sequence_model(aligned):
    """Padding must equal the tokenizer's own, and the decoder must read the labels behind the start
    token."""
    batch = Collator(aligned, 64, EOS)(PAIRS)
    sources, targets = ([row[name] for row in PAIRS] for name in ("source", "paraphrase"))
    rows = aligned(sources, text_target=targets)
    expected = aligned.pad({"input_ids": rows["input_ids"]}, return_tensors="pt")
    assert torch.equal(batch["input_ids"], expected["input_ids"])
    assert torch.equal(batch["attention_mask"], expected["attention_mask"])
    first, second = rows["labels"]
    left = len(second) - len(first)
    assert batch["labels"].tolist() == [first + [IGNORED] * left, second]
    moved = [[EOS, *first, *[aligned.pad_token_id] * (left - 1)], [EOS, *second[:-1]]]
    assert batch["decoder_input_ids"].tolist() == moved


def test_a_pair_for_a_causal_model(causal):
    """The model must read prompt and paraphrase, and be judged on paraphrase and end alone."""
    row = {"source": "货物在仓库", "paraphrase": "仓库的货物", "code": "口语"}
    batch = Collator(causal, 64, None, "code")([row])
    prompt = [causal.bos_token_id, *causal("原句：货物在仓库\n改写口语：")["input_ids"]]
    target = causal("仓库的货物")["input_ids"]
    assert batch["input_ids"].tolist() == [prompt + target]
    assert batch["attention_mask"].tolist() == [[1] * len(prompt + target)]
    end = causal.eos_token_id
    assert batch["labels"].tolist() == [[IGNORED] * (len(prompt) - 1) + target + [end]]


def test_long_sentences_are_cut(causal, aligned):
    long = {"source": "货物" * 40, "paraphrase": "仓库" * 40}
    batch = Collator(causal, 8, None)([long])
    prompt = [causal.bos_token_id, *causal(f"原句：{'货物' * 4}\n改写：")["input_ids"]]
    assert batch["input_ids"].tolist() == [prompt + causal("仓库" * 4)["input_ids"]]
    assert Collator(aligned, 8, EOS)([long])["labels"].shape == (1, 8)


def test_codes(causal):
    """A code must be the column's, else the measured degree, for all but a few pairs."""
    collate = Collator(causal, 64, None, "degree")
    rows = [{"source": f"货物在仓库{k}号", "paraphrase": f"仓库{k}号有货物"} for k in range(400)]
    told = [collate.code_of(row) for row in rows]
    assert 0.8 < sum(map(bool, told)) / len(told) < 0.9
    for row, code in zip(rows, told, strict=True):
        assert code in ("", str(degree(row["source"], row["paraphrase"])))
    assert collate.code_of(rows[0] | {"code": "正式"}) == "正式"
    assert Collator(causal, 64, None).code_of(rows[0] | {"code": "正式"}) == ""


def test_loss_by_hand():
    """Two tokens with probabilities 1/4 and 1/2; the third does not count."""
    logits = torch.tensor([[[math.log(3), 0.0], [0.0, 0.0], [5.0, 0.0]]])
    labels = torch.tensor([[1, 0, IGNORED]])
    loss = math.log(4) + math.log(2)
    assert token_loss({"logits": logits}, labels).item() == pytest.approx(loss / 2)
    assert token_loss({"logits": logits}, labels, torch.tensor(8)).item() == pytest.approx(loss / 8)
    # Smoothing by 0.2 takes 0.1 of each token: 0.9 × -log p + 0.1 × -log (1 - p).
    smooth = 0.9 * math.log(4) + 0.1 * math.log(4 / 3) + math.log(2)
    found = token_loss({"logits": logits}, labels, label_smoothing=0.2)
    assert found.item() == pytest.approx(smooth / 2)
    assert count_right((logits, None), labels).tolist() == [[1, 2]]
