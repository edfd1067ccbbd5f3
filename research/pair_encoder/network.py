"""The network of the pair encoder: its start, its heads, its folder for training, and its export.

A multilingual encoder is made small: only the pieces of its vocabulary that Chinese text uses stay.
Of multilingual-e5-small's 250,002 pieces about 22,000 are left, and of its 118 million weights 30.

A folder for training is one of transformers with the heads' weights beside it, and summary.json:
what it was made from, and how many examples it has learned from. The export is CTranslate2's
(the layout of its file: ``model_spec.py``, ``ModelSpec._serialize``).
"""

import io
import json
import shutil
import struct
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, processors
from torch import nn
from torch.nn.functional import gelu
from transformers import BertConfig, BertModel

from gaixie.udfs.meaning import pair_encoder as exports
from gaixie.udfs.meaning.pair_encoder import ENCODER, HEAD, TASKS, TOKENIZER

SUMMARY = "summary.json"
TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
FORMAT = 6
LAYER = {
    "attention.output.dense": "self_attention/linear_1",
    "attention.output.LayerNorm": "self_attention/layer_norm",
    "intermediate.dense": "ffn/linear_0",
    "output.dense": "ffn/linear_1",
    "output.LayerNorm": "ffn/layer_norm",
}
"""Parts of a layer, and their names in the export; its attention has one part for all three."""

LEAST = 4
"""A piece stays that the texts have so often; a single character always does."""
PORTION = 20_000
SPECIAL = 4
"""<s>, <pad>, </s> and <unk> come first."""
SINGLE = ((0, 0x24F), (0x2000, 0x27BF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xFF00, 0xFFEF))
"""Blocks of single characters that stay: Latin, punctuation, signs, kana, Han, full width."""
WORDS = "embeddings.word_embeddings.weight"


