"""An optimiser step: infinite gradients, micro-batches, losses, learning rates, two ranks."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import accelerate
import numpy as np
import pytest
import torch
from accelerate.utils import DistributedType
from hypothesis import given
from hypothesis import strategies as st
from tiny_seq2seq import tiny_seq2seq
from transformers import (
    BertConfig,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    M2M100Config,
    M2M100ForConditionalGeneration,
)
from two_ranks import on_two_ranks

from gaixie.training.data.stage_data import Position
from gaixie.training.data.stage_loader import IGNORED, PairEncoder
from gaixie.training.loop.backend import prepare
from gaixie.training.loop.run_log import Agreed, Interval, RunLog
from gaixie.training.loop.step import (
    Done,
    MicroBatches,
    Work,
    freeze_unused,
    make_optimizer,
    predict,
    token_losses,
    train_step,
)
from gaixie.training.modeling.generation import load_generator
from gaixie.training.settings import Batch

PAIRS = (
    ["今天公园很好看", "我们昨天读书", "他看花", "他在公园"],
    ["公园今天很好看", "昨天我们读了书", "花他看了", "公园在"],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_seq2seq(tmp_path_factory.mktemp("model"))


def work(
    tokenizer, own: slice = slice(None), micro_pairs: int = 8, micro_tokens: int | None = None
) -> Work:
    """Returns a rank's work on the pairs."""
    rows = PairEncoder(tokenizer).tokens(*PAIRS)
    lengths = np.array([[len(ids) for ids in side] for side in rows]).T
    return MicroBatches(PairEncoder(tokenizer), micro_pairs, micro_tokens)(
        *(side[own] for side in rows), lengths
    )


def prepared(folder: str, **settings):
    """Returns a model, its optimiser, and a function that takes a step."""
    torch.set_num_threads(1)
    load_generator.__globals__["_load"].cache_clear()  # so that the model is not shared
    generator = load_generator(folder)
    given = {"weight_decay": 0.01, "learning_rate": 0.01, "encoder_learning_rate": 1.0} | settings
    accelerator = accelerate.Accelerator(cpu=True)
    optimizer = make_optimizer(generator.model, SimpleNamespace(**given))
    model, optimizer = accelerator.prepare(generator.model, optimizer)
    batch = work(generator.tokenizer)

    def step() -> Done:
        return train_step(accelerator, model, optimizer, batch, 0.1, 1.0)

    return model, optimizer, step


def weights(model) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_gradient_that_is_not_finite_changes_nothing(folder, value):
    """A gradient that is not finite must change neither weights nor the optimiser's state: the next
    step must be as without it."""
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


def plain_step(folder: str, **cut: int) -> tuple[Done, list[torch.Tensor]]:
    """Takes a step of plain gradient descent; Adam would divide by tiny gradients.

    Returns the step and the weights after it.
    """
    load_generator.__globals__["_load"].cache_clear()
    generator, accelerator = load_generator(folder), accelerate.Accelerator(cpu=True)
    optimizer = torch.optim.SGD(generator.model.parameters(), lr=0.1, fused=True)
    model, optimizer = accelerator.prepare(generator.model, optimizer)
    given = work(generator.tokenizer, **cut)
    assert (len(given.micro_batches) > 1) == bool(cut)
    return train_step(accelerator, model, optimizer, given, 0.1, 1.0), weights(model)


@pytest.mark.parametrize("cut", [{"micro_pairs": 1}, {"micro_tokens": 20}])
def test_however_it_is_cut_up_the_step_is_the_same(folder, cut):
    whole, expected = plain_step(folder)
    done, found = plain_step(folder, **cut)
    assert done.loss.item() == pytest.approx(whole.loss.item(), abs=1e-5)
    assert done.tokens == whole.tokens
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


lengths = st.tuples(st.integers(2, 30), st.integers(2, 30))


