"""Trains a BERT with a head of three outputs on drawn examples, and exports it with eight-bit weights.

What is drawn for a step depends on the seed and the step alone, so a run that is stopped goes on from
its last saved state with the examples that it would have seen.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import AutoTokenizer, BertModel

from gaixie.research.reader.examples import Example, Examples
from gaixie.udfs.command_line import say
from gaixie.udfs.paraphrase.reader import LONGEST, NAMES

BATCH, BLOCK = 48, 20
"""Examples of a step; steps whose examples are drawn and sorted by length together."""
LEARNING_RATE, HEAD_SCALE, WARMUP, LEAST = 1e-4, 5.0, 100, 0.03
SAVED_STEPS, SAID_STEPS = 200, 50
STATE = "state.pt"


class PairReader(torch.nn.Module):
    """Hidden states of [CLS] source [SEP] paraphrase [SEP]; the first and the mean of all go to the head."""

    def __init__(self, bert: str):
        super().__init__()
        self.bert = BertModel.from_pretrained(
            bert,
            attn_implementation="eager",
            hidden_dropout_prob=0.05,
            attention_probs_dropout_prob=0.0,
        )
        size = self.bert.config.hidden_size
        self.head = torch.nn.Sequential(
            torch.nn.Linear(2 * size, size), torch.nn.GELU(), torch.nn.Linear(size, len(NAMES))
        )

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Logits, shape (pairs, 3)."""
        hidden = self.bert(**inputs).last_hidden_state.float()
        inside = inputs["attention_mask"].unsqueeze(-1).float()
        mean = (hidden * inside).sum(1) / inside.sum(1)
        return self.head(torch.cat([hidden[:, 0], mean], -1))


def train(examples: Examples, bert: str, folder: Path, steps: int, seed: int) -> PairReader:
    """Trains, or goes on with what the folder has."""
    torch.manual_seed(seed)
    model, tokenizer = PairReader(bert), AutoTokenizer.from_pretrained(bert)
    groups = [
        {"params": model.bert.parameters(), "scale": 1.0},
        {"params": model.head.parameters(), "scale": HEAD_SCALE},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, weight_decay=0.01)
    step = _restore(folder / STATE, model, optimizer)
    losses: list[float] = []
    started = time.monotonic()
    while step < steps:
        for batch in _block(examples, seed, step // BLOCK):
            for group in optimizer.param_groups:
                group["lr"] = _rate(step, steps) * group["scale"]
            losses.append(_learn(model, optimizer, tokenizer, batch))
            step += 1
            if step % SAID_STEPS == 0:
                rate = SAID_STEPS * BATCH / (time.monotonic() - started)
                say(f"step {step:,} of {steps:,}: loss {np.mean(losses):.4f}, {rate:.1f} pairs/s")
                losses, started = [], time.monotonic()
        if step % SAVED_STEPS == 0 or step >= steps:
            _save(folder / STATE, model, optimizer, step)
    return model


def _block(examples: Examples, seed: int, number: int) -> list[list[Example]]:
    """The batches of a block: of like length, in random order."""
    random = Random(f"{seed} {number}")
    examples.random = examples.breaker.random = random
    drawn = sorted(
        (examples.draw() for _ in range(BATCH * BLOCK)),
        key=lambda own: len(own.source) + len(own.paraphrase),
    )
    batches = [drawn[k : k + BATCH] for k in range(0, len(drawn), BATCH)]
    random.shuffle(batches)
    return batches


def _learn(model: PairReader, optimizer: Any, tokenizer: Any, batch: Sequence[Example]) -> float:
    targets = torch.tensor([own[2:] for own in batch], dtype=torch.float32)
    known = ~targets.isnan()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs_of(tokenizer, [own[:2] for own in batch]))
    loss = binary_cross_entropy_with_logits(logits.float()[known], targets[known])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def inputs_of(tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> dict[str, torch.Tensor]:
    """The tensors of pairs, cut at the reader's length."""
    one, other = ([own[k] for own in pairs] for k in (0, 1))
    cut = {"padding": True, "truncation": True, "max_length": LONGEST}
    return dict(tokenizer(one, other, return_tensors="pt", **cut))


def _rate(step: int, steps: int) -> float:
    """Warm-up, then half a cosine."""
    cosine = (1 + math.cos(math.pi * step / steps)) / 2
    return LEARNING_RATE * min(1, (step + 1) / WARMUP) * max(LEAST, cosine)


def _restore(path: Path, model: PairReader, optimizer: Any) -> int:
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def _save(path: Path, model: PairReader, optimizer: Any, step: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def export(model: PairReader, bert: str, folder: Path, version: int) -> None:
    """Writes what gaixie.udfs.paraphrase.reader loads."""
    from ctranslate2.converters import TransformersConverter

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as whole:
        model.bert.save_pretrained(whole)
        AutoTokenizer.from_pretrained(bert).save_pretrained(whole)
        config = Path(whole, "config.json")
        # The converter asks for a key that transformers no longer writes.
        named = json.loads(config.read_text()) | {"position_embedding_type": "absolute"}
        config.write_text(json.dumps(named))
        TransformersConverter(whole).convert(
            str(folder / "encoder"), quantization="int8", force=True
        )
        shutil.copy(Path(whole, "tokenizer.json"), folder)
    state = {name: own.float().numpy() for name, own in model.head.state_dict().items()}
    np.savez(
        folder / "head.npz",
        inner=state["0.weight"],
        inner_bias=state["0.bias"],
        outer=state["2.weight"],
        outer_bias=state["2.bias"],
    )
    digest = hashlib.sha256((folder / "encoder/model.bin").read_bytes()).hexdigest()[:10]
    described = {"format": "gaixie-reader", "signature": f"reader-zh|{version}|{digest}"}
    (folder / "reader.json").write_text(json.dumps(described, indent=1) + "\n", "utf-8")
