"""What a step of training asks of its device: operations, and waits for an answer. A model of conf/curriculum.yaml.

python research/benchmarks/bench_step.py --config conf/curriculum.yaml
"""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import accelerate
import numpy as np
import torch
from transformers import BartConfig, BartForConditionalGeneration

from gaixie.training.data.stage_loader import PairEncoder
from gaixie.training.loop.step import Work, make_optimizer, prepare, train_step
from gaixie.training.settings import load_settings

TOKENS = 8_000
PAIRS = 4
MICRO_BATCHES = 4
WAITS = ("aten::item", "aten::nonzero")
"""Operations whose answer Python has to know; those of the fused AdamW are the CPU's own."""


def bench_step(config: str) -> dict[str, float]:
    """Of one step: operations that consist of no others, views among them, and waits."""
    settings = load_settings(config, [])
    torch.manual_seed(0)
    given = {"vocab_size": TOKENS, "pad_token_id": 0, "eos_token_id": 2}
    model = BartForConditionalGeneration(BartConfig(**settings.model.config or {}, **given))
    accelerator = accelerate.Accelerator()
    model, optimizer = prepare(accelerator, model, make_optimizer(model, settings), settings)
    lengths = np.random.default_rng(0).integers(20, 40, PAIRS)
    rows = [torch.randint(3, TOKENS, (length,)).numpy() for length in lengths]
    micro = PairEncoder(SimpleNamespace(pad_token_id=0)).tensors(rows, rows)
    labels = int(lengths.sum()) * MICRO_BATCHES
    work = Work([micro] * MICRO_BATCHES, labels, 2 * labels)

    def step() -> None:
        train_step(accelerator, model, optimizer, work, settings.label_smoothing, settings.clip)

    step()
    with torch.profiler.profile() as profile:
        step()
    events = [event for event in profile.events() if event.name.startswith("aten::")]
    return {
        "operations": sum(not event.cpu_children for event in events),
        "waits": sum(
            event.name in WAITS
            and (event.cpu_parent is None or event.cpu_parent.name != "aten::_fused_adamw_")
            for event in events
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="conf/curriculum.yaml", metavar="YAML")
    for name, value in bench_step(parser.parse_args().config).items():
        print(f"step.{name:<30}{value:>16,}")


if __name__ == "__main__":
    main()
