"""Evaluation: all ranks must call the model equally often, whatever the sources."""

from functools import partial

import pyarrow as pa
import pytest
from accelerate import Accelerator
from tiny_seq2seq import tiny_seq2seq
from two_ranks import on_two_ranks

from gaixie.training.data.stage_loader import PairEncoder
from gaixie.training.loop.validation import mean_score
from gaixie.training.modeling.generation import load_model
from gaixie.training.settings import Evaluation
from gaixie.udfs.metrics import load_metric

SOURCES = [
    *(f"今天公园很好看，我们昨天在公园读书{k}" for k in range(4)),
    "\u3000",
    *(f"他读了书，我们今天看花{'，' * (9 * k)}昨天{k}" for k in range(5)),
]
"""Nine sources and a blank one, with four limits of new tokens; few counts divide by two ranks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_seq2seq(tmp_path_factory.mktemp("model"))


def generated(
    accelerator: Accelerator, folder: str, synced: bool
) -> tuple[float, list[tuple[int, int]]]:
    """Returns the mean score, and the sources and limit of each call of generate()."""
    model, tokenizer = load_model(folder)
    calls: list[tuple[int, int]] = []
    generate = partial(model.generate, synced_gpus=True) if synced else model.generate

    def counted(input_ids, max_new_tokens, **arguments):
        calls.append((len(input_ids), max_new_tokens))
        return generate(input_ids=input_ids, max_new_tokens=max_new_tokens, **arguments)

    model.generate = counted
    sources, settings = pa.chunked_array([SOURCES]), Evaluation(batch_size=2)
    metric = load_metric("pinc")
    encode = PairEncoder(tokenizer)
    score, _ = mean_score(accelerator, model, encode, sources, settings, metric)
    return score, calls


def test_ranks_generate_equally_often(folder):
    """Ranks must generate equally often: under ZeRO-3, all ranks take part in every token."""
    first, second = on_two_ranks(generated, folder, True)
    assert first == second
    score, calls = first
    assert len({limit for _, limit in calls}) == 4
    alone, all_calls = generated(Accelerator(cpu=True), folder, False)
    assert score == pytest.approx(alone, abs=1e-12)
    assert sum(rows for rows, _ in all_calls) == len(SOURCES) - 1
