"""The loop that trains the pair encoder must learn, save itself and resume."""

from random import Random

import numpy as np
import pytest
import torch
from tiny_pair_encoder import CHARACTERS, tiny_pair_bert

from gaixie.research.pair_encoder import training
from gaixie.research.pair_encoder.examples import ranked
from gaixie.research.pair_encoder.exported import restore, variables
from gaixie.research.pair_encoder.sets import Example
from gaixie.udfs.meaning.pair_encoder import ENCODER, SHIPPED, TASKS, PairEncoder


class Drawn:
    """Draws pairs whose paraphrase begins with 好 if it says the same, else with 北, marked wrong."""

    def __init__(self):
        self.random = Random(0)
        self.breaker = self

    def draw(self) -> Example:
        text = "".join(self.random.choices(CHARACTERS[:12], k=4))
        if self.random.random() < 0.5:
            return Example(text, f"好{text}", {"same": 1.0}, [])
        return Example(text, f"北{text}", {"same": 0.0}, [(0, 1)])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {"BATCH": 16, "BLOCK": 5, "SAVED_STEPS": 5, "WARMUP": 5}.items():
        monkeypatch.setattr(training, name, value)


def test_it_learns_and_what_is_exported_tells(tmp_path):
    bert = tiny_pair_bert(tmp_path / "bert")
    model = training.train(Drawn(), bert, tmp_path / "work", 200, 3e-3, 0, 0)
    training.export(model, bert, tmp_path / "own", {})
    texts = ["今天天气", "很好我们"]
    others = [f"好{texts[0]}", f"北{texts[1]}"]
    found, doubts = PairEncoder.load(tmp_path / "own", threads=1).read(texts, others)
    same = found[:, TASKS.index("same")]
    assert same[0] > 0.7 > 0.3 > same[1]
    assert int(np.argmax(doubts[1])) == 0


def test_a_training_that_was_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    bert = tiny_pair_bert(tmp_path / "bert")
    whole = training.train(Drawn(), bert, tmp_path / "whole", 10, 3e-3, 0, 0)
    learn, calls = training._learn, []

    def learn_and_stop(*arguments):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return learn(*arguments)

    monkeypatch.setattr(training, "_learn", learn_and_stop)
    with pytest.raises(KeyboardInterrupt):
        training.train(Drawn(), bert, tmp_path / "part", 10, 3e-3, 0, 0)
    monkeypatch.setattr(training, "_learn", learn)
    resumed = training.train(Drawn(), bert, tmp_path / "part", 10, 3e-3, 0, 0)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=0, rtol=0)


def test_weights_that_ship_have_seven_bits():
    """Shipped weights must have seven bits, so that two products with uint8 fit 16 bits:
    2 * 255 * 63 < 2 ** 15."""
    path = SHIPPED / ENCODER
    found = variables(bytearray(path.read_bytes()), path)
    weights = [own for name, own in found.items() if "/linear_" in name and own.dtype == np.int8]
    assert len(weights) == 48
    assert max(int(np.abs(own).max()) for own in weights) == 63


def test_what_was_exported_comes_back_but_for_its_rounding(tmp_path):
    """Exported weights must come back within their rounding: a row is int8 * its greatest value /
    127, and rounded again to / 63 if the matrix multiplies."""
    bert = tiny_pair_bert(tmp_path / "bert")
    model = training.train(Drawn(), bert, tmp_path / "work", 20, 3e-3, 0, 0)
    training.export(model, bert, tmp_path / "own", {})
    restore(tmp_path / "own", tmp_path / "back")
    back = training.PairNetwork(str(tmp_path / "back")).state_dict()
    for name, own in model.state_dict().items():
        if own.ndim == 2 and name.startswith("bert.") and "position" not in name:
            most = own.abs().amax(1, keepdim=True)
            error = most / 127 / 2 + (0 if "embeddings" in name else most / 63 / 2)
            assert ((back[name] - own).abs() <= error + 1e-6).all(), name
        else:
            torch.testing.assert_close(back[name], own, atol=2e-3, rtol=1e-3)


class Ranked(Drawn):
    """Draws pairs whose targets are equal; only their rank tells them apart."""

    def draw(self) -> Example:
        text = "".join(self.random.choices(CHARACTERS[:12], k=4))
        better, worse = (Example(text, f"{one}{text}", {"fluent": 1.0}) for one in "好北")
        return ranked(better, worse)


def test_a_rank_alone_is_learned(tmp_path):
    bert = tiny_pair_bert(tmp_path / "bert")
    model = training.train(Ranked(), bert, tmp_path / "work", 200, 3e-3, 0, 0)
    training.export(model, bert, tmp_path / "own", {})
    texts = ["今天天气", "很好我们"]
    encoder = PairEncoder.load(tmp_path / "own", threads=1)
    better, worse = (
        encoder.predict(texts, [one + text for text in texts])[:, TASKS.index("same")]
        for one in "好北"
    )
    assert (better > 5 * worse).all()


def test_frozen_layers_stay(tmp_path):
    bert = tiny_pair_bert(tmp_path / "bert")
    before = training.PairNetwork(bert).state_dict()
    model = training.train(Drawn(), bert, tmp_path / "work", 5, 3e-3, 1, 0)
    for name, own in model.bert.state_dict().items():
        assert torch.equal(own, before[f"bert.{name}"])
    assert not torch.equal(model.outer.weight, before["outer.weight"])
