"""Training from a file of drawn examples: the table, the loss, the schedule, the result."""

import dataclasses
import json
import lzma
import time
from random import Random

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_pair_encoder import CHARACTERS, tiny_pair_bert
from transformers import AutoTokenizer

from gaixie.research import train_pair_encoder
from gaixie.research.pair_encoder import drawn, table_training, training
from gaixie.research.pair_encoder.examples import ranked
from gaixie.research.pair_encoder.parts import read_parts, write_parts
from gaixie.research.pair_encoder.sets import Example, Sets
from gaixie.research.pair_encoder.tables import UNKNOWN, Table, table_of
from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder

CPU = torch.device("cpu")
SAME = TASKS.index("same")


def draw(random: Random) -> Example:
    """Draws pairs whose paraphrase begins with 好 if it says the same, else with 北, marked wrong."""
    text = "".join(random.choices(CHARACTERS[:12], k=random.randint(3, 9)))
    better = Example(text, f"好{text}", {"same": 1.0}, [])
    worse = Example(text, f"北{text}", {"same": 0.0}, [(0, 1)])
    return random.choice((better, worse, ranked(better, worse), Example(text, text, {"human": 1})))


def lines(count: int) -> list[str]:
    random = Random(0)
    kinds = random.choices(["rated", "others", "kept rated"], [6, 3, 1], k=count)
    return [drawn._line(kind, draw(random)) for kind in kinds]


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> str:
    return tiny_pair_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def table(bert) -> Table:
    return table_of(lines(600), bert)


