"""An optimiser step: a gradient that is not finite changes nothing; learning rates by group."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

pytest.importorskip("accelerate", reason="the trainer is one of accelerate")

import accelerate
import torch
from tiny_seq2seq import tiny_seq2seq
from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel
from two_ranks import on_two_ranks

from gaixie.training.data.stage_data import Position
from gaixie.training.data.stage_loader import PairEncoder
from gaixie.training.loop.run_log import Agreed, Interval, RunLog
from gaixie.training.loop.step import (
    Done,
    freeze_unused,
    make_optimizer,
    prepare,
    train_step,
)
from gaixie.training.modeling.generation import load_generator
from gaixie.training.settings import Batch

PAIRS = (["今天公园很好看", "我们昨天读书"], ["公园今天很好看", "昨天我们读了书"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_seq2seq(tmp_path_factory.mktemp("model"))


def prepared(folder: str, **settings):
    """(accelerator, model, optimiser, a step that may be taken)."""
    torch.set_num_threads(1)
    load_generator.__globals__["_load"].cache_clear()  # a model of its own
    generator = load_generator(folder)
    given = {"weight_decay": 0.01, "learning_rate": 0.01, "encoder_learning_rate": 1.0} | settings
    accelerator = accelerate.Accelerator(cpu=True)
    optimizer = make_optimizer(generator.model, SimpleNamespace(**given))
    model, optimizer = accelerator.prepare(generator.model, optimizer)
    batch = [PairEncoder(generator.tokenizer)(*PAIRS)]

    def step() -> Done:
        return train_step(accelerator, model, optimizer, batch, 0.1, 1.0)

    return model, optimizer, step


def weights(model) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_gradient_that_is_not_finite_changes_nothing(folder, value):
    """Not the weights, and not what the optimiser remembers: the next step is as if it had not been."""
    expected, _, step = prepared(folder)
    step()
    model, _, step = prepared(folder)
    before = weights(model)
    hook = next(model.parameters()).register_hook(lambda gradient: gradient * value)
    done = step()
    assert math.isfinite(done.loss)
    assert done.skipped == 1
    assert all(a.equal(b) for a, b in zip(before, weights(model), strict=True))
    hook.remove()
    assert step().skipped == 0
    for a, b in zip(weights(expected), weights(model), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-7)


def test_the_encoders_share_of_the_learning_rate(folder):
    model, optimizer, _ = prepared(folder, encoder_learning_rate=0.25)
    scale_of = {
        id(parameter): (group["scale"], group["weight_decay"])
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    assert len(scale_of) == len([*model.parameters()])
    found = {name: scale_of[id(parameter)] for name, parameter in model.named_parameters()}
    assert found["model.shared.weight"] == (0.25, 0.01)
    assert found["model.encoder.layers.0.fc1.weight"] == (0.25, 0.01)
    assert found["model.encoder.layers.0.fc1.bias"] == (0.25, 0.0)
    assert found["model.decoder.layers.0.encoder_attn.q_proj.weight"] == (1.0, 0.01)


def test_too_many_skipped_steps_in_a_row_end_the_run(tmp_path):
    """The third in a row, though the first two are of the interval before."""
    settings = SimpleNamespace(output=str(tmp_path), max_skipped_steps=2)
    log = RunLog(SimpleNamespace(is_main_process=True), settings, "")
    stream = SimpleNamespace(stage=2, pair_ids=lambda after: [f"pair-{after.batch}"])

    def check(step: int, *skipped: bool) -> None:
        interval = Interval()
        first = step - len(skipped) + 1
        interval.positions = [Position(0, 1, first + k) for k in range(len(skipped))]
        agreed = Agreed([1.0] * len(skipped), [*skipped], 10, 0.0, 1.0, 1.0, False)
        log.check(interval, agreed, stream, step)

    check(3, True, True, False)
    check(6, False, True, True)
    message = (
        r"step 7: the gradient is not finite, as in the 2 steps before, with batch 6 of block 1"
    )
    with pytest.raises(ValueError, match=message):
        check(8, True, False)
    assert (tmp_path / "not-finite-7.txt").read_text() == "pair-7\n"


def bert_to_bert(tokens: int) -> EncoderDecoderModel:
    """A pretrained encoder has a pooler, which no decoder reads."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sides = [BertConfig(vocab_size=tokens, intermediate_size=16, **sizes) for _ in range(2)]
    config = EncoderDecoderConfig.from_encoder_decoder_configs(*sides)
    config.pad_token_id, config.eos_token_id, config.decoder_start_token_id = 0, 2, 2
    return EncoderDecoderModel(config)


SETTINGS = {"weight_decay": 0.01, "learning_rate": 0.01, "encoder_learning_rate": 1.0, "clip": 1.0}


def trained(accelerator, folder: str) -> tuple[list[str], list, torch.Tensor]:
    """(weights that were frozen, weights after three steps, a buffer that the ranks have apart)."""
    tokenizer = load_generator(folder).tokenizer
    network = bert_to_bert(len(tokenizer)).eval()
    settings = SimpleNamespace(**SETTINGS, batch=Batch(pairs=2, micro_pairs=1))
    frozen = freeze_unused(network)
    optimizer = make_optimizer(network, settings)
    network.encoder.register_buffer("rank", torch.tensor(0))
    model, optimizer = prepare(accelerator, network, optimizer, settings)
    network.encoder.rank.fill_(accelerator.process_index)
    own = slice(accelerator.process_index, None, accelerator.num_processes)
    batch = [PairEncoder(tokenizer)(*(side[own] for side in PAIRS))]
    for _ in range(3):
        train_step(accelerator, model, optimizer, batch, 0.1, 1.0)
    return frozen, [one.numpy() for one in weights(network)], network.encoder.rank.item()


def test_unused_weights_and_buffers_on_two_ranks(folder):
    """A weight without a gradient would end data parallel training at the second step."""
    first, second = on_two_ranks(trained, folder)
    frozen, alone, _ = trained(accelerate.Accelerator(cpu=True), folder)
    assert frozen == first[0] == ["encoder.pooler.dense.weight", "encoder.pooler.dense.bias"]
    assert (first[2], second[2]) == (0, 1)  # no rank's are sent to the others
    for a, b, c in zip(alone, first[1], second[1], strict=True):
        assert (b == c).all()
        assert a == pytest.approx(b, abs=1e-5)


def test_all_weights_of_a_model_of_ours_are_used(folder):
    load_generator.__globals__["_load"].cache_clear()
    model = load_generator(folder).model
    assert freeze_unused(model) == []
    assert all(one.requires_grad for one in model.parameters())
