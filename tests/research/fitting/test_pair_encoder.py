"""Training the pair encoder: examples, and a loop that learns, saves itself and goes on."""

import json
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_models import CHARACTERS, tiny_bert  # noqa: E402

from gaixie.research.fitting import encoder_examples, pair_encoder  # noqa: E402
from gaixie.research.fitting.encoder_examples import EncoderConfig, Example, Phase, Reader  # noqa: E402
from gaixie.udfs.storage.settings import load_settings  # noqa: E402
from gaixie.udfs.text.segmenters import load_segmenter  # noqa: E402

PHASE = {"learning_rate": 1e-3, "batch_tokens": 128}


def tag(text):
    return load_segmenter().tag([text])[0]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return pair_encoder.new_network(tiny_bert(tmp_path_factory.mktemp("bert"), layers=1))


def fresh(network):
    import copy
    from dataclasses import replace

    return replace(network, network=copy.deepcopy(network.network))


@pytest.fixture
def examples():
    rng = random.Random(0)
    texts = ["".join(rng.choices(CHARACTERS[:12], k=4)) for _ in range(40)]
    return [
        *(Example(text, f"好{text}", {"natural": 1.0}, []) for text in texts),
        *(Example(text, f"北{text}", {"natural": 0.0}, [(0, 1)]) for text in texts),
    ]


def test_it_learns(network, examples, tmp_path):
    phase = Phase(epochs=20, learning_rate=1e-2, batch_tokens=128)
    model = fresh(network)
    task = pair_encoder.TASKS.index("natural")
    pairs = [(example.source, example.paraphrase) for example in examples]
    pair_encoder.train(model, [examples] * 20, phase, 0, tmp_path / "phase.pt")
    predicted = pair_encoder.predict(model, pairs)[:, task]
    assert predicted[:40].mean() > predicted[40:].mean() + 0.5


def test_a_phase_that_was_stopped_goes_on(network, examples, tmp_path, monkeypatch):
    phase = Phase(epochs=2, **PHASE)
    whole = fresh(network)
    pair_encoder.train(whole, [examples] * 2, phase, 0, tmp_path / "whole.pt")

    class Stopped(Exception):
        pass

    save, calls = pair_encoder._save, []

    def save_and_stop(*arguments):
        save(*arguments)
        calls.append(arguments[-2])
        if len(calls) == 3:
            raise Stopped

    monkeypatch.setattr(pair_encoder, "SAVE_EVERY", 0)
    monkeypatch.setattr(pair_encoder, "_save", save_and_stop)
    part = fresh(network)
    with pytest.raises(Stopped):
        pair_encoder.train(part, [examples] * 2, phase, 0, tmp_path / "part.pt")
    monkeypatch.setattr(pair_encoder, "_save", save)
    resumed = fresh(network)
    pair_encoder.train(resumed, [examples] * 2, phase, 0, tmp_path / "part.pt")
    for name, weight in whole.network.state_dict().items():
        # Dropout in the head draws other numbers after a stop: close, not equal.
        torch.testing.assert_close(resumed.network.state_dict()[name], weight, atol=0.05, rtol=0.5)


def test_differences_mark_what_is_wrong():
    assert encoder_examples.differences("今天很好", "今天不好") == [(2, 3)]
    assert encoder_examples.differences("今天很好", "今天好") == [(2, 3)]
    assert encoder_examples.differences("今天", "今天") == []


