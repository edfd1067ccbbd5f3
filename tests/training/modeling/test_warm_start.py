"""An encoder-decoder from a BERT must keep BERT's states, and put every weight in its place."""

from pathlib import Path

import pytest
import torch
from tiny_models import tiny_bart
from transformers import BertConfig, BertModel, BertTokenizer

from gaixie.training.modeling.model import build_model
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import BOS, EOS, MASK
from gaixie.training.modeling.warm_start import from_bert, load_bert
from gaixie.training.settings import Model
from gaixie.training.warm_start import main
from gaixie.udfs.text.entities import load_settings

ENTITIES = Path(__file__).parents[3] / "conf/entities.yaml"
CHARACTERS = "我们昨天公园看花他读了书今很好在,a1"
SENTENCES = ["我们昨天在公园看花,很好。", "他读了书。"]
LAYERS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """Writes a random BERT with full-width punctuation, like Chinese ones; read-only."""
    folder = tmp_path_factory.mktemp("bert")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS, "，", "。"]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", "utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=40,
        initializer_range=0.3,  # large, so that all parts matter
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def tokenizer() -> EntityAlignedTokenizer:
    """Returns a tokenizer with two words; the BERT lacks its token 龘."""
    words = ["我们", "昨天"]
    return EntityAlignedTokenizer.from_words(
        words, load_settings(ENTITIES), indices=2, characters=CHARACTERS + "龘"
    )


def by_characters() -> EntityAlignedTokenizer:
    return EntityAlignedTokenizer.from_words(
        [], load_settings(ENTITIES), word_characters=9, indices=2, characters=CHARACTERS
    )


def test_hidden_states_of_the_encoder_are_those_of_bert(folder):
    bert, characters = load_bert(folder)
    tokenizer = by_characters()
    model = from_bert(bert, characters, tokenizer).eval()
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    full_width = [text.replace(",", "，") for text in SENTENCES]
    ids = characters(full_width, padding=True, return_tensors="pt")
    assert batch["attention_mask"].equal(ids["attention_mask"])
    with torch.no_grad():
        own = model.get_encoder()(batch["input_ids"], batch["attention_mask"]).last_hidden_state
        theirs = bert(ids["input_ids"], ids["attention_mask"]).last_hidden_state
    there = batch["attention_mask"].bool()
    assert theirs[there].std() > 0.1
    torch.testing.assert_close(own[there], theirs[there], atol=1e-3, rtol=0)


def test_every_weight_of_the_decoder_has_its_place(folder, tokenizer):
    """Every decoder weight must come from its BERT layer: two layers are BERT's second and last of
    three."""
    bert, characters = load_bert(folder)
    decoder = from_bert(bert, characters, tokenizer, decoder_layers=2).model.decoder
    for layer, source in zip(
        decoder.layers, (bert.encoder.layer[1], bert.encoder.layer[2]), strict=False
    ):
        for attention in (layer.self_attn, layer.encoder_attn):
            assert attention.q_proj.weight.equal(source.attention.self.query.weight)
            assert attention.k_proj.bias.equal(source.attention.self.key.bias)
            assert attention.v_proj.weight.equal(source.attention.self.value.weight)
            assert attention.out_proj.weight.equal(source.attention.output.dense.weight)
        assert layer.fc1.weight.equal(source.intermediate.dense.weight)
        assert layer.fc2.bias.equal(source.output.dense.bias)
        assert layer.final_layer_norm.weight.equal(source.output.LayerNorm.weight)


def test_rows_of_the_embeddings(folder, tokenizer):
    bert, characters = load_bert(folder)
    model = from_bert(bert, characters, tokenizer)
    rows, theirs = model.get_input_embeddings().weight, bert.embeddings.word_embeddings.weight
    own, ids = tokenizer.get_vocab(), characters.get_vocab()
    for token, character in (("我", "我"), (",", "，"), ("A", "a"), ("1", "1")):
        assert rows[own[token]].equal(theirs[ids[character]])
    torch.testing.assert_close(rows[own["昨天"]], theirs[[ids["昨"], ids["天"]]].mean(0))
    for number, name in ((BOS, "[CLS]"), (EOS, "[SEP]"), (MASK, "[MASK]")):
        assert rows[number].equal(theirs[ids[name]])
    made = rows[[own["龘"], own["<date_1>"], own["<date_2>"], own["<degree_1>"]]]
    assert len({tuple(row.tolist()) for row in made}) == 4
    assert rows.equal(from_bert(bert, characters, tokenizer).get_input_embeddings().weight)


def test_the_command_leaves_a_pretrained_model(folder, tokenizer, tmp_path, capsys):
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    output = str(tmp_path / "warm")
    line = [str(tmp_path / "tokenizer"), "--from", folder, "--decoder-layers", "1"]
    assert main([*line, "--output", output]) == 0
    assert "3 + 1 layers of 32" in capsys.readouterr().out
    model = build_model(Model(pretrained=output), tokenizer, max_length=32)
    assert len(model.model.decoder.layers) == 1


@pytest.mark.parametrize("kind", ["none", "bart"])
def test_what_is_no_bert(tokenizer, tmp_path, capsys, kind):
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    if kind == "bart":
        tiny_bart(tmp_path / kind)
    bert = str(tmp_path / kind)
    assert main([str(tmp_path / "tokenizer"), "--from", bert, "--output", str(tmp_path / "o")]) == 2
    [line] = [row for row in capsys.readouterr().err.splitlines() if row.startswith("warm_start")]
    assert bert in line
    assert "bart is not a BERT" in line or kind == "none"
    assert not (tmp_path / "o").exists()
