"""The rewriter's batches and its training, on a tiny network."""

from itertools import count

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

from gaixie.research.make_rewriter import read_weights, write_weights
from gaixie.research.pair_encoder.examples import Example
from gaixie.research.pair_encoder.training import tensors_of
from gaixie.research.rewriter import training
from gaixie.research.rewriter.material import KINDS, Material
from gaixie.research.rewriter.reading import _inputs, choose
from gaixie.research.rewriter.training import BOS, END, MASK, PAD, Batches, configuration, start
from gaixie.udfs.meaning.pair_encoder import SHIPPED, TASKS

WORDS = 60
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("bert")
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=160,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def material(pairs, kinds, degrees, watched=None):
    texts = [text for pair in pairs for text in pair]
    places = np.arange(len(texts), dtype=np.int32).reshape(-1, 2)
    ends = np.cumsum([len(text) for text in texts])
    tokens = np.array([token for text in texts for token in text], np.uint16)
    columns = np.array(kinds, np.uint8), np.array(degrees, np.uint8)
    return Material(tokens, ends, places, *columns, np.array(watched or [False] * len(pairs)))


def test_the_tensors_of_a_pair():
    batches = Batches(material([([10, 11, 12], [20, 21])], [1], [4]), WORDS, CPU, 0)
    own = batches.batch(torch.tensor([0]), 10, noisy=False)
    kind, degree = WORDS + KINDS.index("written"), WORDS + len(KINDS) - 1 + 4
    assert own.source.tolist() == [[BOS, kind, degree, 10, 11, 12, END, PAD, PAD, PAD]]
    assert own.there.tolist() == [[True] * 7 + [False] * 3]
    assert own.labels.tolist() == [[20, 21, END] + [-100] * 7]
    assert own.read.tolist() == [[BOS, 20, 21, END] + [PAD] * 6]


def test_only_plain_sentences_are_noisy():
    text = list(range(10, 30))
    batches = Batches(material([(text, text)] * 2, [2, 1], [0, 3]), WORDS, CPU, 0)
    plain, written = batches.batch(torch.tensor([0, 1]), 32).source.tolist()
    assert written[3:23] == text
    assert plain[3:23] != text
    assert MASK in plain[3:23]
    assert {*plain[3:23]} <= {*text, MASK}
    assert plain[23] == END


def test_each_pair_once_an_epoch():
    pairs = [([10 + k], [10 + k]) for k in range(40)]
    batches = Batches(material(pairs, [0] * 40, [1] * 40), WORDS, CPU, 0)
    drawn = torch.cat([batches._next((0, 0), 8) for _ in range(5)])
    assert sorted(drawn.tolist()) == list(range(40))
    assert len(batches._next((0, 0), 100)) == 100


def test_watched_pairs_are_not_drawn():
    pairs = [([10 + k], [10 + k]) for k in range(6)]
    own = material(pairs, [0] * 6, [1] * 6, [k % 2 == 0 for k in range(6)])
    batches = Batches(own, WORDS, CPU, 0)
    assert sorted(batches._next((0, 0), 3).tolist()) == [1, 3, 5]
    assert batches.watched[0, 0].tolist() == [0, 2, 4]


def test_it_starts_from_the_encoder(bert):
    """Hidden states are BERT's, and the decoder does not see them yet."""
    model = start(bert, WORDS).eval()
    ids = torch.tensor([[0, 7, 8, 9, 2]])
    with torch.no_grad():
        ours = model.model.encoder(ids).last_hidden_state
        theirs = BertModel.from_pretrained(bert, add_pooling_layer=False).eval()(ids)
        assert (ours - theirs.last_hidden_state).abs().max() < 1e-3
        logits = [
            model(input_ids=source, decoder_input_ids=ids).logits
            for source in (ids, torch.tensor([[0, 30, 31, 32, 2]]))
        ]
    assert torch.equal(*logits)


