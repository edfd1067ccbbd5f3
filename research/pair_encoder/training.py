"""Trains the pair encoder on drawn examples, and exports it with eight-bit weights.

What is drawn for a step depends on the seed and the step alone, so a run that is stopped goes on
from its last saved state with the examples that it would have seen.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, gelu, softplus
from transformers import AutoTokenizer, BertModel

from gaixie.research.pair_encoder.exported import round_to_seven_bits
from gaixie.udfs.command_line import say
from gaixie.udfs.meaning.pair_encoder import ENCODER, HEAD, TASKS, write_description

if TYPE_CHECKING:
    from gaixie.research.pair_encoder.examples import Examples
    from gaixie.research.pair_encoder.sets import Example

BATCH, BLOCK = 32, 20
"""Examples of a step, of which some have a worse one beside them; steps whose examples are drawn
and sorted by length together."""
HEAD_SCALE, WARMUP, LEAST = 5.0, 200, 0.02
RANK_LOSS = 0.5
"""Share of the loss of ranked pairs."""
TOKEN_LOSS, TOKEN_WEIGHT = 0.5, 2.0
"""Share of the loss of tokens; what a wrong token counts against a right one."""
PADDED = 8
"""Lengths of batches are multiples of it: oneDNN prepares and keeps its kernels for each shape."""
SAVED_STEPS, SAID_STEPS = 20, 20
STATE = "state.pt"


class PairNetwork(nn.Module):
    """Logits of the tasks, shape (pairs, tasks), and of each token's being wrong, (pairs,
    tokens)."""

    def __init__(self, bert: str, attention: str = "eager", dropout: float = 0.0):
        super().__init__()
        self.bert = BertModel.from_pretrained(
            bert,
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
        if (head := Path(bert, HEAD)).is_file():
            with np.load(head) as saved:
                own = {name: torch.tensor(saved[name], dtype=torch.float32) for name in saved.files}
            self.load_state_dict(own, strict=False)

    def forward(
        self, inputs: dict[str, torch.Tensor], a: torch.Tensor, b: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """a, b: which tokens are of the source, of the paraphrase. As head_outputs of the
        encoder."""
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


def train(
    examples: Examples,
    bert: str,
    folder: Path,
    steps: int,
    rate: float,
    frozen: int,
    seed: int,
) -> PairNetwork:
    """Trains, or goes on with what the folder has.

    rate: the highest learning rate. frozen: layers from the bottom that stay as they are.
    """
    torch.manual_seed(seed)
    model = PairNetwork(bert).train()
    model.bert.encoder.layer[:frozen].requires_grad_(False)
    if frozen:
        model.bert.embeddings.requires_grad_(False)
    tokenizer = AutoTokenizer.from_pretrained(bert).backend_tokenizer
    tokenizer.enable_truncation(256, strategy="longest_first")
    tokenizer.no_padding()
    body = [own for own in model.bert.parameters() if own.requires_grad]
    new = [own for name, own in model.named_parameters() if not name.startswith("bert.")]
    groups = [{"params": body, "scale": 1.0}, {"params": new, "scale": HEAD_SCALE}]
    optimizer = torch.optim.AdamW(groups, lr=rate, weight_decay=0.01)
    step = _restore(folder / STATE, model, optimizer)
    losses: list[float] = []
    started = time.monotonic()
    while step < steps:
        for batch in _block(examples, seed, step // BLOCK):
            for group in optimizer.param_groups:
                group["lr"] = rate * _share(step, steps) * group["scale"]
            torch.manual_seed(seed * 1_000_003 + step)  # dropout too is that of the step
            losses.append(_learn(model, optimizer, tokenizer, batch))
            step += 1
            if step % SAID_STEPS == 0:
                speed = len(losses) * BATCH / (time.monotonic() - started)
                left = (steps - step) * BATCH / speed / 60
                loss = np.mean(losses)
                say(f"step {step:,} of {steps:,}: loss {loss:.4f}, {speed:.1f}/s, {left:.0f} min")
                losses, started = [], time.monotonic()
        if step % SAVED_STEPS == 0 or step >= steps:
            _save(folder / STATE, model, optimizer, step)
    return model.eval()


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


def _learn(model: PairNetwork, optimizer: Any, tokenizer: Any, batch: Sequence[Example]) -> float:
    worse = [own.worse for own in batch if own.worse is not None]
    inputs, a, b, targets, marks = tensors_of(tokenizer, [*batch, *worse])
    # Without instructions for it, bfloat16 takes twice as long as float32.
    with torch.autocast("cpu", torch.bfloat16, enabled=torch.cpu._is_avx512_bf16_supported()):
        logits, wrong = model(inputs, a, b)
    known = ~targets.isnan()
    loss = binary_cross_entropy_with_logits(logits[known], targets[known])
    marked = ~marks.isnan()
    if marked.any():
        weight = 1 + (TOKEN_WEIGHT - 1) * marks[marked]
        loss = loss + TOKEN_LOSS * binary_cross_entropy_with_logits(
            wrong[marked], marks[marked], weight
        )
    ranked = [
        (row, TASKS.index(own.rank)) for row, own in enumerate(batch) if own.worse is not None
    ]
    if ranked:
        rows, tasks = torch.tensor(ranked).T
        lower = torch.arange(len(batch), len(batch) + len(worse))
        loss = loss + RANK_LOSS * softplus(logits[lower, tasks] - logits[rows, tasks]).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def tensors_of(
    tokenizer: Any, batch: Sequence[Example]
) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """(inputs of the network, tokens of the source, of the paraphrase, targets, marks of
    tokens)."""
    encoded = tokenizer.encode_batch([(own.source, own.paraphrase) for own in batch])
    longest = max(len(pair.ids) for pair in encoded)
    shape = (len(batch), -(-longest // PADDED) * PADDED)
    ids, types, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    a, b = torch.zeros(shape), torch.zeros(shape)
    marks = torch.full(shape, math.nan)
    targets = torch.full((len(batch), len(TASKS)), math.nan)
    for row, (own, pair) in enumerate(zip(batch, encoded, strict=True)):
        length, second = len(pair.ids), len(pair.ids) - sum(pair.type_ids)
        ids[row, :length] = torch.tensor(pair.ids)
        types[row, second:length] = 1
        mask[row, :length] = 1
        a[row, 1 : second - 1] = 1
        b[row, second : length - 1] = 1
        for task, value in own.targets.items():
            targets[row, TASKS.index(task)] = value
        if own.spans is not None:
            for place in range(second, length - 1):
                start, end = pair.offsets[place]
                marks[row, place] = any(start < e and s < end for s, e in own.spans)
    inputs = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
    return inputs, a, b, targets, marks


def _share(step: int, steps: int) -> float:
    """Of the highest learning rate: warm-up, then half a cosine."""
    cosine = (1 + math.cos(math.pi * step / steps)) / 2
    return min(1, (step + 1) / WARMUP) * max(LEAST, cosine)


def _restore(path: Path, model: PairNetwork, optimizer: Any) -> int:
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def _save(path: Path, model: PairNetwork, optimizer: Any, step: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def export(model: PairNetwork, bert: str, folder: Path, summary: dict[str, Any]) -> None:
    """Writes what gaixie.udfs.meaning.pair_encoder loads."""
    from ctranslate2.converters import TransformersConverter

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as whole:
        model.bert.save_pretrained(whole)
        AutoTokenizer.from_pretrained(bert).save_pretrained(whole)
        config = Path(whole, "config.json")
        # The converter asks for a key that transformers no longer writes.
        named = json.loads(config.read_text()) | {"position_embedding_type": "absolute"}
        config.write_text(json.dumps(named))
        converter = TransformersConverter(whole)
        converter.convert(str(folder / "encoder"), quantization="int8", force=True)
        round_to_seven_bits(folder / ENCODER)
        shutil.copy(Path(whole, "tokenizer.json"), folder)
    state = {
        name: own.numpy().astype(np.float16)
        for name, own in model.state_dict().items()
        if not name.startswith("bert.")
    }
    np.savez_compressed(folder / "head.npz", **state)
    write_description(folder, TASKS, summary)