def test_the_loss_is_that_of_training_without_a_table(bert, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    random = Random(1)
    batch = [draw(random) for _ in range(40)]
    table = table_of([drawn._line("rated", own) for own in batch], bert)
    assert (table.worse == UNKNOWN).sum() == sum(own.worse is None for own in batch)
    tokenizer = AutoTokenizer.from_pretrained(bert).backend_tokenizer
    model = training.PairNetwork(bert).eval()
    expected = training._learn(model, torch.optim.SGD(model.parameters(), lr=0), tokenizer, batch)
    data = table_training.DeviceTable(table, CPU)
    quick = training.PairNetwork(bert, "sdpa").eval()
    quick.load_state_dict(model.state_dict())
    loss, _ = data.loss(quick, table_training._batch(table, np.arange(40)))
    assert loss.item() == pytest.approx(expected, abs=1e-5)


def test_the_marks_and_targets_are_those_of_the_examples(bert):
    better = Example("今天", "好今天", {"same": 1.0}, [])
    own = ranked(better, Example("今天", "北今天", {"fluent": 0.0}, [(0, 1)]), "fluent")
    table = table_of(
        [drawn._line("rated", own), drawn._line("rated", Example("今", "天", {}))], bert
    )
    assert table.worse.tolist() == [2, UNKNOWN]
    assert table.ranks[0] == TASKS.index("fluent")
    start = table.starts[2] + table.seconds[2]
    assert table.marks[start : start + 4].tolist() == [1, 0, 0, UNKNOWN]
    unread = slice(table.starts[1], table.starts[1] + table.lengths[1])
    assert (table.marks[unread] == UNKNOWN).all()
    assert table.targets[0, SAME] == 1
    assert np.isnan(table.targets[2, SAME])


def test_batches_pass_over_what_is_learned_and_thin_it(table):
    learned = np.flatnonzero(table.kinds != "kept rated")
    run = table_training.Run(1e-3, 20, 1, thinned=[("rated", 0.0)])
    batches = table_training._batches(table, learned, run)
    others = np.flatnonzero(table.kinds == "others")
    taken = [next(batches) for _ in range(len(others) // 20)]
    rows = {row for own in taken for row in own.rows[: own.examples]}
    assert rows <= {*table.better[others]}
    assert len(rows) == 20 * len(taken)
    with pytest.raises(ValueError, match="no examples of the kind nothing"):
        next(table_training._batches(table, learned, run._replace(thinned=[("nothing", 1.0)])))


def test_a_file_is_learned_from_and_what_is_exported_tells(bert, tmp_path, capsys):
    with lzma.open(tmp_path / "drawn.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(lines(600))
    options = ["--steps", "300", "--batch", "16", "--rate", "3e-3", "--dropout", "0"]
    parts = tmp_path / "parts"
    arguments = [str(tmp_path / "drawn.jsonl.xz"), "--bert", bert, "--output", str(parts)]
    assert train_pair_encoder.main([*arguments, *options]) == 0
    said = capsys.readouterr().err
    assert "100% kept rated: loss 0." in said
    assert "300 steps, 4,800 examples" in said
    model = training.PairNetwork(bert).eval()
    assert read_parts(model, parts) == 4_800
    training.export(model, bert, tmp_path / "own", {})
    texts = ["今天天气", "很好我们"]
    others = [f"好{texts[0]}", f"北{texts[1]}"]
    found, doubts = PairEncoder.load(tmp_path / "own", threads=1).read(texts, others)
    assert found[0, SAME] > 0.7 > 0.3 > found[1, SAME]
    assert int(np.argmax(doubts[1])) == 0


def test_the_time_that_is_given_is_kept(bert, table):
    run = table_training.Run(1e-3, 16, seconds=2.0)
    started = time.monotonic()
    table_training.train_from(table, training.PairNetwork(bert, "sdpa"), CPU, run)
    assert 2.0 <= time.monotonic() - started < 6.0
    shares = [table_training._share(own) for own in (0.0, 0.015, 0.03, 0.5, 1.0)]
    assert shares == pytest.approx([0, 0.5, 1, 0.5, 0.02], abs=0.01)


@pytest.mark.parametrize("fault", [None, RuntimeError("no compiler"), "slow"])
def test_layers_are_compiled_where_that_works(bert, table, monkeypatch, capsys, fault):
    monkeypatch.setattr(table_training, "BACKEND", "eager")
    monkeypatch.setattr(table_training, "TRIED", 3)
    monkeypatch.setattr(table_training, "PATIENCE", 60 if fault != "slow" else 1)

    def fail(*_, **__):
        if fault == "slow":
            time.sleep(10)
        raise fault

    if fault:
        monkeypatch.setattr(torch.nn.Module, "compile", fail)
    run = table_training.Run(1e-3, 16, 20, compiled=True)
    started = time.monotonic()
    model = training.PairNetwork(bert, "sdpa")
    trained, _ = table_training.train_from(table, model, CPU, run)
    assert time.monotonic() - started < 60
    assert all(own.isfinite().all() for own in trained.parameters())
    said = capsys.readouterr().err
    assert ("not compiled" in said) == bool(fault)
    assert "20 steps, 320 examples" in said


def test_parts_come_back_over_the_start_or_say_what_is_wrong(bert, tmp_path, monkeypatch):
    monkeypatch.setattr("gaixie.research.pair_encoder.parts.PART", 4_000)
    model = training.PairNetwork(bert)
    torch.nn.init.normal_(model.outer.weight)
    write_parts(model, 12, tmp_path)
    assert len([*tmp_path.iterdir()]) > 2
    back = training.PairNetwork(bert)
    assert read_parts(back, tmp_path) == 12
    for name, own in model.state_dict().items():
        torch.testing.assert_close(back.state_dict()[name], own, atol=0, rtol=1 / 256)
    (tmp_path / "part-1.bin").unlink()
    with pytest.raises(ValueError, match="damaged, or a part is missing"):
        read_parts(back, tmp_path)
    with pytest.raises(FileNotFoundError):
        read_parts(back, tmp_path / "none")


def test_what_is_drawn_is_complete_and_the_kept_ones_are_of_the_heads(tmp_path):
    texts = ["李娜在2019年没有赢得比赛。", "李娜二〇一九年没赢比赛。", "警方表示，有三名游客受伤。"]
    groups = [{"group": 1, "texts": texts}, {"group": 2, "texts": [f"说，{own}" for own in texts]}]
    kinds = ("negation", "roles", "fact", "scope", "salad")
    rated = {"source": "甲乙丙丁", "paraphrase": "丁丙乙甲", "part": "encoder", "kind": "wmt"}
    rated |= {"structure": 5, "synonyms": 5, "meaning": 1.5, "fluency": 4.75, "overall": 1}
    sets = Sets(
        versions=[texts, texts[::-1]],
        written=groups[:1],
        kept_written=groups[1:],
        broken={k: {"group": k, **dict.fromkeys(kinds, "坏的句子。")} for k in (1, 2)},
        rated=pd.DataFrame([rated, rated | {"part": "heads", "source": "不可以学"}]),
        exchanged=[{"source": "甲借给乙", "same": ["乙向甲借"], "wrong": ["乙借给甲"]}],
        rewritten=[{"source": "雨大路封", "same": ["路因雨封"], "wrong": ["路虽封无雨"]}],
        premises=[
            {"premise": "雨很大", "entailed": ["下雨"], "neutral": ["冷"], "contradicted": ["晴"]}
        ],
        judged=[Example("一", "二", {"question": 1.0})],
        grammar=[("对的句子。", 1)],
    )
    counts = drawn.write_drawn(sets, 400, 5, tmp_path / "drawn.jsonl.xz")
    with lzma.open(tmp_path / "drawn.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == counts.total() == 404
    assert counts["kept rated"] == counts["kept written"] == 2
    kept = {row["source"] for row in rows if row["kind"].startswith("kept")}
    assert "不可以学" in kept
    assert not kept & {row["source"] for row in rows if not row["kind"].startswith("kept")}
    for row in rows:
        own = Example(row["source"], row["paraphrase"], row["targets"])
        assert dataclasses.asdict(own)["targets"]
        assert ("rank" in row) == ("worse" in row)
    assert sum("worse" in row for row in rows) > 80
