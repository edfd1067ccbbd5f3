"""Trains the pair encoder from a table of drawn examples, on a GPU where there is one.

The table lies on the device, and nothing in a step waits for an answer of it. The result is the
moving average of the weights.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from gaixie.research.pair_encoder.network import PairNetwork
from gaixie.research.pair_encoder.tables import UNKNOWN, Table
from gaixie.udfs.command_line import say

HEAD_SCALE = 5.0
"""The heads' learning rate, in multiples of that of the encoder."""
RANK_LOSS = 0.5
"""Share of the loss of ranked pairs."""
TOKEN_LOSS, TOKEN_WEIGHT = 0.5, 2.0
"""Share of the loss of marked tokens, and the weight of a wrong one."""
SORTED = 64
"""Batches whose examples are sorted by length together."""
PADDED = 16
"""Lengths of batches are multiples of it."""
WARMUP, LEAST = 0.03, 0.02
"""Share of the training in which the rate rises; its lowest share of the highest rate."""
DECAY = 0.999
"""Of the moving average, for each step."""
SAID_EVERY = 5.0
"""Seconds between lines of progress."""


class Batch(NamedTuple):
    """Rows of a table: of the examples, then of the worse ones."""

    rows: np.ndarray
    ranked: np.ndarray
    """Which of the examples have a worse one, in its order."""
    tasks: np.ndarray
    """By which they are worse."""
    examples: int
    length: int
    """Tokens, padding included."""


class Run(NamedTuple):
    """How to train: ``steps`` of ``batch`` examples."""

    rate: float
    batch: int
    steps: int
    seed: int = 5


