"""Reads and rounds the weights of an exported encoder: int8 / scale, one scale a row.

The layout of the file is CTranslate2's (``model_spec.py``: ``ModelSpec._serialize``).
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from gaixie.udfs.meaning.pair_encoder import DESCRIPTION, ENCODER, HEAD, TOKENIZER

TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
FORMAT = 6
LAYER = {
    "self_attention/linear_1": "attention.output.dense",
    "self_attention/layer_norm": "attention.output.LayerNorm",
    "ffn/linear_0": "intermediate.dense",
    "ffn/linear_1": "output.dense",
    "ffn/layer_norm": "output.LayerNorm",
}
"""Parts of a layer: CTranslate2's names and BertModel's."""


def round_to_seven_bits(path: Path) -> None:
    """Halves the range of a model file's linear weights, so that all processors compute the same.

    Without VNNI a processor adds two products of uint8 and int8 in 16 bits, which overflow where
    weights reach 127 (oneDNN, Nuances of int8 computations); 2 · 255 · 63 fits.
    """
    data = bytearray(path.read_bytes())
    found = variables(data, path)
    for name, scale in found.items():
        if "/linear_" in name and name.endswith("/weight_scale"):
            weight = found[name.removesuffix("_scale")]
            weight[...] = np.rint(weight * np.float32(63 / 127))
            scale *= np.float32(63 / 127)
    path.write_bytes(data)


def restore(exported: Path, output: Path) -> None:
    """Writes an exported encoder, heads included, as a folder that training can go on from."""
    path = exported / ENCODER
    found = variables(bytearray(path.read_bytes()), path)

    def linear(name: str) -> np.ndarray:
        weight, scale = found[f"{name}/weight"], found.get(f"{name}/weight_scale")
        return weight if scale is None else weight.astype(np.float32) / scale.reshape(-1, 1)

    state = {
        "embeddings.word_embeddings.weight": linear("encoder/embeddings_0"),
        "embeddings.token_type_embeddings.weight": linear("encoder/embeddings_1"),
        # CTranslate2 adds the rows of e5's positions as they are: row 0 is the first token's.
        "embeddings.position_embeddings.weight": found["encoder/position_encodings/encodings"],
        "embeddings.LayerNorm.weight": found["encoder/layernorm_embedding/gamma"],
        "embeddings.LayerNorm.bias": found["encoder/layernorm_embedding/beta"],
    }
    layers = sum(name.endswith("/ffn/linear_0/bias") for name in found)
    for layer in range(layers):
        ours, theirs = f"encoder.layer.{layer}", f"encoder/layer_{layer}"
        weights = np.split(linear(f"{theirs}/self_attention/linear_0"), 3)
        biases = np.split(found[f"{theirs}/self_attention/linear_0/bias"], 3)
        for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            state[f"{ours}.attention.self.{part}.weight"] = weight
            state[f"{ours}.attention.self.{part}.bias"] = bias
        for their, our in LAYER.items():
            norm = their.endswith("layer_norm")
            weight = found[f"{theirs}/{their}/gamma"] if norm else linear(f"{theirs}/{their}")
            state[f"{ours}.{our}.weight"] = weight
            state[f"{ours}.{our}.bias"] = found[f"{theirs}/{their}/{'beta' if norm else 'bias'}"]
    output.mkdir(parents=True, exist_ok=True)
    tensors = {name: torch.tensor(np.asarray(own, np.float32)) for name, own in state.items()}
    save_file(tensors, output / "model.safetensors", {"format": "pt"})
    pieces, width = state["embeddings.word_embeddings.weight"].shape
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": pieces,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": int(found["encoder/num_heads"]),
        "intermediate_size": len(state["encoder.layer.0.intermediate.dense.bias"]),
        "max_position_embeddings": len(state["embeddings.position_embeddings.weight"]),
    }
    names = {"pad_token": "<pad>", "unk_token": "<unk>"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    summary = json.loads((exported / DESCRIPTION).read_text("utf-8"))["summary"]
    kept = {name: summary[name] for name in ("encoder", "examples") if name in summary}
    for name, content in (
        ("config.json", config),
        ("tokenizer_config.json", settings),
        ("summary.json", {"encoder": exported.name, "examples": 0} | kept),
    ):
        (output / name).write_text(json.dumps(content, indent=1), "utf-8")
    for name in (TOKENIZER, HEAD):
        shutil.copy(exported / name, output)


def variables(data: bytearray, path: Path) -> dict[str, np.ndarray]:
    """Every variable of a model file of CTranslate2, by its name: views of the file's data."""
    place = 0

    def take(form: str) -> tuple[int, ...]:
        nonlocal place
        values = struct.unpack_from(form, data, place)
        place += struct.calcsize(form)
        return values

    def text() -> str:
        nonlocal place
        (length,) = take("<H")
        place += length
        return data[place - length : place - 1].decode()

    (version,) = take("<I")
    if version != FORMAT:
        raise ValueError(f"{path}: format {version} of CTranslate2, this reads {FORMAT}")
    text()
    _, count = take("<II")
    found = {}
    for _ in range(count):
        name = text()
        (rank,) = take("<B")
        shape = take(f"<{rank}I")
        kind, size = take("<BI")
        view = memoryview(data)[place : place + size]
        found[name] = np.frombuffer(view, TYPES[kind]).reshape(shape)
        place += size
    return found