@given(st.lists(lengths, min_size=1, max_size=40), st.integers(1, 9), st.integers(1, 200))
def test_micro_batches_are_within_bounds(rows, pairs, tokens):
    """Micro-batches must be within bounds, except for a single longer pair, and two ranks must cut
    at the same pairs."""
    rows = [*rows, *reversed(rows)]
    cuts = []
    for rank in (0, 1):
        own = [([5] * a, [6] * b) for a, b in rows[rank::2]]
        encode = PairEncoder(SimpleNamespace(pad_token_id=0))
        done = MicroBatches(encode, pairs, tokens)(
            [a for a, _ in own], [b for _, b in own], np.array(rows)
        )
        sizes = [micro["input_ids"].shape for micro in done.micro_batches]
        cuts.append([count for count, _ in sizes])
        assert sum(cuts[-1]) == len(own)
        for micro in done.micro_batches:
            cells = micro["input_ids"].numel() + micro["labels"].numel()
            assert len(micro["labels"]) == 1 or (len(micro["labels"]) <= pairs and cells <= tokens)
        assert done.labels == sum(b for _, b in rows)
        assert done.tokens == sum(a + b for a, b in rows[rank::2])
    assert cuts[0] == cuts[1]


def test_a_step_asks_the_device_nothing(folder):
    """A step must not read values from the device, because each read waits for all queued work.
    Padding must still be hidden."""
    _, _, step = prepared(folder)
    step()
    with torch.profiler.profile() as profile:
        step()
    asked = [event for event in profile.events() if event.name in ("aten::item", "aten::nonzero")]
    assert {event.cpu_parent and event.cpu_parent.name for event in asked} == {
        "aten::_fused_adamw_"  # only on the CPU, where it reads found_inf
    }

    generator, accelerator = load_generator(folder), accelerate.Accelerator(cpu=True)
    [micro] = work(generator.tokenizer).micro_batches
    with torch.no_grad():
        logits, labels = predict(accelerator, generator.model.eval(), micro)
        rows = PairEncoder(generator.tokenizer).tokens(*PAIRS)
        alone = [
            generator.model(torch.tensor([ids]), labels=torch.tensor([own])).logits[0]
            for ids, own in zip(*rows, strict=True)
        ]
    torch.testing.assert_close(logits, torch.cat(alone), rtol=0, atol=1e-5)
    assert labels.tolist() == [token for own in rows[1] for token in own]
    assert (micro["labels"] == IGNORED).any()


@pytest.mark.parametrize("compiler", [None, pytest.param("aot_eager", marks=pytest.mark.long)])
def test_the_output_layer_sees_label_tokens_alone(folder, compiler):
    """The output layer must see only label tokens, with the same loss as over all places.

    A second batch has another shape. A model that generates must still see every place.
    """
    load_generator.__globals__["_load"].cache_clear()
    generator, accelerator = load_generator(folder), accelerate.Accelerator(cpu=True)
    model = generator.model.eval()
    if compiler:
        model.compile(backend=compiler, dynamic=True)
    seen = []
    model.get_output_embeddings().register_forward_hook(
        lambda head, given, made: seen.append(tuple(made.shape[:-1]))
    )
    for pairs in PAIRS, [side[:2] for side in PAIRS]:
        micro = PairEncoder(generator.tokenizer)(*pairs)
        with torch.no_grad():
            found = token_losses(accelerator, model, micro, 0.1)
            names = ("input_ids", "attention_mask", "labels")
            logits = model(**{name: micro[name] for name in names}).logits
        whole = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), micro["labels"].flatten(), reduction="sum", label_smoothing=0.1
        )
        torch.testing.assert_close(found, whole, rtol=1e-5, atol=0)
        if not compiler:  # a compiled model traces hooks and no longer calls them
            count = int((micro["labels"] != IGNORED).sum())
            assert seen == [(count,), tuple(micro["labels"].shape)]
            assert count < micro["labels"].numel()
        seen.clear()


def test_a_frozen_encoder(folder):
    """With a learning rate of 0, the encoder must not change, nor the embeddings, which belong to
    it."""
    model, _, step = prepared(folder, encoder_learning_rate=0.0)
    before = {name: one.clone() for name, one in model.named_parameters()}
    step()
    changed = {name for name, one in model.named_parameters() if not one.equal(before[name])}
    assert changed
    assert all(name.startswith("model.decoder.") for name in changed)


