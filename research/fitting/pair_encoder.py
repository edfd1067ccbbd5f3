"""Trains the pair encoder of tier ``full``: judgements of others first, then the rated pairs.

One loop serves both phases: AdamW, a learning rate that rises and falls along a line, bfloat16, batches
by length, cross-entropy against targets in [0, 1] for each task that an example has, and for each
token of the paraphrase where errors were marked. A phase saves itself every few minutes and goes on
from there.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from gaixie.research.fitting.encoder_examples import EncoderConfig, Example, Phase
from gaixie.udfs.command_line import say
from gaixie.udfs.meaning.pair_encoder import (
    TASKS,
    batches,
    collate,
    encode,
    most_tokens,
    pair_network,
)

SAVE_EVERY = 300
"""Seconds between two saves of a phase."""
TOKEN_LOSS, TOKEN_WEIGHT = 0.5, 2.0
"""Share of the loss of tokens; what a wrong token counts against a right one."""
POOL = 2048
"""Pairs that are sorted by length together, so that batches are both even and random."""


@dataclass
class Network:
    """A network in training, and what a folder needs besides."""

    network: nn.Module
    config: dict
    tokenizer: object


def new_network(encoder: str) -> Network:
    """A network whose encoder is pretrained. encoder: folder, or name in the Hugging Face cache.

    Raises OSError or ValueError of one line where it cannot be loaded.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    from gaixie.udfs.metrics.encoder import loading

    with loading(encoder, "python research/make_encoder.py --from bge-small-zh makes one"):
        config = AutoConfig.from_pretrained(encoder, local_files_only=True)
        if config.model_type != "bert":
            raise ValueError(f"{encoder}: a model of type {config.model_type}, expected bert")
        pretrained = AutoModel.from_pretrained(
            encoder, local_files_only=True, add_pooling_layer=False
        )
        tokenizer = AutoTokenizer.from_pretrained(encoder, local_files_only=True).backend_tokenizer
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    more = ("intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size")
    kept = {name: getattr(config, name) for name in (*names, *more, "layer_norm_eps")}
    # Few examples, few epochs: dropout in the encoder costs time and gains nothing here.
    kept |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    network = pair_network(kept, len(TASKS))
    network.encoder.load_state_dict(pretrained.state_dict())
    return Network(network, kept, tokenizer)


