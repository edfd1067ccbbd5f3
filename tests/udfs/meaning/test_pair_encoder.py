"""The pair encoder: its folder, its batches, and what is said of a folder that cannot be used."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.meaning import pair_encoder
from gaixie.udfs.meaning.pair_encoder import PairEncoder, batches

torch = pytest.importorskip("torch")
tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("transformers")

TASKS = ("structure", "synonyms", "meaning", "fluency", "overall", "same")
TEXTS = ["今天天气很好", "天气今天不错", "他昨天买了三本书", "书", "好"]
TINY = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}


def tiny_tokenizer():
    characters = sorted(set("".join(TEXTS)))
    vocabulary = {t: k for k, t in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *characters])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return pair_encoder.pair_network(TINY, len(TASKS)).eval()


@pytest.fixture
def folder(tmp_path, network):
    pair_encoder.write_folder(tmp_path / "model", network, TINY, tiny_tokenizer(), TASKS, {})
    return tmp_path / "model"


def test_a_folder_gives_what_the_network_gives(folder, network):
    expected = PairEncoder(network, tiny_tokenizer(), TASKS, "", "cpu").predict(TEXTS, TEXTS[::-1])
    found = PairEncoder.load(folder, "cpu").predict(TEXTS, TEXTS[::-1])
    assert found.shape == (5, 6)
    assert ((found >= 0) & (found <= 1)).all()
    assert np.abs(found - expected).max() < 0.02  # weights in 8 bits


def test_judgements_are_the_first_five(folder):
    encoder = PairEncoder.load(folder, "cpu")
    np.testing.assert_array_equal(encoder.judge(TEXTS, TEXTS), encoder.predict(TEXTS, TEXTS)[:, :5])


def test_batches_do_not_change_a_prediction(folder):
    encoder = PairEncoder.load(folder, "cpu")
    together = encoder.predict(TEXTS, TEXTS[::-1])
    alone = encoder.predict(TEXTS, TEXTS[::-1], batch_tokens=1)
    np.testing.assert_allclose(together, alone, atol=0.01)  # bfloat16


def test_long_sentences_are_cut(folder):
    long = ["今天天气" * 200]
    assert np.isfinite(PairEncoder.load(folder, "cpu").predict(long, long)).all()


def test_no_pairs(folder):
    assert PairEncoder.load(folder, "cpu").predict([], []).shape == (0, 6)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 100))
def test_every_row_is_in_one_batch_within_the_limit(lengths, limit):
    parts = list(batches(lengths, limit))
    assert sorted(row for part in parts for row in part) == list(range(len(lengths)))
    for part in parts:
        assert len(part) == 1 or len(part) * max(lengths[row] for row in part) <= limit
    order = [lengths[row] for part in parts for row in part]
    assert order == sorted(order)


def test_small_matrices_and_vectors_keep_their_values(tmp_path):
    weights = {"bias": torch.linspace(-1, 1, 5), "large": torch.randn(120, 100)}
    pair_encoder.write_weights(tmp_path / "weights.npz", weights)
    read = pair_encoder.read_weights(tmp_path / "weights.npz")
    torch.testing.assert_close(read["bias"], weights["bias"], atol=1e-3, rtol=0)
    step = weights["large"].abs().amax(1, keepdim=True) / 127
    assert ((read["large"] - weights["large"]).abs() <= 0.51 * step).all()


def test_a_missing_folder(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="expected a pair encoder; python research/fit_spscore"
    ):
        PairEncoder.load(tmp_path / "none")


@pytest.mark.parametrize(
    "name", [pair_encoder.CONFIG, pair_encoder.TOKENIZER, pair_encoder.WEIGHTS]
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        PairEncoder.load(folder)


def test_a_damaged_file(folder):
    content = bytearray((folder / pair_encoder.WEIGHTS).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / pair_encoder.WEIGHTS).write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        PairEncoder.load(folder)


def test_another_version(folder):
    path = folder / pair_encoder.DESCRIPTION
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 9}))
    with pytest.raises(ValueError, match="format 9, but this version reads 1"):
        PairEncoder.load(folder)


def test_no_description(folder):
    (folder / pair_encoder.DESCRIPTION).write_text("[]")
    with pytest.raises(ValueError, match="expected the description of a pair encoder"):
        PairEncoder.load(folder)
