"""Trains the pair encoder from a table of drawn examples, on a GPU where there is one.

The table lies on the device, and nothing in a step waits for an answer of it. The schedule goes by
steps or by the time that has passed. What comes out is the moving average of the weights.
"""

from __future__ import annotations

import copy
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from gaixie.research.pair_encoder.tables import UNKNOWN, Table
from gaixie.research.pair_encoder.training import (
    HEAD_SCALE,
    LEAST,
    RANK_LOSS,
    TOKEN_LOSS,
    TOKEN_WEIGHT,
    PairNetwork,
)
from gaixie.udfs.command_line import say

SORTED = 64
"""Batches whose examples are sorted by length together."""
PADDED = 16
"""Lengths of batches are multiples of it."""
WARMUP = 0.03
"""Share of the training in which the rate rises."""
DECAY = 0.999
"""Of the moving average, for each step."""
SAID, LOOKS = 5.0, 5
"""Seconds between lines of progress; looks at the kept examples, after the one at the start."""
KEPT, MOST_KEPT = "kept", 2_000
"""What the kinds of kept examples begin with; how many of each are looked at."""
BACKEND, TRIED, PATIENCE = "inductor", 30, 75
"""What compiles layers; steps by which it is timed; seconds that it may take."""


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
    """How to train. seconds: where they are given, steps do not count."""

    rate: float
    batch: int
    steps: int = 0
    seconds: float = 0.0
    seed: int = 5
    compiled: bool = False
    thinned: Sequence[tuple[str, float]] = ()
    """(kind, share of its examples that each pass takes)."""

    def progress(self, step: int, passed: float) -> float:
        return passed / self.seconds if self.seconds else step / self.steps


