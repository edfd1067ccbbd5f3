"""A vocabulary pruned to some texts must give them the same tokens and vectors as before."""

import json

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from gaixie.research.pair_encoder.network import prune

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
PIECES = [*SPECIAL, "▁", "hello", "今天", "天气", "今", "天", "气", "好", "wörld", "。"]


@pytest.fixture
def multilingual(tmp_path):
    """Writes a tiny network with a unigram tokenizer."""
    folder = tmp_path / "multilingual"
    sizes = {"hidden_size": 8, "intermediate_size": 8, "vocab_size": len(PIECES)}
    config = transformers.BertConfig(**sizes, num_hidden_layers=1, num_attention_heads=2)
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    scores = [(piece, -1.0 * len(PIECES) / len(piece)) for piece in PIECES]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "<mask>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_pieces_that_nobody_uses_go_and_the_others_keep_their_vectors(multilingual, tmp_path):
    prune(multilingual, 4 * ["今天天气好。"], tmp_path / "small")
    before = Tokenizer.from_file(str(multilingual / "tokenizer.json"))
    after = Tokenizer.from_file(str(tmp_path / "small/tokenizer.json"))
    assert set(PIECES) - set(after.get_vocab()) == {"hello", "wörld"}
    networks = map(transformers.BertModel.from_pretrained, (multilingual, tmp_path / "small"))
    old, new = (network.embeddings.word_embeddings.weight for network in networks)
    assert len(new) == after.get_vocab_size() == len(PIECES) - 2
    own, whole = (one.encode("今天天气好。", add_special_tokens=False) for one in (after, before))
    assert own.tokens == whole.tokens
    torch.testing.assert_close(new[own.ids], old[whole.ids], atol=0, rtol=0)
    pair = after.encode("今天", "天气")
    assert (pair.tokens[0], pair.tokens[-1]) == ("<s>", "</s>")
    second = pair.type_ids.index(1)
    assert pair.tokens[second - 1] == "</s>"
    assert set(pair.type_ids[second:]) == {1}
