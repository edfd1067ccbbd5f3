"""The loop that trains the pair encoder: it learns, saves itself and goes on."""

from random import Random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_pair_encoder import CHARACTERS, tiny_pair_bert  # noqa: E402

from gaixie.research.pair_encoder import training  # noqa: E402
from gaixie.research.pair_encoder.examples import Example  # noqa: E402
from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder  # noqa: E402


class Drawn:
    """Pairs that say the same begin with 好, the others with 北, which is wrong there."""

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
    monkeypatch.setattr(training, "LEARNING_RATE", 3e-3)


def test_it_learns_and_what_is_exported_tells(tmp_path):
    bert = tiny_pair_bert(tmp_path / "bert")
    model = training.train(Drawn(), bert, tmp_path / "work", 200, 0)
    training.export(model, bert, tmp_path / "own", {})
    texts = ["今天天气", "很好我们"]
    others = [f"好{texts[0]}", f"北{texts[1]}"]
    found, doubts = PairEncoder.load(tmp_path / "own", threads=1).read(texts, others)
    same = found[:, TASKS.index("same")]
    assert same[0] > 0.7 > 0.3 > same[1]
    assert int(np.argmax(doubts[1])) == 0


def test_a_training_that_was_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    bert = tiny_pair_bert(tmp_path / "bert")
    whole = training.train(Drawn(), bert, tmp_path / "whole", 10, 0)
    learn, calls = training._learn, []

    def learn_and_stop(*arguments):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return learn(*arguments)

    monkeypatch.setattr(training, "_learn", learn_and_stop)
    with pytest.raises(KeyboardInterrupt):
        training.train(Drawn(), bert, tmp_path / "part", 10, 0)
    monkeypatch.setattr(training, "_learn", learn)
    resumed = training.train(Drawn(), bert, tmp_path / "part", 10, 0)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=0, rtol=0)
