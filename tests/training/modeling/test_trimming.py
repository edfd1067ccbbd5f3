"""A trimmed vocabulary must lose no text, and change nothing of the text that it was made for."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_causal import tiny_qwen
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers import PreTrainedTokenizerFast as FastTokenizer

from gaixie.training.modeling.trimming import trim, trim_like

END = "<|endoftext|>"
COMMON = [
    "今天天气很好，我们去公园看花。",
    "他昨天在图书馆看书，今天去公园。",
    "公园里的花很好看。",
]
OTHER = ["The quick brown fox jumps over the lazy dog.", "机器学习模型的训练", "東京タワー"]
RARE = ["龘靐齉爩", "😀👩‍👩‍👧", "\U00020000𠮷", "é́ ￼ \t\n", "<|endoftext", "Ω≈ç√ 한국어"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Returns a model like Qwen's with a byte-level BPE, and both trimmed, saved and loaded."""
    model, tokenizer = tiny_qwen(COMMON + OTHER)
    tokenizer.eos_token = tokenizer.pad_token = END
    folder = tmp_path_factory.mktemp("trimmed")
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    for one in trim(copy, tokenizer, COMMON * 4, least=4):
        one.save_pretrained(folder)
    again = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    return model, tokenizer, *again


def test_its_size(both):
    _, tokenizer, trimmed, small = both
    assert 256 < len(small) < len(tokenizer)
    assert trimmed.get_input_embeddings().num_embeddings == len(small) == trimmed.config.vocab_size
    assert small.eos_token == END
    assert small.convert_tokens_to_ids(END) == small.eos_token_id == trimmed.config.eos_token_id
    assert "<|im_end|>" not in small.get_vocab()


@given(st.text(max_size=40) | st.sampled_from(OTHER + RARE))
def test_no_text_is_lost(both, text):
    *_, small = both
    assert small.decode(small(text, add_special_tokens=False)["input_ids"]) == text


def test_the_model_says_the_same_of_common_text(both):
    """Logits of the tokens that are kept must be what they were."""
    model, tokenizer, trimmed, small = both
    tokens = [*small.get_vocab()]
    old, new = (one.convert_tokens_to_ids(tokens) for one in (tokenizer, small))
    for text in COMMON:
        assert small.tokenize(text) == tokenizer.tokenize(text)
        with torch.no_grad():
            expected = model(**tokenizer(text, return_tensors="pt")).logits[0][:, old]
            found = trimmed(**small(text, return_tensors="pt")).logits[0][:, new]
        torch.testing.assert_close(found, expected)


def test_the_tokens_of_another(both):
    model, tokenizer, trimmed, small = both
    like, _ = trim_like(copy.deepcopy(model), tokenizer, small)
    assert all(map(torch.equal, like.parameters(), trimmed.parameters()))
    with pytest.raises(ValueError, match="the base has no token"):
        trim_like(trimmed, small, tokenizer)


def test_another_kind_of_tokenizer(both):
    words = FastTokenizer(tokenizer_object=Tokenizer(models.WordLevel({"甲": 0}, "甲")))
    with pytest.raises(ValueError, match="expected BPE"):
        trim(both[0], words, COMMON, 4)
