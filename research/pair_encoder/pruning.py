"""Makes a multilingual encoder small: only the pieces of its vocabulary that Chinese text uses
stay.

Of multilingual-e5-small's 250,002 pieces about 22,000 are left, and of its 118 million weights 30.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, processors

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
