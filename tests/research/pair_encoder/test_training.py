"""The pair encoder: the file of drawn examples, what it learns, its export."""

import json
import lzma
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tiny_models import CHARACTERS, tiny_bert

from gaixie.research.make_pair_encoder import main
from gaixie.research.pair_encoder import training
from gaixie.research.pair_encoder.examples import line_of, ranked
from gaixie.research.pair_encoder.network import variables
from gaixie.research.pair_encoder.sets import Example
from gaixie.research.pair_encoder.training import UNKNOWN, Table, table_of
from gaixie.udfs.meaning.pair_encoder import ENCODER, HEAD, SHIPPED, TASKS, PairEncoder

SAME = TASKS.index("same")


def draw(random: Random) -> Example:
    """Draws pairs whose paraphrase begins with 好 if it says the same, else with 北, marked wrong."""
    text = "".join(random.choices(CHARACTERS[:12], k=random.randint(3, 9)))
    better = Example(text, f"好{text}", {"same": 1.0}, [])
    worse = Example(text, f"北{text}", {"same": 0.0}, [(0, 1)])
    return random.choice((better, worse, ranked(better, worse), Example(text, text, {"human": 1})))


def lines(count: int) -> list[str]:
    random = Random(0)
    return [line_of("rated", draw(random)) for _ in range(count)]


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    return Path(tiny_bert(tmp_path_factory.mktemp("bert"), 1, positions=512))


@pytest.fixture(scope="module")
def table(bert) -> Table:
    return table_of(lines(600), str(bert))


def test_the_marks_and_targets_are_those_of_the_examples(bert):
    better = Example("今天", "好今天", {"same": 1.0}, [])
    first = ranked(better, Example("今天", "北今天", {"fluent": 0.0}, [(0, 1)]), "fluent")
    examples = [line_of("rated", first), line_of("rated", Example("今", "天", {}))]
    table = table_of(examples, str(bert))
    assert table.worse.tolist() == [2, UNKNOWN]
    assert table.ranks[0] == TASKS.index("fluent")
    start = table.starts[2] + table.seconds[2]
    assert table.marks[start : start + 4].tolist() == [1, 0, 0, UNKNOWN]
    unread = slice(table.starts[1], table.starts[1] + table.lengths[1])
    assert (table.marks[unread] == UNKNOWN).all()
    assert table.targets[0, SAME] == 1
    assert np.isnan(table.targets[2, SAME])


def test_a_pass_takes_each_example_once_at_most(table):
    batches = training.batches_of(table, 20, 1)
    taken = [next(batches) for _ in range(len(table.better) // 20)]
    rows = [row for batch in taken for row in batch.rows[: batch.examples].tolist()]
    assert len(set(rows)) == len(rows) == 20 * len(taken)


def interrupted(batches, count: int):
    """Returns batches_of that is interrupted behind so many batches."""

    def stopping(*given):
        yield from islice(batches(*given), count)
        raise KeyboardInterrupt

    return stopping


def test_a_file_is_learned_from_and_what_is_exported_tells(bert, tmp_path, capsys, monkeypatch):
    with lzma.open(tmp_path / "drawn.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(lines(600))
    options = ["--steps", "200", "--batch", "16", "--rate", "3e-3", "--dropout", "0"]
    places = ["--start", str(bert), "--output", str(tmp_path / "trained")]
    file = [str(tmp_path / "drawn.jsonl.xz")]
    assert main(["train", *file, *places, *options]) == 0
    assert "200 steps, 3,200 examples" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(training, "batches_of", interrupted(training.batches_of, 150))
        assert main(["train", *file, *places[:3], str(tmp_path / "killed"), *options]) == 130
    other = ["--seed", "6"]
    assert main(["train", *file, *places[:3], str(tmp_path / "killed"), *options, *other]) == 2
    assert main(["train", *file, *places[:3], str(tmp_path / "killed"), *options]) == 0
    assert "goes on after step 101" in capsys.readouterr().err
    heads, again = (np.load(tmp_path / name / HEAD) for name in ("trained", "killed"))
    for name in heads.files:
        np.testing.assert_array_equal(again[name], heads[name])
    assert main(["export", str(tmp_path / "trained"), "--output", str(tmp_path / "own")]) == 0
    summary = json.loads((tmp_path / "own/pair_encoder.json").read_text("utf-8"))["summary"]
    assert summary == {"encoder": bert.name, "examples": 3_200}
    texts = ["今天天气", "很好我们"]
    others = [f"好{texts[0]}", f"北{texts[1]}"]
    found = PairEncoder.load(tmp_path / "own", threads=1).predict(texts, others)
    assert found[0, SAME] > 0.7 > 0.3 > found[1, SAME]
    restored = str(tmp_path / "restored")
    assert main(["start", str(tmp_path), str(tmp_path / "own"), "--output", restored]) == 0
    assert main(["export", restored, "--output", str(tmp_path / "twice")]) == 0
    again = PairEncoder.load(tmp_path / "twice", threads=1).predict(texts, others)
    np.testing.assert_allclose(again, found, atol=0.03)


def test_weights_that_ship_have_seven_bits():
    """Shipped weights must have seven bits, so that two products with uint8 fit 16 bits:
    2 * 255 * 63 < 2 ** 15."""
    path = SHIPPED / ENCODER
    found = variables(bytearray(path.read_bytes()), path)
    weights = [own for name, own in found.items() if "/linear_" in name and own.dtype == np.int8]
    assert len(weights) == 48
    assert max(int(np.abs(own).max()) for own in weights) == 63