class DeviceTable:
    """A table on a device, of which it gives what the network and the loss want."""

    def __init__(self, table: Table, device: torch.device):
        self.device = device
        names = ("ids", "marks", "starts", "lengths", "seconds", "targets")
        self.of = {name: torch.from_numpy(getattr(table, name)).to(device) for name in names}
        torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for every shape
        # Without instructions for it, bfloat16 takes twice as long as float32 on a CPU.
        self.half = device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)

    def send(self, numbers: np.ndarray) -> torch.Tensor:
        """Numbers on the device; nobody waits for them to get there."""
        tensor = torch.from_numpy(numbers)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor

    def loss(self, model: nn.Module, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """(loss, how often the better one of two has the higher logit)."""
        rows = self.send(batch.rows)
        place = torch.arange(batch.length, device=self.device)
        starts, lengths, seconds = (
            self.of[name][rows].unsqueeze(1) for name in ("starts", "lengths", "seconds")
        )
        inside = place < lengths
        places = torch.where(inside, starts + place, starts)
        second = (place >= seconds) & (place < lengths - 1)
        first = (place > 0) & (place < seconds - 1)
        mask = torch.zeros(inside.shape, device=self.device, dtype=self._type())
        mask = mask.masked_fill(~inside, torch.finfo(mask.dtype).min)
        inputs = {
            "input_ids": self.of["ids"][places].long() * inside,
            "token_type_ids": (inside & (place >= seconds)).long(),
            # With four dimensions it is taken as it is, without asking the device what it masks.
            "attention_mask": mask[:, None, None].expand(-1, 1, batch.length, -1).contiguous(),
        }
        with self.autocast():
            logits, wrong = model(inputs, first.float(), second.float())
        targets, marks = self.of["targets"][rows], self.of["marks"][places]
        loss = _mean(binary_cross_entropy_with_logits, logits, targets, ~targets.isnan())
        weight = 1 + (TOKEN_WEIGHT - 1) * marks.clamp(min=0).float()
        loss = loss + TOKEN_LOSS * _mean(
            binary_cross_entropy_with_logits, wrong, marks.float(), inside & (marks >= 0), weight
        )
        if not len(batch.ranked):
            return loss, loss.new_ones(())
        ranked, tasks = self.send(np.stack([batch.ranked, batch.tasks]))
        worse = torch.arange(batch.examples, len(batch.rows), device=self.device)
        below = logits[worse, tasks] - logits[ranked, tasks]
        return loss + RANK_LOSS * softplus(below).mean(), (below.detach() < 0).float().mean()

    def _type(self) -> torch.dtype:
        """What attention computes in, and wants its mask in."""
        with self.autocast():
            given = torch.is_autocast_enabled(self.device.type)
        return torch.bfloat16 if given else torch.float32


def _mean(
    of: Callable[..., torch.Tensor],
    logits: torch.Tensor,
    targets: torch.Tensor,
    known: torch.Tensor,
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """The mean over what is known: to choose it would wait for the device."""
    each = of(logits, targets.nan_to_num().clamp(min=0), weight, reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1)


def train_from(
    table: Table, model: PairNetwork, device: torch.device, run: Run
) -> tuple[PairNetwork, int]:
    """(the moving average of the weights, examples that were learned from)."""
    torch.manual_seed(run.seed)
    data, model = DeviceTable(table, device), model.to(device).train()
    body = [own for own in model.bert.parameters() if own.requires_grad]
    new = [own for name, own in model.named_parameters() if not name.startswith("bert.")]
    groups = [{"params": body, "scale": 1.0}, {"params": new, "scale": HEAD_SCALE}]
    optimizer = torch.optim.AdamW(groups, lr=run.rate, weight_decay=0.01, fused=True)
    average = copy.deepcopy(model).eval().requires_grad_(False)
    kept = _kept(table, run.batch)
    learned = np.flatnonzero(~np.char.startswith(table.kinds, KEPT))
    batches = _batches(table, learned, run)
    if run.compiled:
        _compile_if_faster(model, data, [next(batches) for _ in range(TRIED)])
    _look(data, average, kept, 0.0)
    step = examples = said = looks = 0
    losses = torch.zeros((), device=device)
    started = spoken = time.monotonic()
    while (progress := run.progress(step, time.monotonic() - started)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = run.rate * _share(progress) * group["scale"]
        batch = next(batches)
        loss, _ = data.loss(model, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step, examples = step + 1, examples + batch.examples
        _follow(average, model, min(DECAY, step / (step + 10)))
        losses += loss.detach()
        if time.monotonic() - spoken > SAID:
            mean = losses.item() / (step - said)
            speed = (step - said) * batch.examples / (time.monotonic() - spoken)
            say(f"{progress:4.0%} step {step:,}: loss {mean:.4f}, {speed:,.0f} examples/s")
            if not math.isfinite(mean):
                raise ValueError(f"the loss is {mean} at step {step}")
            losses, said, spoken = torch.zeros_like(losses), step, time.monotonic()
        if progress > (looks + 1) / LOOKS:
            looks += 1
            _look(data, average, kept, progress)
    _look(data, average, kept, 1.0)
    say(f"{step:,} steps, {examples:,} examples, {examples / len(learned):.2f} passes")
    return average.cpu(), examples


def _share(progress: float) -> float:
    """Of the highest learning rate: warm-up, then half a cosine."""
    cosine = (1 + math.cos(math.pi * progress)) / 2
    return min(1.0, progress / WARMUP) * max(LEAST, cosine)


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, decay: float) -> None:
    pairs = zip(average.parameters(), model.parameters(), strict=True)
    mine, theirs = zip(*((own, other) for own, other in pairs if other.requires_grad), strict=True)
    torch._foreach_lerp_(mine, theirs, 1 - decay)


def _batches(table: Table, examples: np.ndarray, run: Run) -> Iterator[Batch]:
    """Batches of like length without end, each pass over the examples in another order."""
    random, share = np.random.default_rng(run.seed), np.ones(len(examples))
    for kind, own in run.thinned:
        if not (chosen := table.kinds[examples] == kind).any():
            raise ValueError(f"there are no examples of the kind {kind}")
        share[chosen] = own
    worse = table.worse[examples]
    lengths = np.maximum(
        table.lengths[table.better[examples]], np.where(worse < 0, 0, table.lengths[worse])
    )
    while True:
        taken = np.flatnonzero(random.random(len(examples)) < share)
        order, chosen, size = random.permutation(taken), [], min(run.batch, len(taken))
        for start in range(0, len(order), size * SORTED):
            block = order[start : start + size * SORTED]
            block = block[np.argsort(lengths[block], kind="stable")]
            chosen += [block[k : k + size] for k in range(0, len(block) - size + 1, size)]
        for number in random.permutation(len(chosen)):
            yield _batch(table, examples[chosen[number]])


def _batch(table: Table, chosen: np.ndarray) -> Batch:
    ranked = np.flatnonzero(table.worse[chosen] != UNKNOWN)
    rows = np.concatenate([table.better[chosen], table.worse[chosen[ranked]]])
    length = -(-int(table.lengths[rows].max()) // PADDED) * PADDED
    return Batch(rows, ranked, table.ranks[chosen[ranked]], len(chosen), length)


def _kept(table: Table, size: int) -> dict[str, list[Batch]]:
    """Batches of the kept examples of each kind."""
    found = {}
    for kind in [name for name in np.unique(table.kinds).tolist() if name.startswith(KEPT)]:
        own = np.random.default_rng(0).permutation(np.flatnonzero(table.kinds == kind))
        own = own[:MOST_KEPT]
        own = own[np.argsort(table.lengths[table.better[own]], kind="stable")]
        found[kind] = [_batch(table, own[k : k + size]) for k in range(0, len(own), size)]
    return found


@torch.no_grad()
def _look(
    data: DeviceTable, model: nn.Module, kept: dict[str, list[Batch]], progress: float
) -> None:
    """Says the loss of each kind of kept examples, and how often the better one wins."""
    for kind, batches in kept.items():
        found = torch.stack([torch.stack(data.loss(model, batch)) for batch in batches])
        weights = torch.tensor([float(batch.examples) for batch in batches], device=data.device)
        loss, wins = ((found * weights[:, None]).sum(0) / weights.sum()).tolist()
        won = f", the better one wins {wins:.3f}" if any(len(own.ranked) for own in batches) else ""
        say(f"{progress:4.0%} {kind}: loss {loss:.4f}{won}")


def _compile_if_faster(model: PairNetwork, data: DeviceTable, batches: list[Batch]) -> None:
    """Compiles the layers where that works and pays; nothing is learned."""
    layers = model.bert.encoder.layer
    _seconds(model, data, batches)  # the first steps look for kernels and memory
    plain = _seconds(model, data, batches)
    try:
        signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(PATIENCE)
        torch._dynamo.config.suppress_errors = True
        for layer in layers:
            layer.compile(backend=BACKEND, dynamic=True)
        _seconds(model, data, batches)
        compiled = _seconds(model, data, batches)
    except Exception as error:  # whatever a compiler may raise, the plain layers work
        say(f"not compiled: {type(error).__name__}: {error}")
        compiled = math.inf
    finally:
        signal.alarm(0)
    if compiled > 0.95 * plain:
        for layer in layers:
            layer._compiled_call_impl = None
    say(f"{TRIED} steps: {plain:.2f} s plain, {compiled:.2f} s compiled")


def _give_up(*_: object) -> None:
    raise TimeoutError(f"more than {PATIENCE} s")


def _seconds(model: nn.Module, data: DeviceTable, batches: list[Batch]) -> float:
    """Of passes forth and back."""
    started = time.monotonic()
    for batch in batches:
        loss, _ = data.loss(model, batch)
        loss.backward()
        model.zero_grad(set_to_none=True)
    loss.item()  # waits for the device
    return time.monotonic() - started
