"""Measures how fast the loader delivers pairs of a stage as tensors, on this machine's cores.

python research/benchmarks/bench_stage_data.py --data ROOT/runs/RUN_ID --tokenizer FOLDER --stage 2
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from gaixie.research.benchmarks.common import parser, show
from gaixie.training.data.corpus import Corpus
from gaixie.training.data.stage_data import StageStream
from gaixie.training.data.stage_loader import PairEncoder, StageLoader
from gaixie.training.data.token_files import ROWS, TokenFiles
from gaixie.training.loop.step import MicroBatches
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.settings import StreamSettings

BATCH_SIZE = 64
WARM = 100
"""Batches before the clock starts; by then workers have read their block and encoded ahead."""
BATCHES = 800


def bench_stage_data(data: str, tokenizer: str, stage: int = 1) -> dict[str, float]:
    """Returns tokens per second, of sources and paraphrases without padding.

    made_tokens_per_s: all cores encode the whole stage. The other figures read the encoded stage.
    """
    torch.set_num_threads(1)
    encode = PairEncoder(EntityAlignedTokenizer.from_pretrained(tokenizer))
    encode(["一句话"], ["另一句话"])  # compiles the segmenter
    settings, cores = StreamSettings(batch_size=BATCH_SIZE), os.cpu_count() or 1
    cut = MicroBatches(encode, BATCH_SIZE)
    with TemporaryDirectory() as folder:

        def stream() -> StageStream:
            return StageStream(Corpus(data), stage, settings, tokens=TokenFiles(folder, encode))

        started = time.perf_counter()
        whole = StageLoader(stream(), lambda *_, **__: None, cores)
        with closing(iter(whole)) as batches:
            while not whole.position.epoch:
                next(batches)
        made_s = time.perf_counter() - started
        # A file has two bytes per token, after the ends of ROWS pairs.
        sizes = [file.stat().st_size for file in Path(folder).rglob("*.tokens")]
        made = sum((size - 8 * (2 * ROWS + 1)) // 2 for size in sizes)
        one = _tokens_per_s(StageLoader(stream(), cut))
        all_cores = _tokens_per_s(StageLoader(stream(), cut, cores))
    return {
        "made_tokens_per_s": made / made_s,
        "tokens_per_s_one_process": one,
        "tokens_per_s_all_cores": all_cores,
    }


def _tokens_per_s(loader: StageLoader) -> float:
    with closing(iter(loader)) as batches:
        for _ in range(WARM):
            next(batches)
        started = time.perf_counter()
        tokens = sum(next(batches).tokens for _ in range(BATCHES))
        return tokens / (time.perf_counter() - started)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--data", required=True, help="a published run or release")
    options.add_argument("--tokenizer", required=True, help="folder")
    options.add_argument("--stage", type=int, default=1)
    args = options.parse_args()
    show(bench_stage_data(args.data, args.tokenizer, args.stage), "stage_data")
