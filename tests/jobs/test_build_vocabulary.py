"""jobs/build_vocabulary.py must count and cut in Spark as the plain definition does."""

import json
from collections import Counter, defaultdict
from itertools import chain
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
def corpus(examples, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("source", "paraphrase"):
        table = pa.table({"id": range(len(examples)), "text": examples[name]})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100)
    return folder


def test_the_vocabulary_of_the_definition(spark, examples, corpus, tmp_path, capsys):
    assert main(["--input", str(corpus), "--output", str(tmp_path / "v")]) == 0
    counts: dict[str, Counter] = defaultdict(Counter)
    texts = [normalise(text) for text in [*examples["source"], *examples["paraphrase"]]]
    for word, tag in chain(*JiebaSegmenter().tag(texts)):
        if not word.isspace():
            counts[word][class_of(tag, "jieba")] += 1
    assert read(tmp_path / "v") == select(counts)
    told = pq.read_table(tmp_path / "v" / "counts.parquet").to_pandas()
    totals = {word: by_class.total() for word, by_class in counts.items()}
    assert told.set_index("word")["count"].to_dict() == totals
    table = (tmp_path / "v" / "table.txt").read_text("utf-8")
    assert table.strip() in capsys.readouterr().out
    manifest = json.loads((tmp_path / "v" / "manifest.json").read_text("utf-8"))
    assert (manifest["tag_set"], manifest["segmenter"]) == ("jieba", "jieba-rjieba-0.2.2")
    rows = manifest["classes"].values()
    assert sum(row["distinct"] for row in rows) == len(counts)
    assert sum(row["running"] for row in rows) == sum(totals.values())
    with pytest.raises(UserError, match="--overwrite"):
        main(["--input", str(corpus), "--output", str(tmp_path / "v")])


def test_gold_tags(spark, tmp_path):
    (tmp_path / "gold.txt").write_text(GOLD, "utf-8")
    line = ["--gold", str(tmp_path / "gold.txt"), "--output", str(tmp_path / "v")]
    assert main(line) == 0
    kept = read(tmp_path / "v")
    assert ("快", "adjective", 2) in kept  # as often an adverb; the first class wins
    assert [row for row in kept if row[0] == "北京"] == []  # 0.14 names round to none
    assert json.loads((tmp_path / "v" / "manifest.json").read_text("utf-8"))["tag_set"] == "pfr"


def test_bad_input(spark, corpus, tmp_path):
    gold = tmp_path / "gold.txt"
    gold.write_text("有/v 词/n\n有/v 没有\n", "utf-8")
    for line, named in {
        f"--gold {gold}": "gold.txt: '没有'",
        f"--input {corpus} --column body": "'body'",
        f"--input {corpus} --column id": "column 'id' is bigint",
        f"--input {corpus} --segmenter ltp:none": "none",
    }.items():
        with pytest.raises(UserError, match=rf"^[^\n]*{named}[^\n]*$"):
            main([*line.split(), "--output", str(tmp_path / "v")])
        assert not (tmp_path / "v").exists()