class DeviceTable:
    """A table on a device, of which it gives what the network and the loss want."""

    def __init__(self, table: Table, device: torch.device):
        self.device = device
        names = ("ids", "marks", "starts", "lengths", "seconds", "targets")
        self.of = {name: torch.from_numpy(getattr(table, name)).to(device) for name in names}
        torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for every shape
        # Without instructions for it, bfloat16 takes twice as long as float32 on a CPU.
        half = device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()
        self.type = torch.bfloat16 if half else torch.float32

    def send(self, numbers: np.ndarray) -> torch.Tensor:
        """Numbers on the device; nobody waits for them to get there."""
        tensor = torch.from_numpy(numbers)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor

    def outputs(
        self, model: nn.Module, rows: torch.Tensor, length: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The network's two outputs for some rows, and the marks of their tokens."""
        place = torch.arange(length, device=self.device)
        starts, lengths, seconds = (
            self.of[name][rows].unsqueeze(1) for name in ("starts", "lengths", "seconds")
        )
        inside = place < lengths
        places = torch.where(inside, starts + place, starts)
        source = (place > 0) & (place < seconds - 1)
        paraphrase = (place >= seconds) & (place < lengths - 1)
        mask = torch.zeros(inside.shape, device=self.device, dtype=self.type)
        mask = mask.masked_fill(~inside, torch.finfo(mask.dtype).min)
        inputs = {
            "input_ids": self.of["ids"][places].long() * inside,
            "token_type_ids": (inside & (place >= seconds)).long(),
            # With four dimensions it is taken as it is, without asking the device what it masks.
            "attention_mask": mask[:, None, None].expand(-1, 1, length, -1).contiguous(),
        }
        half = self.type == torch.bfloat16
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            logits, wrong = model(inputs, source.float(), paraphrase.float())
        return logits, wrong, torch.where(inside, self.of["marks"][places], UNKNOWN)

    def loss(self, model: nn.Module, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """(loss, how often the better one of two has the higher logit)."""
        rows = self.send(batch.rows)
        logits, wrong, marks = self.outputs(model, rows, batch.length)
        targets = self.of["targets"][rows]
        loss = _mean(logits, targets, ~targets.isnan())
        weight = 1 + (TOKEN_WEIGHT - 1) * marks.clamp(min=0).float()
        loss = loss + TOKEN_LOSS * _mean(wrong, marks.float(), marks >= 0, weight)
        if not len(batch.ranked):
            return loss, loss.new_ones(())
        ranked, tasks = self.send(np.stack([batch.ranked, batch.tasks]))
        worse = torch.arange(batch.examples, len(batch.rows), device=self.device)
        below = logits[worse, tasks] - logits[ranked, tasks]
        return loss + RANK_LOSS * softplus(below).mean(), (below.detach() < 0).float().mean()


def _mean(
    logits: torch.Tensor,
    targets: torch.Tensor,
    known: torch.Tensor,
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """The mean cross-entropy of what is known: to choose it would wait for the device."""
    targets = targets.nan_to_num().clamp(min=0)
    each = binary_cross_entropy_with_logits(logits, targets, weight, reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1)


def train(
    table: Table, model: PairNetwork, device: torch.device, run: Run
) -> tuple[PairNetwork, int]:
    """Returns the moving average of the weights, and how many examples were learned from."""
    torch.manual_seed(run.seed)
    data, model = DeviceTable(table, device), model.to(device).train()
    encoder = [weight for weight in model.bert.parameters() if weight.requires_grad]
    heads = [own for name, own in model.named_parameters() if not name.startswith("bert.")]
    groups = [{"params": encoder, "scale": 1.0}, {"params": heads, "scale": HEAD_SCALE}]
    optimizer = torch.optim.AdamW(groups, lr=run.rate, weight_decay=0.01, fused=True)
    average = copy.deepcopy(model).eval().requires_grad_(False)
    examples, spoken = 0, time.monotonic()
    for step, batch in enumerate(islice(batches_of(table, run), run.steps)):
        for group in optimizer.param_groups:
            group["lr"] = run.rate * rate_share(step / run.steps) * group["scale"]
        loss, wins = data.loss(model, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        examples += batch.examples
        _follow(average, model, min(DECAY, (step + 1) / (step + 11)))
        if time.monotonic() - spoken > SAID_EVERY:
            spoken = time.monotonic()
            say(f"step {step:,} of {run.steps:,}: loss {loss:.4f}, the better one wins {wins:.3f}")
            if not math.isfinite(loss.item()):
                raise ValueError(f"the loss is {loss.item()} at step {step}")
    say(f"{run.steps:,} steps, {examples:,} examples")
    return average.cpu(), examples


def rate_share(progress: float) -> float:
    """Share of the highest learning rate: warm-up, then half a cosine."""
    cosine = (1 + math.cos(math.pi * progress)) / 2
    return min(1.0, progress / WARMUP) * max(LEAST, cosine)


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, decay: float) -> None:
    for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
        if weight.requires_grad:
            mean.lerp_(weight, 1 - decay)


def batches_of(table: Table, run: Run) -> Iterator[Batch]:
    """Yields batches of like length without end, each pass over the examples in another order."""
    random, size = np.random.default_rng(run.seed), min(run.batch, len(table.better))
    of_worse = np.where(table.worse < 0, 0, table.lengths[table.worse])
    lengths = np.maximum(table.lengths[table.better], of_worse)
    while True:
        order, chosen = random.permutation(len(lengths)), []
        for start in range(0, len(order), size * SORTED):
            block = order[start : start + size * SORTED]
            block = block[np.argsort(lengths[block], kind="stable")]
            chosen += [block[k : k + size] for k in range(0, len(block) - size + 1, size)]
        for number in random.permutation(len(chosen)):
            yield batch_of(table, chosen[number])


def batch_of(table: Table, chosen: np.ndarray) -> Batch:
    """Makes a batch of some examples of a table."""
    ranked = np.flatnonzero(table.worse[chosen] != UNKNOWN)
    rows = np.concatenate([table.better[chosen], table.worse[chosen[ranked]]])
    length = -(-int(table.lengths[rows].max()) // PADDED) * PADDED
    return Batch(rows, ranked, table.ranks[chosen[ranked]], len(chosen), length)