def test_skipped_steps_of_deepspeed_are_counted(folder):
    """Steps that DeepSpeed skips must be counted: its backward takes the step, and only its engine
    knows of skips."""
    load_generator.__globals__["_load"].cache_clear()
    generator = load_generator(folder)
    engine = generator.model
    engine.skipped_steps = 3

    def backward(loss):
        engine.skipped_steps += 1

    accelerator = SimpleNamespace(
        distributed_type=DistributedType.DEEPSPEED,
        num_processes=1,
        gradient_accumulation_steps=1,
        device=torch.device("cpu"),
        backward=backward,
        unwrap_model=lambda model: model,
        no_sync=lambda model: nullcontext(),
    )
    batch = work(generator.tokenizer)
    assert train_step(accelerator, engine, None, batch, 0.1, 1.0).skipped == 1
    accelerator.backward = lambda loss: None
    assert train_step(accelerator, engine, None, batch, 0.1, 1.0).skipped == 0


LAYER = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}


def dropped(accelerator) -> float:
    """Returns the share of dropped layers that ``prepare`` leaves."""
    sizes = {f"{k}_{n}": v for k in ("encoder", "decoder") for n, v in LAYER.items()}
    config = M2M100Config(vocab_size=12, d_model=8, encoder_layerdrop=0.5, **sizes)
    model = M2M100ForConditionalGeneration(config)
    settings = SimpleNamespace(**SETTINGS, batch=Batch(pairs=2, micro_pairs=1))
    prepare(accelerator, model, make_optimizer(model, settings), settings)
    return model.get_encoder().layerdrop


def test_no_rank_drops_a_layer_that_another_keeps():
    assert on_two_ranks(dropped) == [0.0, 0.0]
    assert dropped(accelerate.Accelerator(cpu=True)) == 0.5


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
    """The third skipped step in a row must end the run, though two are of the interval before."""
    settings = SimpleNamespace(output=str(tmp_path), max_skipped_steps=2)
    log = RunLog(SimpleNamespace(is_main_process=True), settings, "", None)
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
    """Returns an encoder-decoder whose encoder has a pooler, which no decoder reads."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sides = [BertConfig(vocab_size=tokens, intermediate_size=16, **sizes) for _ in range(2)]
    config = EncoderDecoderConfig.from_encoder_decoder_configs(*sides)
    config.pad_token_id, config.eos_token_id, config.decoder_start_token_id = 0, 2, 2
    return EncoderDecoderModel(config)


SETTINGS = {"weight_decay": 0.01, "learning_rate": 0.01, "encoder_learning_rate": 1.0, "clip": 1.0}


def trained(accelerator, folder: str) -> tuple[list[str], list, torch.Tensor]:
    """Returns (names of frozen weights, weights after three steps, a buffer that differs by
    rank)."""
    tokenizer = load_generator(folder).tokenizer
    network = bert_to_bert(len(tokenizer)).eval()
    settings = SimpleNamespace(**SETTINGS, batch=Batch(pairs=2, micro_pairs=1))
    frozen = freeze_unused(network)
    optimizer = make_optimizer(network, settings)
    network.encoder.register_buffer("rank", torch.tensor(0))
    model, optimizer = prepare(accelerator, network, optimizer, settings)
    network.encoder.rank.fill_(accelerator.process_index)
    own = slice(accelerator.process_index, None, accelerator.num_processes)
    batch = work(tokenizer, own)
    for _ in range(3):
        train_step(accelerator, model, optimizer, batch, 0.1, 1.0)
    return frozen, [one.numpy() for one in weights(network)], network.encoder.rank.item()


def test_unused_weights_and_buffers_on_two_ranks(folder):
    """Unused weights must be frozen: without a gradient, they would end data-parallel training at
    the second step."""
    first, second = on_two_ranks(trained, folder)
    frozen, alone, _ = trained(accelerate.Accelerator(cpu=True), folder)
    assert frozen == first[0] == ["encoder.pooler.dense.weight", "encoder.pooler.dense.bias"]
    assert (first[2], second[2]) == (0, 1)  # buffers are not sent to other ranks
    for a, b, c in zip(alone, first[1], second[1], strict=True):
        assert (b == c).all()
        assert a == pytest.approx(b, abs=1e-5)