def test_sets_become_examples(tmp_path):
    (tmp_path / "pairs.tsv").write_text(
        "甲是一个人\t甲是个人\t1\n乙不在这里\t乙在那里\t0\n空\t的\t\n"
    )
    (tmp_path / "grammar.tsv").write_text("1\t他去了了学校。\t1\tX\n")
    (tmp_path / "corrections.tsv").write_text("1\t我昨天去学校了了\t我昨天去学校了\n")
    rows = [
        {"segment": 1, "document": "d", "text": text, "score": score, "spans": spans}
        for text, score, spans in (
            ("译文甲很好", 90, []),
            ("译文乙不好", 20, [{"start_i": 3, "end_i": 5, "severity": "major"}]),
        )
    ]
    (tmp_path / "esa.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = EncoderConfig(
        encoder="none",
        sets=[{"path": "pairs.tsv", "task": "same", "both_ways": True}],
        grammar="grammar.tsv",
        corrections="corrections.tsv",
        esa="esa.jsonl",
        esa_held_out=0,
        first=PHASE,
        second=PHASE,
    )
    examples = Reader(config, tmp_path, {"乙在那里"}, tag).examples()
    pairs = {(example.source, example.paraphrase): example for example in examples}
    assert pairs["甲是个人", "甲是一个人"].targets == {"same": 1.0}
    assert not any("乙在那里" in pair for pair in pairs)  # a sentence that is rated
    assert pairs["", "他去了了学校。"].targets == {"correct": 0.0}
    assert pairs["我昨天去学校了", "我昨天去学校了了"].spans
    wrong = pairs["译文甲很好", "译文乙不好"]
    assert (wrong.targets, wrong.spans) == ({"quality": 0.2}, [(3, 5)])


def test_the_shipped_settings_load():
    from pathlib import Path

    config = load_settings(EncoderConfig, Path(__file__).parents[3] / "conf/pair_encoder.yaml")
    assert config.second.epochs >= 1


def test_wrong_settings_name_the_file(tmp_path):
    (tmp_path / "wrong.yaml").write_text("encoder: a\nfirst: {learning_rate: 0}")
    with pytest.raises(ValueError, match=r"wrong\.yaml"):
        load_settings(EncoderConfig, tmp_path / "wrong.yaml")


def test_another_model_than_bert_is_refused(tmp_path):
    from tiny_models import tiny_bart

    with pytest.raises(ValueError, match="a model of type bart, expected bert"):
        pair_encoder.new_network(tiny_bart(tmp_path / "bart"))


def test_from_ratings_to_a_model_of_tier_full(tmp_path, capsys):
    """The whole command on a tiny encoder; the second call finds every network trained."""
    import numpy as np
    import pandas as pd
    import yaml

    from gaixie.research import fit_spscore
    from gaixie.udfs.spscore import SPScore

    rng = np.random.default_rng(0)
    rows = []
    for group in range(40):
        source = "".join(rng.choice(list("他昨天在北京买了三本好书我们今天去看"), 16))
        for _ in range(2):
            order = rng.permutation(16)
            ratings = dict.fromkeys(("structure", "synonyms", "meaning", "fluency"), order[0] / 4)
            text = "".join(source[k] for k in order)
            row = {"source": source, "paraphrase": text, "overall": order[0] / 4, "group": group}
            rows.append(row | ratings | {"kind": "mcts", "origin": "human"})
    pd.DataFrame(rows).to_csv(tmp_path / "ratings.csv", index=False)
    (tmp_path / "pairs.tsv").write_text("他在北京\t他今天在北京\t1\n我们去看书\t他买书\t0\n" * 4)
    settings = {
        "encoder": tiny_bert(tmp_path / "bert", layers=1),
        "sets": [{"path": str(tmp_path / "pairs.tsv"), "task": "same"}],
        "first": PHASE,
        "second": PHASE | {"negatives_per_pair": 0.2},
    }
    (tmp_path / "encoder.yaml").write_text(yaml.safe_dump(settings))
    line = [
        "--input",
        str(tmp_path / "ratings.csv"),
        "--tier",
        "full",
        "--folds",
        "2",
        "--seeds",
        "1",
    ]
    line += ["--encoder-config", str(tmp_path / "encoder.yaml"), "--output", str(tmp_path / "out")]
    assert fit_spscore.main(line) == 0
    model = SPScore.load(tmp_path / "out/full")
    source, paraphrase = "他昨天在北京买了三本好书", "三本好书是他昨天在北京买的"
    judged = model.judge([source], [paraphrase])
    assert judged.notna().all(axis=None)
    assert model.core == str(
        tmp_path / "out/full/core"
    )  # fitted to these ratings, not the shipped one
    card = (tmp_path / "out/full/card.md").read_text(encoding="utf-8")
    assert "trained on 8 examples of other sets" in card
    capsys.readouterr()

    assert fit_spscore.main(line) == 0
    assert " step " not in capsys.readouterr().err
    pd.testing.assert_frame_equal(
        SPScore.load(tmp_path / "out/full").judge([source], [paraphrase]), judged
    )
