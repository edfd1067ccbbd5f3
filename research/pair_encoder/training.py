"""Trains the pair encoder from drawn examples, on a GPU where there is one.

The examples become arrays of tokens once:

    table = read_table(Path("drawn.jsonl.xz"), "out/pair-encoder/start")

Rows of a table are pairs: that of each example, and the worse one of those that have one. The table
lies on the device, and nothing in a step waits for an answer of it. The result is the moving
average of the weights.
"""

import copy
import json
import lzma
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from gaixie.research.pair_encoder.network import PairNetwork
from gaixie.udfs.command_line import say
from gaixie.udfs.meaning.pair_encoder import TASKS, TOKENIZER

MOST = 256
"""Tokens of a pair; of a longer one the longer sentence is cut."""
UNKNOWN = -1
"""The mark of a token that nobody looked at, and the worse row of an example without one."""
LINES = 2_000
"""Of a piece that is tokenized together."""
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
SAID_EVERY = 100
"""Steps between lines of progress."""


class Table(NamedTuple):
    """All tokens one after another, then the rows that they are of, then the examples."""

    ids: np.ndarray
    marks: np.ndarray
    """Of each token: 1 wrong, 0 right, UNKNOWN."""
    starts: np.ndarray
    """Of each row, as lengths and seconds: its place in ids."""
    lengths: np.ndarray
    seconds: np.ndarray
    """Tokens before the paraphrase."""
    targets: np.ndarray
    """float32, shape (rows, tasks); NaN where nothing is known."""
    better: np.ndarray
    """Of each example: its row."""
    worse: np.ndarray
    """The row of its worse one, or UNKNOWN."""
    ranks: np.ndarray
    """The task by which it is worse."""