def prune(model: Path, texts: Sequence[str], output: Path) -> None:
    """Writes the model with fewer pieces, and a tokenizer for pairs as BERT's is.

    model: a folder of transformers whose tokenizer is a unigram model (XLM-RoBERTa's kind).
    """
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    counts: Counter[int] = Counter()
    for first in range(0, len(texts), PORTION):
        portion = list(texts[first : first + PORTION])
        for encoded in tokenizer.encode_batch(portion, add_special_tokens=False):
            counts.update(encoded.ids)
    description = json.loads((model / "tokenizer.json").read_text("utf-8"))
    pieces = description["model"]["vocab"]
    kept = [
        number
        for number, (piece, _) in enumerate(pieces)
        if number < SPECIAL or counts[number] >= LEAST or _is_single(piece)
    ]
    description["model"]["vocab"] = [pieces[number] for number in kept]
    added = description["added_tokens"]
    description["added_tokens"] = [token for token in added if token["id"] < SPECIAL]
    description |= {"truncation": None, "padding": None}
    output.mkdir(parents=True, exist_ok=True)
    smaller = Tokenizer.from_str(json.dumps(description))
    smaller.post_processor = processors.TemplateProcessing(
        single="<s>:0 $A:0 </s>:0",
        pair="<s>:0 $A:0 </s>:0 $B:1 </s>:1",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    smaller.save(str(output / "tokenizer.json"))
    settings = json.loads((model / "tokenizer_config.json").read_text("utf-8"))
    settings.pop("mask_token", None)
    (output / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    weights = load_file(model / "model.safetensors")
    weights[WORDS] = weights[WORDS][torch.tensor(kept)].clone()
    config = json.loads((model / "config.json").read_text("utf-8")) | {"vocab_size": len(kept)}
    (output / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    save_file(weights, output / "model.safetensors", {"format": "pt"})


def _is_single(piece: str) -> bool:
    character = piece.strip("▁")
    return len(character) == 1 and any(first <= ord(character) <= last for first, last in SINGLE)


class PairNetwork(nn.Module):
    """Logits of the tasks, (pairs, tasks), and of each token's being wrong, (pairs, tokens)."""

    def __init__(self, folder: Path, attention: str = "eager", dropout: float = 0.0):
        super().__init__()
        self.bert = BertModel.from_pretrained(
            folder,
            attn_implementation=attention,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=0.0,
            add_pooling_layer=False,
        )
        self.bert.embeddings.requires_grad_(False)
        # e5 knows no second sentence: its embedding of one is zero.
        self.bert.embeddings.token_type_embeddings.requires_grad_(True)
        width = self.bert.config.hidden_size
        self.token = nn.Linear(width, 1)
        self.inner = nn.Linear(5 * width + 2, width)
        self.outer = nn.Linear(width, len(TASKS))
        self.dropout = nn.Dropout(0.1)
        if (folder / HEAD).is_file():
            with np.load(folder / HEAD) as saved:
                heads = {name: torch.tensor(saved[name].astype(np.float32)) for name in saved.files}
            self.load_state_dict(heads, strict=False)

    def forward(
        self, inputs: dict[str, torch.Tensor], a: torch.Tensor, b: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """a, b: which tokens are of the source, and of the paraphrase: float, (pairs, tokens)."""
        states = self.bert(**inputs).last_hidden_state.float()
        wrong = self.token(states).squeeze(-1).float()
        mean_a, mean_b = (
            (states * side.unsqueeze(-1)).sum(1) / side.sum(1, keepdim=True).clamp(min=1)
            for side in (a, b)
        )
        doubt = torch.sigmoid(wrong) * b
        doubts = torch.stack([doubt.max(1).values, doubt.sum(1) / b.sum(1).clamp(min=1)], 1)
        parts = [states[:, 0], mean_a, mean_b, (mean_a - mean_b).abs(), mean_a * mean_b, doubts]
        inner = gelu(self.inner(self.dropout(torch.cat(parts, 1))))
        return self.outer(self.dropout(inner)).float(), wrong


def save(model: PairNetwork, start: Path, folder: Path, examples: int) -> None:
    """Writes a folder to export, or to go on from. examples: that were learned from here."""
    folder.mkdir(parents=True, exist_ok=True)
    model.bert.save_pretrained(folder)
    for name in (TOKENIZER, "tokenizer_config.json"):
        shutil.copy(start / name, folder)
    state = model.state_dict()
    heads = {name: state[name].numpy() for name in state if not name.startswith("bert.")}
    np.savez_compressed(folder / HEAD, **heads)
    summary = read_summary(start)
    summary["examples"] += examples
    (folder / SUMMARY).write_text(json.dumps(summary), "utf-8")


def read_summary(folder: Path) -> dict[str, Any]:
    """Returns the encoder's name and the number of examples; a plain encoder has seen none."""
    if (folder / SUMMARY).is_file():
        return json.loads((folder / SUMMARY).read_text("utf-8"))
    return {"encoder": folder.name, "examples": 0}


def export(trained: Path, output: Path) -> dict[str, Any]:
    """Writes what gaixie.udfs.meaning.pair_encoder loads. Returns the folder's summary."""
    from ctranslate2.converters import TransformersConverter

    output.mkdir(parents=True, exist_ok=True)
    config = json.loads((trained / "config.json").read_text("utf-8"))
    # CTranslate2's converter asks for a key that transformers no longer writes.
    config["position_embedding_type"] = "absolute"
    (trained / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    TransformersConverter(str(trained)).convert(
        str((output / ENCODER).parent), quantization="int8", force=True
    )
    round_to_seven_bits(output / ENCODER)
    shutil.copy(trained / TOKENIZER, output)
    with np.load(trained / HEAD) as heads:
        np.savez_compressed(output / HEAD, **{k: heads[k].astype(np.float16) for k in heads.files})
    summary = read_summary(trained)
    exports.write_description(output, TASKS, summary)
    return summary


def restore(exported: Path, output: Path) -> None:
    """Writes a folder for training from an exported encoder: its weights, rounded as they are."""
    path = exported / ENCODER
    found = variables(bytearray(path.read_bytes()), path)

    def weight(name: str) -> np.ndarray:
        value = found[f"encoder/{name}"].astype(np.float32)
        scale = found.get(f"encoder/{name}_scale")
        return value if scale is None else value / scale[:, None]

    state = {WORDS: weight("embeddings_0/weight")}
    state["embeddings.token_type_embeddings.weight"] = weight("embeddings_1/weight")
    state["embeddings.position_embeddings.weight"] = weight("position_encodings/encodings")
    names = {"embeddings.LayerNorm": "layernorm_embedding"}
    layers = sum(name.endswith("/ffn/linear_1/weight") for name in found)
    for number in range(layers):
        of, own = f"encoder.layer.{number}.", f"layer_{number}/"
        for kind in ("weight", "bias"):
            thirds = np.split(weight(f"{own}self_attention/linear_0/{kind}"), 3)
            for name, value in zip(("query", "key", "value"), thirds, strict=True):
                state[f"{of}attention.self.{name}.{kind}"] = value
        names |= {of + name: own + exported_as for name, exported_as in LAYER.items()}
    for name, exported_as in names.items():
        kinds = ("gamma", "beta") if name.endswith("LayerNorm") else ("weight", "bias")
        for kind, exported_kind in zip(("weight", "bias"), kinds, strict=True):
            state[f"{name}.{kind}"] = weight(f"{exported_as}/{exported_kind}")
    words, width = state[WORDS].shape
    sizes = {"vocab_size": words, "hidden_size": width, "num_hidden_layers": layers}
    sizes |= {"intermediate_size": len(state["encoder.layer.0.intermediate.dense.bias"])}
    sizes |= {"max_position_embeddings": len(state["embeddings.position_embeddings.weight"])}
    heads = int(found["encoder/num_heads"])
    model = BertModel(BertConfig(num_attention_heads=heads, **sizes), add_pooling_layer=False)
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    model.save_pretrained(output)
    for name in (TOKENIZER, HEAD):
        shutil.copy(exported / name, output)
    named = json.loads(path.with_name("config.json").read_text("utf-8"))
    known = Tokenizer.from_file(str(exported / TOKENIZER)).get_vocab()
    named = {name: token for name, token in named.items() if token in known}
    named["tokenizer_class"] = "PreTrainedTokenizerFast"  # the one that adds no tokens of its own
    (output / "tokenizer_config.json").write_text(json.dumps(named), "utf-8")
    summary = json.loads((exported / exports.DESCRIPTION).read_text("utf-8"))["summary"]
    (output / SUMMARY).write_text(json.dumps(summary), "utf-8")


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


def variables(data: bytearray, path: Path) -> dict[str, np.ndarray]:
    """Every variable of a model file of CTranslate2, by its name: views of the file's data."""
    file = io.BytesIO(data)

    def take(form: str) -> tuple[int, ...]:
        return struct.unpack(form, file.read(struct.calcsize(form)))

    def text() -> str:
        return file.read(*take("<H"))[:-1].decode()

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
        found[name] = np.ndarray(shape, TYPES[kind], data, file.tell())
        file.seek(size, io.SEEK_CUR)
    return found
