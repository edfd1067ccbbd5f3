"""Measures a training step: its time, tokens per second and MFU.

  python research/benchmarks/bench_step.py --config conf/curriculum.yaml
  python research/benchmarks/bench_step.py --pairs 1085 --micro-batches 2 --set compile=inductor

--pairs 1085 makes micro-batches of 64,000 tokens. --set changes settings, such as the model's and
``compile``. The first steps, which compile, are not counted.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import accelerate
import numpy as np
import torch
from transformers import BartConfig, BartForConditionalGeneration

from gaixie.research.benchmarks.common import parser, show
from gaixie.training.data.stage_loader import PairEncoder
from gaixie.training.loop.backend import Precision, Utilisation, lowest_capability, prepare
from gaixie.training.loop.step import Work, make_optimizer, train_step
from gaixie.training.settings import load_settings

TOKENS, STEPS = 8_000, 6


def bench_step(
    config: str, assignments: list[str], pairs: int, micro_batches: int
) -> dict[str, float]:
    """Returns milliseconds of a step, tokens per second and MFU.

    pairs: pairs of a micro-batch, of similar length, as in a stage. assignments: KEY=VALUE for
    settings of the config.
    """
    settings = load_settings(config, assignments)
    precision = Precision.of(settings.bf16, settings.tf32, lowest_capability())
    torch.manual_seed(0)
    given = {"vocab_size": TOKENS, "pad_token_id": 0, "eos_token_id": 2}
    model = BartForConditionalGeneration(BartConfig(**settings.model.config or {}, **given))
    accelerator = accelerate.Accelerator(mixed_precision="bf16" if precision.bf16 else "no")
    precision.set_up(accelerator)
    utilisation = Utilisation(accelerator, model, precision)
    model, optimizer = prepare(accelerator, model, make_optimizer(model, settings), settings)
    if settings.compile:
        accelerator.unwrap_model(model).compile(backend=settings.compile, dynamic=True)
    lengths = np.sort(np.random.default_rng(0).integers(20, 40, pairs * micro_batches))
    rows = [torch.randint(3, TOKENS, (length,)).numpy() for length in lengths]
    encode, labels = PairEncoder(SimpleNamespace(pad_token_id=0)), int(lengths.sum())
    starts = range(0, len(rows), pairs)
    micros = [encode.tensors(rows[k : k + pairs], rows[k : k + pairs]) for k in starts]
    work = Work(micros, labels, 2 * labels)
    step = (accelerator, model, optimizer, work, settings.label_smoothing, settings.clip)
    seconds = []
    for _ in range(STEPS):
        started = time.perf_counter()
        train_step(*step).loss.item()  # waits for the device
        seconds.append(time.perf_counter() - started)
    return {
        "micro_batch_tokens": 2 * labels / micro_batches,
        "milliseconds": 1_000 * min(seconds),
        "tokens_per_second": work.tokens / min(seconds),
        "mfu": utilisation.of(labels, labels) / min(seconds),
    }


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--config", default="conf/curriculum.yaml", metavar="YAML")
    options.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="of the config")
    options.add_argument("--pairs", type=int, default=4, help="of a micro-batch (%(default)s)")
    options.add_argument("--micro-batches", type=int, default=4, help="of a step (%(default)s)")
    own = options.parse_args()
    show(bench_step(own.config, own.set, own.pairs, own.micro_batches), "step")