def test_it_learns_to_write_and_its_weights_come_back(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "RATE", 4e-3)
    monkeypatch.setattr(training, "SHARES", dict.fromkeys(training.SHARES, 1.0))
    before = start(bert, WORDS).model.encoder.layers[0].fc1.weight.detach().clone()
    monkeypatch.setattr(training, "PHASES", ((1.0, (0, 1.0, 0, 0)),))
    rng = np.random.default_rng(0)
    texts = rng.integers(10, WORDS, (6, 2, 5)).tolist()
    # The width of a batch is that of its translated pairs' share: one of them is here for that.
    own = material([*texts, texts[0]], [1] * 6 + [0], [3] * 7)
    torch.manual_seed(0)
    model = start(bert, WORDS)
    model.config.dropout = 0.0
    batches = Batches(own, WORDS, CPU, 0)
    said = training.train(model, batches, 300, tokens=96, clock=count().__next__)
    *_, last = said
    assert last.endswith("tokens written")
    assert not torch.equal(model.model.encoder.layers[0].fc1.weight, before)
    write_weights(model, tmp_path)
    state = read_weights(tmp_path)
    again = type(model)(configuration(state)).eval()
    again.load_state_dict(state, strict=False)
    batch = batches.batch(torch.arange(6), 16, noisy=False)
    written = again.generate(
        input_ids=batch.source,
        attention_mask=batch.there.long(),
        max_new_tokens=8,
        do_sample=False,
        num_beams=1,
    )
    for row, text in enumerate(texts):
        assert written[row, 1:7].tolist() == [*text[1], END]


class Reader(torch.nn.Module):
    """Doubts a paraphrase with token 50 in it, and calls those with larger tokens more fluent."""

    def forward(self, inputs, a, b):
        ids = inputs["input_ids"]
        logits = torch.zeros(len(ids), len(TASKS))
        logits[:, TASKS.index("same")] = 4 - 8 * ((ids == 50) & b.bool()).any(1).float()
        logits[:, TASKS.index("fluent")] = (ids * b).amax(1) / 100
        return logits, None


def test_what_the_encoder_doubts_is_left_out():
    """Of what says the same, the share that reads best; written pairs stay."""
    pairs = [([10], [20 + k]) for k in range(20)] + [([10, 50], [50])]
    own = material([*pairs, ([10], [50])], [0] * 21 + [1], [3] * 22)
    batches = Batches(own, WORDS, CPU, 0)
    choose(batches, Reader())
    assert sorted(batches.rows[0, 0].tolist()) == list(range(7, 20))
    assert batches.rows[0, 1].tolist() == [21]


def test_the_encoder_reads_what_it_was_trained_on():
    """Its inputs are those of its training, token by token."""
    texts = [("会议推迟了。", "会被推迟到下周。"), ("今天天气真好！", "天气不错。")]
    tokenizer = Tokenizer.from_file(str(SHIPPED / "tokenizer.json"))
    tokenizer.no_truncation()
    expected = tensors_of(tokenizer, [Example(*pair, {}) for pair in texts])
    ids = [[tokenizer.encode(t, add_special_tokens=False).ids for t in pair] for pair in texts]
    batches = Batches(material(ids, [0, 0], [3, 3]), tokenizer.get_vocab_size(), CPU, 0)
    inputs, a, b = _inputs(batches, torch.tensor([0, 1]))
    width = a.shape[1]
    there = inputs["attention_mask"].bool()
    for name, own in inputs.items():
        theirs = expected[0][name][:, :width]
        assert torch.equal(own * there, theirs * there), name
    assert torch.equal(a, expected[1][:, :width])
    assert torch.equal(b, expected[2][:, :width])


def test_the_encoder_stays_at_first(bert, monkeypatch):
    """Else it would become useless before the decoder has learned to read it."""
    monkeypatch.setattr(training, "FROZEN", 1.1)
    texts = [([10, 11, 12], [20, 21])] * 4
    model = start(bert, WORDS)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    batches = Batches(material(texts, [0, 1, 1, 1], [3] * 4), WORDS, CPU, 0)
    for _ in training.train(model, batches, 30, tokens=64, clock=count().__next__):
        pass
    changed = {k for k, v in model.state_dict().items() if not torch.equal(v, before[k])}
    assert not any(".encoder.layers." in name for name in changed)
    assert any(".decoder.layers." in name for name in changed)