def read_table(path: Path, bert: str) -> Table:
    """Reads the examples of a file. bert: folder with the tokenizer."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return table_of(lines, bert)


def table_of(lines: Iterable[str], bert: str) -> Table:
    """Reads the examples of the lines of such a file, piece by piece; the tokenizer uses all
    cores."""
    tokenizer = Tokenizer.from_file(str(Path(bert, TOKENIZER)))
    tokenizer.enable_truncation(MOST, strategy="longest_first")
    tokenizer.no_padding()
    rest, parts, rows = iter(lines), [], 0
    while piece := list(islice(rest, LINES)):
        part = _part([json.loads(line) for line in piece], tokenizer)
        worse = np.where(part.worse < 0, UNKNOWN, part.worse + rows)
        parts.append(part._replace(better=part.better + rows, worse=worse))
        rows += len(part.lengths)
    whole = Table(*map(np.concatenate, zip(*parts, strict=True)))
    return whole._replace(starts=np.cumsum(whole.lengths) - whole.lengths)


def _part(examples: Sequence[dict[str, Any]], tokenizer: Tokenizer) -> Table:
    ranked = [row for row, example in enumerate(examples) if "worse" in example]
    worse = np.full(len(examples), UNKNOWN)
    worse[ranked] = len(examples) + np.arange(len(ranked))
    pairs = [*examples]
    pairs += [examples[k]["worse"] | {"source": examples[k]["source"]} for k in ranked]
    encoded = tokenizer.encode_batch([(pair["source"], pair["paraphrase"]) for pair in pairs])
    seconds = np.array([len(pair.ids) - sum(pair.type_ids) for pair in encoded])
    lengths = np.array([len(pair.ids) for pair in encoded])
    targets = np.full((len(pairs), len(TASKS)), math.nan, np.float32)
    for row, pair in enumerate(pairs):
        for task, value in pair["targets"].items():
            targets[row, TASKS.index(task)] = value
    spans = [pair.get("spans") for pair in pairs]
    return Table(
        ids=np.fromiter(chain.from_iterable(pair.ids for pair in encoded), np.int32),
        marks=np.concatenate([*map(_marks, encoded, seconds, spans)]),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        seconds=seconds,
        targets=targets,
        better=np.arange(len(examples)),
        worse=worse,
        ranks=np.array([TASKS.index(example.get("rank", "same")) for example in examples]),
    )


def _marks(pair: Any, second: int, spans: Sequence[tuple[int, int]] | None) -> np.ndarray:
    marks = np.full(len(pair.ids), UNKNOWN, np.int8)
    if spans is not None:
        marks[second:-1] = 0
    for place, (start, end) in enumerate(pair.offsets[second:-1] if spans else (), second):
        marks[place] = any(start < e and s < end for s, e in spans or ())
    return marks


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


class DeviceTable:
    """A table on a device, of which it gives what the network and the loss want."""

    def __init__(self, table: Table, device: torch.device):
        self.device, self.on_gpu = device, device.type == "cuda"
        names = ("ids", "marks", "starts", "lengths", "seconds", "targets")
        self.of = {name: torch.from_numpy(getattr(table, name)).to(device) for name in names}
        torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for every shape
        # Without instructions for it, bfloat16 takes twice as long as float32 on a CPU.
        half = self.on_gpu or torch.cpu._is_avx512_bf16_supported()
        self.type = torch.bfloat16 if half else torch.float32

    def send(self, numbers: np.ndarray) -> torch.Tensor:
        """Numbers on the device; nobody waits for them to get there."""
        tensor = torch.from_numpy(numbers)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.on_gpu else tensor

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
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.type == torch.bfloat16):
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
    table: Table,
    model: PairNetwork,
    device: torch.device,
    rate: float,
    batch_size: int,
    steps: int,
    seed: int,
    state: Path,
) -> tuple[PairNetwork, int]:
    """Returns the moving average of the weights, and how many examples were learned from.

    state: a file that is written now and then, and is gone at the end. If it is there, the training
    goes on from it; on a CPU, to the same weights as one that was not interrupted. Raises
    ValueError if it is of a training with other settings or examples.
    """
    settings = (rate, batch_size, steps, seed, len(table.ids))
    torch.manual_seed(seed)
    data, model = DeviceTable(table, device), model.to(device).train()
    encoder = [weight for weight in model.bert.parameters() if weight.requires_grad]
    heads = [own for name, own in model.named_parameters() if not name.startswith("bert.")]
    groups = [{"params": encoder, "scale": 1.0}, {"params": heads, "scale": HEAD_SCALE}]
    optimizer = torch.optim.AdamW(groups, lr=rate, weight_decay=0.01, fused=True)
    average = copy.deepcopy(model).eval().requires_grad_(False)
    examples, first = 0, 0
    if state.is_file():
        of, first, examples, random, *known = torch.load(state, map_location=device)
        if of != settings:
            raise ValueError(f"{state}: of another training; remove it, or give another --output")
        torch.set_rng_state(random.cpu())
        parts: tuple[Any, ...] = (model, average, optimizer)
        for part, values in zip(parts, known, strict=True):
            part.load_state_dict(values)
        say(f"goes on after step {first:,}")
    for step, batch in enumerate(islice(batches_of(table, batch_size, seed), steps)):
        if step < first:
            continue
        for group in optimizer.param_groups:
            group["lr"] = rate * rate_share(step / steps) * group["scale"]
        loss, wins = data.loss(model, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        examples += batch.examples
        _follow(average, model, min(DECAY, (step + 1) / (step + 11)))
        if step % SAID_EVERY == 0:
            say(f"step {step:,} of {steps:,}: loss {loss:.4f}, the better one wins {wins:.3f}")
            if not math.isfinite(loss.item()):
                raise ValueError(f"the loss is {loss.item()} at step {step}")
            now = [part.state_dict() for part in (model, average, optimizer)]
            torch.save((settings, step + 1, examples, torch.get_rng_state(), *now), f"{state}.new")
            os.replace(f"{state}.new", state)
    state.unlink(missing_ok=True)
    say(f"{steps:,} steps, {examples:,} examples")
    return average.cpu(), examples


def rate_share(progress: float) -> float:
    """Share of the highest learning rate: warm-up, then half a cosine."""
    return min(1.0, progress / WARMUP) * max(LEAST, (1 + math.cos(math.pi * progress)) / 2)


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, decay: float) -> None:
    for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
        if weight.requires_grad:
            mean.lerp_(weight, 1 - decay)


def batches_of(table: Table, size: int, seed: int) -> Iterator[Batch]:
    """Yields batches of like length without end, each pass over the examples in another order."""
    random, size = np.random.default_rng(seed), min(size, len(table.better))
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
