import shutil

import numpy as np
import pytest
import torch
from tiny_models import POSITIONS, tiny_bert
from transformers import AutoModel, AutoTokenizer

from gaixie.udfs.metrics.encoder import Encoder
from gaixie.udfs.networks import model_signature

TEXTS = ["今天天气很好", "", "我不知道", "你去北京了吗", "好", "他今天不在上海,我很清楚。"]


def hidden(folder: str, text: str) -> torch.Tensor:
    """Returns hidden states (tokens, width) of one text alone, by transformers."""
    model = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        batch = AutoTokenizer.from_pretrained(folder)([text], return_tensors="pt")
        return model(**batch).last_hidden_state[0]


@pytest.mark.parametrize("batch_tokens", [1, 16, None])
def test_token_embeddings_are_those_of_each_text_alone(bert, batch_tokens):
    embedded = Encoder(bert, batch_tokens).token_embeddings(TEXTS)
    assert embedded.offsets[-1] == len(embedded.ids) == len(embedded.vectors)
    for k, text in enumerate(TEXTS):
        alone = hidden(bert, text)
        unit = alone / alone.norm(dim=1, keepdim=True)
        torch.testing.assert_close(embedded[k], unit, atol=2e-6, rtol=0)


def test_sentence_vectors_are_means_of_length_one(bert):
    vectors = Encoder(bert, batch_tokens=16).sentence_vectors(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        mean = hidden(bert, text).mean(dim=0).numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=2e-6)


def test_long_texts_are_cut(bert):
    ids = Encoder(bert).token_ids(["好" * (POSITIONS - 2), "好" * (POSITIONS - 1)])
    assert [len(row) for row in ids] == [POSITIONS, POSITIONS]
    assert ids[0] == ids[1]


def test_signature_follows_the_weights(bert, tmp_path):
    name, _, digest = model_signature(bert).partition("@")
    assert name == "bert"
    assert len(digest) == 8
    same = shutil.copytree(bert, tmp_path / "elsewhere" / "bert")
    assert model_signature(str(same)) == f"bert@{digest}"
    assert model_signature(tiny_bert(tmp_path / "bert", layers=2)) != f"bert@{digest}"


# Folders that are not a model


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[("model.safetensors", None), ("config.json", "{"), ("tokenizer.json", None)],
        ("tokenizer_config.json", '{"tokenizer_class": "PreTrainedTokenizerFast"}'),  # no padding
    ],
)
def test_broken_folder(bert, tmp_path, name, content):
    copy = shutil.copytree(bert, tmp_path / "bert")
    (copy / name).unlink()
    if content is not None:
        (copy / name).write_text(content)
    with pytest.raises(ValueError, match=rf"^{copy}: cannot be loaded: [^\n]+$"):
        Encoder(str(copy))


def test_no_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder.*make_encoder\.py"):
        Encoder("none")
    with pytest.raises(ValueError, match=r"not a model folder: it has no config\.json"):
        Encoder(str(tmp_path))
