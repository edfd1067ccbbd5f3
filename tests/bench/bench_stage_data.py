"""How fast pairs of a stage come out of the loader, encoded and padded, on this machine's cores.

python tests/bench/bench_stage_data.py --data ROOT/runs/RUN_ID --tokenizer FOLDER
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from gaixie.training.data.corpus import Corpus
from gaixie.training.data.stage_data import StageStream, StreamSettings
from gaixie.training.data.stage_loader import IGNORED, PairEncoder, StageLoader
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer

BATCH_SIZE = 64
WARM = 100
"""Batches before the clock starts: the workers have read their block, and encoded ahead."""
BATCHES = 800


def bench_stage_data(data: str, tokenizer: str, stage: int = 1) -> dict[str, float]:
    """Some batches of a stage; tokens: of sources and paraphrases, without padding.

    first_batch_s: from the manifest to the first encoded batch, in this process.
    """
    torch.set_num_threads(1)
    encode = PairEncoder(EntityAlignedTokenizer.from_pretrained(tokenizer))
    encode(["一句话"], ["另一句话"])  # compiles the segmenter
    settings = StreamSettings(batch_size=BATCH_SIZE)
    started = time.perf_counter()
    stream = StageStream(Corpus(data), stage, settings)
    next(iter(StageLoader(stream, encode)))
    first_batch_s = time.perf_counter() - started
    cores = os.cpu_count()
    one, padding = _tokens_per_s(StageLoader(stream, encode))
    all_cores, _ = _tokens_per_s(StageLoader(stream, encode, workers=cores))
    raw = _warm(StageLoader(stream))
    started = time.perf_counter()
    pairs = sum(len(next(raw)[0]) for _ in range(BATCHES))
    return {
        "pairs": stream.rows,
        "first_batch_s": first_batch_s,
        "tokens_per_s_one_process": one,
        "tokens_per_s_all_cores": all_cores,
        "padding_share": padding,
        "raw_pairs_per_s": pairs / (time.perf_counter() - started),
    }


def _warm(loader: StageLoader) -> Iterator:
    batches = iter(loader)
    for _ in range(WARM):
        next(batches)
    return batches


def _tokens_per_s(loader: StageLoader) -> tuple[float, float]:
    """Tokens a second, and the share of cells that are padding."""
    batches = _warm(loader)
    tokens = cells = 0
    started = time.perf_counter()
    for _ in range(BATCHES):
        batch = next(batches)
        tokens += int(batch["attention_mask"].sum()) + int((batch["labels"] != IGNORED).sum())
        cells += batch["input_ids"].numel() + batch["labels"].numel()
    return tokens / (time.perf_counter() - started), 1 - tokens / cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="a published run or release")
    parser.add_argument("--tokenizer", type=Path, required=True)
    args = parser.parse_args()
    for name, value in bench_stage_data(args.data, str(args.tokenizer)).items():
        print(f"stage_data.{name:<30}{value:>16,.3f}")


if __name__ == "__main__":
    main()
