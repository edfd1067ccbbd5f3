"""bge-small-zh from a Maven artifact: a tiny BERT laid out like its jar, bad jars, the real one."""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from gaixie.research.encoders import bge_package
from gaixie.research.make_encoder import main
from gaixie.udfs.command_line import UserError

onnx = pytest.importorskip("onnx", reason="onnx, which reads the weights, is not installed")

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "今", "天", "很", "好", "a", "##b"]


@pytest.fixture
def bert() -> BertModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(TOKENS),
        hidden_size=2 * bge_package.HEAD_WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=20,
    )
    network = BertModel(config, add_pooling_layer=False).eval()
    for weights in network.parameters():  # also biases and norms, which start as zeros and ones
        torch.nn.init.normal_(weights, std=0.2)
    return network


def as_onnx(network: BertModel, without: str = "") -> bytes:
    """Returns the weights in the artifact's layout: matrices transposed, with generated names."""
    nodes, tensors = [], []
    for number, (name, weights) in enumerate(network.state_dict().items()):
        values = weights.numpy()
        if name == without:
            continue
        if name.startswith("encoder.") and values.ndim == 2:
            path = name.removesuffix(".weight").replace(".", "/").replace("layer/", "layer.")
            name = f"onnx::MatMul_{number}"
            nodes.append(onnx.helper.make_node("MatMul", ["x", name], ["y"], f"/{path}/MatMul"))
            values = np.ascontiguousarray(values.T)
        tensors.append(onnx.numpy_helper.from_array(values, name))
    graph = onnx.helper.make_graph(nodes, "bert", [], [], tensors)
    return onnx.helper.make_model(graph).SerializeToString()


def tokenizer_file(folder: Path) -> str:
    """Returns tokenizer.json with the artifact's flaw: it keeps capitals the vocabulary lacks."""
    from tokenizers import BertWordPieceTokenizer

    vocabulary = {token: k for k, token in enumerate(TOKENS)}
    tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    return (folder / "tokenizer.json").read_text(encoding="utf-8")


def write_jar(path: Path, network: bytes, tokenizer: str) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr(bge_package.NETWORK_FILE, network)
        jar.writestr(bge_package.TOKENIZER_FILE, tokenizer)
    return path


def test_hidden_states_are_the_network_s(tmp_path, bert):
    jar = write_jar(tmp_path / "bge.jar", as_onnx(bert), tokenizer_file(tmp_path))
    assert main(["--from", str(jar), "--output", str(tmp_path / "out")]) == 0
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.tokenize("AB好") == ["a", "##b", "好"]  # capitals are lower-cased
    assert tokenizer.model_max_length == 20
    batch = tokenizer(["今天很好", "好"], padding=True, return_tensors="pt")
    assert batch["input_ids"].tolist() == [[2, 5, 6, 7, 8, 3], [2, 8, 3, 0, 0, 0]]
    with torch.inference_mode():
        wanted = bert(**batch).last_hidden_state
        found = AutoModel.from_pretrained(tmp_path / "out").eval()(**batch).last_hidden_state
    torch.testing.assert_close(found, wanted)
    assert (tmp_path / "out/model.safetensors").stat().st_mode & 0o777 == 0o644
    assert "license: mit" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("without", ["", "encoder.layer.1.output.dense.weight"])
def test_a_bad_jar_is_one_line(tmp_path, bert, refused, without):
    jar = tmp_path / "bge.jar"
    if without:
        write_jar(jar, as_onnx(bert, without), tokenizer_file(tmp_path))
    else:
        jar.write_bytes(b"no archive")
    refused(main, ["--from", jar, "--output", tmp_path / "out"], str(jar))
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    try:
        jar = bge_package.package_jar()
    except UserError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("encoder") / "bge-small-zh"
    assert main(["--from", str(jar), "--output", str(folder)]) == 0
    yield folder
    shutil.rmtree(folder)


def test_the_real_one(real):
    config = json.loads((real / "config.json").read_text(encoding="utf-8"))
    assert (config["num_hidden_layers"], config["num_attention_heads"]) == (4, 8)
    tokenizer, network = AutoTokenizer.from_pretrained(real), AutoModel.from_pretrained(real).eval()
    texts = [
        "请问银行卡丢了应该怎么办？",
        "银行卡遗失了要怎么处理？",
        "今天晚上我们一起去看电影吧。",
    ]
    with torch.inference_mode():
        states = network(**tokenizer(texts, padding=True, return_tensors="pt")).last_hidden_state
    vectors = torch.nn.functional.normalize(states[:, 0], dim=-1)
    # Golden: onnxruntime's output for the same texts and the jar's ONNX.
    torch.testing.assert_close(
        vectors[0] @ vectors[1:].T, torch.tensor([0.86956, 0.32507]), atol=1e-4, rtol=0
    )
