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

from gaixie.udfs.meaning.pair_encoder import ENCODER, HEAD, TOKENIZER

TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
FORMAT = 6
PARTS = {
    "self_attention/linear_1": "attention.output.dense",
    "self_attention/layer_norm": "attention.output.LayerNorm",
    "ffn/linear_0": "intermediate.dense",
    "ffn/linear_1": "output.dense",
    "ffn/layer_norm": "output.LayerNorm",
}
NAMES = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}


def round_to_seven_bits(path: Path) -> None:
    """Halves the range of the weights of linear layers in a model file, so that all processors
    compute the same.

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
    """Writes the encoder of ``exported`` as a folder that PairNetwork starts from, its heads
    included, so that training can go on from it."""
    path = exported / ENCODER
    found = variables(bytearray(path.read_bytes()), path)
    state = {}
    for place, own in enumerate(("word", "token_type")):
        state[f"embeddings.{own}_embeddings.weight"] = _matrix(found, f"encoder/embeddings_{place}")
    # CTranslate2 adds the rows of e5's positions as they are: row 0 is the first token's.
    state["embeddings.position_embeddings.weight"] = found["encoder/position_encodings/encodings"]
    _norm(found, state, "encoder/layernorm_embedding", "embeddings.LayerNorm")
    layers = 1 + max(
        int(name.split("/")[1][6:]) for name in found if "/layer_" in name and "/ffn/" in name
    )
    for layer in range(layers):
        ours, theirs = f"encoder.layer.{layer}", f"encoder/layer_{layer}"
        whole = _matrix(found, f"{theirs}/self_attention/linear_0")
        bias = found[f"{theirs}/self_attention/linear_0/bias"]
        for own, rows, part in zip(
            ("query", "key", "value"), np.split(whole, 3), np.split(bias, 3), strict=True
        ):
            state[f"{ours}.attention.self.{own}.weight"] = rows
            state[f"{ours}.attention.self.{own}.bias"] = part
        for their, our in PARTS.items():
            if "norm" in their:
                _norm(found, state, f"{theirs}/{their}", f"{ours}.{our}")
            else:
                state[f"{ours}.{our}.weight"] = _matrix(found, f"{theirs}/{their}")
                state[f"{ours}.{our}.bias"] = found[f"{theirs}/{their}/bias"]
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
    (output / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    shutil.copy(exported / TOKENIZER, output)
    shutil.copy(exported / HEAD, output)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
    }
    (output / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")


def _norm(found: dict[str, np.ndarray], state: dict[str, np.ndarray], their: str, our: str) -> None:
    state[f"{our}.weight"], state[f"{our}.bias"] = found[f"{their}/gamma"], found[f"{their}/beta"]


def _matrix(found: dict[str, np.ndarray], name: str) -> np.ndarray:
    weight = found[f"{name}/weight"].astype(np.float32)
    scale = found.get(f"{name}/weight_scale")
    return weight if scale is None else weight / scale.reshape(-1, 1)


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