def train(
    model: Network, examples: Sequence[Sequence[Example]], phase: Phase, seed: int, save: Path
) -> None:
    """Trains on examples[epoch] for each epoch, in place. save: file to save to and resume from."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = model.network.to(device).train()
    network.get_submodule("encoder.embeddings").requires_grad_(False)
    optimizer = _optimizer(network, phase.learning_rate, device)
    rng = random.Random(seed)
    torch.manual_seed(seed)
    plan = [
        (epoch, rows)
        for epoch in range(phase.epochs)
        for rows in _shuffled(examples[epoch], model, phase, rng)
    ]
    first = 0
    if save.is_file():
        state = torch.load(save, map_location=device)
        if state["steps"] == len(plan):
            network.load_state_dict(state["network"])
            optimizer.load_state_dict(state["optimizer"])
            first = state["next"]
    started = saved = time.monotonic()
    for step, (epoch, rows) in enumerate(plan):
        if step < first:
            continue
        share = min(1, (step + 1) / max(1, 0.08 * len(plan))) * (1 - step / len(plan))
        for group in optimizer.param_groups:
            group["lr"] = group["highest"] * share
        loss = _loss(network, [examples[epoch][row] for row in rows], model.tokenizer, device)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        now = time.monotonic()
        if now - saved > SAVE_EVERY or step + 1 == len(plan):
            _save(save, network, optimizer, step + 1, len(plan))
            left = (now - started) / (step + 1 - first) * (len(plan) - step - 1)
            where = f"  step {step + 1:,} of {len(plan):,}, loss {loss.item():.3f}"
            say(f"{where}, {left / 60:.0f} minutes left")
            saved = now
    network.eval()


def predict(
    model: Network, pairs: Sequence[tuple[str, str]], batch_tokens: int = 8192
) -> np.ndarray:
    """Every task: float32 in [0, 1], shape (pairs, tasks)."""
    from gaixie.udfs.meaning.pair_encoder import PairEncoder

    device = next(model.network.parameters()).device.type
    encoder = PairEncoder(model.network.eval(), model.tokenizer, TASKS, "", device)
    source, paraphrase = zip(*pairs, strict=True) if pairs else ((), ())
    return encoder.predict(source, paraphrase, batch_tokens)


def _optimizer(network: nn.Module, rate: float, device: str) -> torch.optim.Optimizer:
    """Lower layers learn more slowly; what is new learns five times as fast."""
    layers = list(network.get_submodule("encoder.encoder.layer").children())
    groups = [
        {"params": list(layer.parameters()), "highest": rate * 0.9 ** (len(layers) - 1 - depth)}
        for depth, layer in enumerate(layers)
    ]
    new = [p for name, p in network.named_parameters() if not name.startswith("encoder.")]
    groups.append({"params": new, "highest": 5 * rate})
    return torch.optim.AdamW(groups, lr=rate, weight_decay=0.01, fused=True)


def _shuffled(
    examples: Sequence[Example], model: Network, phase: Phase, rng: random.Random
) -> list[list[int]]:
    """Rows of each batch of an epoch."""
    order = list(range(len(examples)))
    rng.shuffle(order)
    lengths = [len(example.source) + len(example.paraphrase) + 3 for example in examples]
    rows = []
    for start in range(0, len(order), POOL):
        pool = order[start : start + POOL]
        for batch in batches([lengths[row] for row in pool], phase.batch_tokens):
            rows.append([pool[k] for k in batch])
    rng.shuffle(rows)
    return rows


def _loss(network: nn.Module, examples: list[Example], tokenizer, device: str) -> torch.Tensor:
    texts = [e.source for e in examples], [e.paraphrase for e in examples]
    encoded = encode(tokenizer, *texts, most_tokens(network))
    batch = collate(encoded)
    batch = type(batch)(*(tensor.to(device) for tensor in batch))
    with torch.autocast(device, torch.bfloat16):
        logits, wrong = network(batch)
    targets = torch.full(logits.shape, math.nan)
    weights = torch.tensor([example.weight for example in examples]).to(device)
    marks = torch.full(wrong.shape, math.nan)
    for row, (example, pair) in enumerate(zip(examples, encoded, strict=True)):
        for task, value in example.targets.items():
            targets[row, TASKS.index(task)] = value
        if example.spans is not None:
            for position, (side, (start, end)) in enumerate(
                zip(pair.sequence_ids, pair.offsets, strict=True)
            ):
                if side == 1:
                    hit = any(start < last and begin < end for begin, last in example.spans)
                    marks[row, position] = float(hit)
    targets, marks = targets.to(device), marks.to(device)
    known = ~targets.isnan()
    losses = functional.binary_cross_entropy_with_logits(
        logits, targets.nan_to_num(0).clamp(0, 1), reduction="none"
    )
    loss = (losses * known * weights[:, None]).sum() / known.sum().clamp(min=1)
    marked = ~marks.isnan()
    if marked.any():
        loss = loss + TOKEN_LOSS * functional.binary_cross_entropy_with_logits(
            wrong[marked], marks[marked], pos_weight=torch.tensor(TOKEN_WEIGHT, device=device)
        )
    return loss


def _save(path: Path, network, optimizer, following: int, steps: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state | {"next": following, "steps": steps}, part)
    part.replace(path)


def example_of(source: str, paraphrase: str, targets: np.ndarray, weight: float = 1.0) -> Example:
    """An example of the rated pairs' tasks; NaN where a target is not known."""
    known = {
        task: float(value) for task, value in zip(TASKS, targets, strict=False) if value == value
    }
    return Example(source, paraphrase, known, None, weight)


def second_phase(
    rated: Sequence[Example],
    negatives: Sequence[Example],
    human: Sequence[Example],
    config: EncoderConfig,
) -> list[list[Example]]:
    """The examples of each epoch: every rated pair, fresh negatives, some human scores."""
    rng = random.Random(config.seed)
    phase = config.second
    count = min(len(negatives), round(phase.negatives_per_pair * len(rated)))
    return [
        [
            *rated,
            *rng.sample(list(negatives), count),
            *rng.sample(list(human), min(len(human), phase.human_pairs)),
        ]
        for _ in range(phase.epochs)
    ]
