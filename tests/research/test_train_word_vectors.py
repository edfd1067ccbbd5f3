import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gaixie.research.train_word_vectors import main
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.weem4pg import WEEM4PG
from gaixie.udfs.metrics.word_vectors import load

JOB = Path(__file__).parents[2] / "research" / "train_word_vectors.py"
SMALL = ["--vector-size", "16", "--min-count", "2", "--epochs", "3"]


def sentences(count=300):
    """Returns sentences of two topics that share no noun."""
    choose = random.Random(0).choice
    topics = [("老师", "学生", "学校", "课本"), ("厨师", "米饭", "饭店", "蔬菜")]
    made = []
    for k in range(count):
        one, other = (choose(topics[k % 2]) for _ in range(2))
        made.append(f"{one}和{other}都很好。")
    return made


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.parquet"
    pq.write_table(pa.table({"text": [*sentences(), None, ""], "n": range(302)}), path)
    return path


def train(*arguments):
    return main([str(argument) for argument in arguments])


def test_folder(tmp_path, corpus, capsys):
    output = tmp_path / "models" / "vectors"
    assert train("--input", corpus, "--output", output, *SMALL) == 0
    assert "16 dimensions, from 300 sentences" in capsys.readouterr().out
    assert sorted(path.name for path in output.iterdir()) == ["manifest.json", "vectors.bin"]
    assert [path.name for path in output.parent.iterdir()] == ["vectors"]
    manifest = json.loads((output / "manifest.json").read_text("utf-8"))
    assert manifest["sentences"] == 300
    # 老师 和 学生 都 很 好 。
    assert manifest["running_words"] == 300 * 7
    assert manifest["segmenter"].startswith("jieba-rjieba-")
    assert manifest["settings"]["vector_size"] == 16
    index, matrix = load(output)
    assert manifest["vocabulary"] == len(index) == 8 + 5
    assert matrix.shape == (13, 16)
    assert list(index)[-1] in "老师学生学校课本厨师米饭饭店蔬菜"  # the rarest words come last
    score = WEEM4PG(str(output)).sentence_scores(Pairs.of(["老师好"], ["学生好"]))[0]
    assert 0 < score < 1


def test_same_bytes_under_another_hash_seed(tmp_path, corpus):
    """Two processes must write the same bytes, whatever the order of Python's sets of strings."""
    written = []
    for seed in ("0", "1"):
        output = tmp_path / seed
        command = [sys.executable, JOB, "--input", corpus, "--output", output, *SMALL]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run(command, env=environment, check=True, capture_output=True)
        written.append((output / "vectors.bin").read_bytes())
    assert written[0] == written[1]
    assert train("--input", corpus, "--output", tmp_path / "2", *SMALL, "--seed", "7") == 0
    assert (tmp_path / "2" / "vectors.bin").read_bytes() != written[0]


def test_every_format_gives_the_same(tmp_path, corpus):
    text, lines = tmp_path / "corpus.txt", tmp_path / "corpus.jsonl"
    text.write_text("\n".join(sentences()) + "\n\n", encoding="utf-8")
    rows = [json.dumps({"s": sentence}) for sentence in sentences()]
    lines.write_text("\n".join([*rows, '{"s": null}']) + "\n")
    written = []
    for number, given in enumerate((corpus, text, f"{lines}:s")):
        output = tmp_path / str(number)
        assert train("--input", given, "--output", output, *SMALL) == 0
        written.append((output / "vectors.bin").read_bytes())
    assert written[0] == written[1] == written[2]


def test_limit_and_overwrite(tmp_path, corpus, refused):
    output = tmp_path / "v"
    command = ["--input", corpus, "--output", output, *SMALL]
    assert train(*command) == 0
    refused(main, command, f"{output}: exists and is not empty; --overwrite replaces it")
    options = ["--overwrite", "--vector-size", "8", "--limit", "50", "--workers", "2"]
    assert train(*command, *options) == 0
    assert load(output).matrix.shape[1] == 8
    assert json.loads((output / "manifest.json").read_text("utf-8"))["sentences"] == 50
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.txt", None, "{path}: no such file"),
        ("a.txt", b"\n \n", "{path}: no sentences, expected at least one"),
        ("a.txt", "好\n".encode("gb18030"), "{path}, line 1: not UTF-8 (invalid start byte)"),
        ("a.txt", "好\n".encode(), "{path}: no word occurs 2 times; lower --min-count"),
    ],
)
def test_bad_input(tmp_path, refused, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    line = ["--input", path, "--output", tmp_path / "v", *SMALL]
    refused(main, line, message.format(path=path))
    assert not (tmp_path / "v").exists()
