"""jobs/build_vocabulary.py must count and cut in Spark as the plain definition does."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain_vocabulary import select

from gaixie.jobs.build_vocabulary import main
from gaixie.udfs.command_line import UserError
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.parts_of_speech import class_of
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

GOLD = """\
19980101-01-001-001/m  他/r  在/p  北京/ns  跑/v  ，/w  跑/v  得/u  快/a
[中央/n  电视台/n]nt  的/u  记者/n  李/nr  明/nr  跑/vn  了/u
快/d  跑/v  。/w
"""


def read(folder: Path) -> list[tuple[str, str, int]]:
    head, *lines = (folder / "vocabulary.tsv").read_text("utf-8").splitlines()
    assert head == "word\tclass\tcount"
    rows = [line.split("\t") for line in lines]
    return [(word, name, int(count)) for word, name, count in rows]


@pytest.fixture(scope="module")
def texts(examples) -> list[str]:
    return [*examples["source"], *examples["paraphrase"]]


@pytest.fixture(scope="module")
def corpus(texts, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    half = len(texts) // 2
    for number, part in enumerate((texts[:half], texts[half:])):
        table = pa.table({"id": range(len(part)), "text": part})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=100)
    return folder


def plain_counts(texts) -> dict[str, Counter]:
    counts: dict[str, Counter] = defaultdict(Counter)
    for row in JiebaSegmenter().tag([normalise(text) for text in texts]):
        for word, tag in row:
            if not word.isspace():
                counts[word][class_of(tag, "jieba")] += 1
    return counts


def test_the_vocabulary_of_the_definition(spark, texts, corpus, tmp_path, capsys):
    assert main(["--input", str(corpus), "--output", str(tmp_path / "v")]) == 0
    assert read(tmp_path / "v") == select(plain_counts(texts))
    counts = pq.read_table(tmp_path / "v" / "counts.parquet").to_pandas()
    assert counts.set_index("word")["count"].to_dict() == {
        word: sum(of.values()) for word, of in plain_counts(texts).items()
    }
    table = (tmp_path / "v" / "table.txt").read_text("utf-8")
    assert table.strip() in capsys.readouterr().out
    manifest = json.loads((tmp_path / "v" / "manifest.json").read_text("utf-8"))
    assert manifest["tag_set"] == "jieba"
    assert manifest["segmenter"] == "jieba-rjieba-0.2.2"
    counts = plain_counts(texts)
    assert sum(row["distinct"] for row in manifest["classes"].values()) == len(counts)
    running = sum(row["running"] for row in manifest["classes"].values())
    assert running == sum(sum(words.values()) for words in counts.values())


def test_gold_tags(spark, tmp_path):
    (tmp_path / "gold.txt").write_text(GOLD, "utf-8")
    line = ["--gold", str(tmp_path / "gold.txt"), "--output", str(tmp_path / "v")]
    assert main(line) == 0
    kept = read(tmp_path / "v")
    assert ("快", "adjective", 2) in kept  # as often an adverb; the first class wins
    assert [row for row in kept if row[0] == "北京"] == []  # 0.14 names round to none
    assert json.loads((tmp_path / "v" / "manifest.json").read_text("utf-8"))["tag_set"] == "pfr"


def test_a_gold_line_that_is_none(spark, tmp_path):
    (tmp_path / "gold.txt").write_text("有/v 词/n\n有/v 没有\n", "utf-8")
    with pytest.raises(UserError, match=r"gold\.txt: '没有' is not word/tag") as refused:
        main(["--gold", str(tmp_path / "gold.txt"), "--output", str(tmp_path / "v")])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--input", "{corpus}", "--column", "body"], "no column 'body', it has: id, text"),
        (["--input", "{corpus}", "--column", "id"], "column 'id' is bigint, expected string"),
        (["--input", "{corpus}", "--segmenter", "ltp:none"], "none"),
    ],
)
def test_bad_input(spark, corpus, tmp_path, line, message):
    given = [word.format(corpus=corpus) for word in line]
    with pytest.raises(UserError, match=message) as refused:
        main([*given, "--output", str(tmp_path / "v")])
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "v").exists()


def test_a_vocabulary_is_not_written_over(spark, corpus, tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="--overwrite replaces it"):
        main(["--input", str(corpus), "--output", str(tmp_path)])
