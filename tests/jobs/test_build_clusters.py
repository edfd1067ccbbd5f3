"""jobs/build_pairs.py cluster: clusters of equal meaning, counts that close, months that join."""

import json
from pathlib import Path

import pandas as pd
import pytest
from built_pairs import manifest, table

from gaixie.jobs.build_pairs import main
from gaixie.jobs.pairs.clusters import method
from gaixie.udfs.command_line import UserError

SETS = (
    (
        "火势从三楼的一间厨房开始蔓延，消防员半小时后赶到。",
        "大火是从三楼的一间厨房开始蔓延的，半小时后消防员赶到。",
        "火从三楼一间厨房开始蔓延，消防员过了半小时赶到。",
        "从三楼的一间厨房，火势开始蔓延，半小时后消防员赶到了。",
    ),
    (
        "这家公司去年的利润比前年增加了百分之二十。",
        "去年，这家公司的利润比前年增长了百分之二十。",
        "与前年相比，这家公司去年的利润增加了百分之二十。",
    ),
    ("由于天气恶劣，今天下午的所有航班都被取消了。", "今天下午，所有航班都因为天气恶劣被取消了。"),
)
"""Groups of sentences with the same meaning."""
ALONE = "孩子们在公园里放风筝，老人坐在长椅上晒太阳。"
OTHER_DAY = "三楼的一间厨房着了火，火势蔓延开来，半小时后消防员才赶到。"
NEAR = SETS[0][0].replace("。", "！") + "啊"


def run(table: pd.DataFrame | Path, output: Path, *given: str) -> Path:
    path = table
    if isinstance(table, pd.DataFrame):
        path = output.with_suffix(".parquet")
        table.to_parquet(path, row_group_size=3)
    line = ["cluster", "--input", path, "--output", output, "--min-meaning", "0.5"]
    assert main([str(word) for word in [*line, *given]]) == 0
    return output


def clusters(output: Path) -> set[frozenset[str]]:
    """Returns the texts of each cluster; a hash decides which of two near duplicates stays."""
    rows = table(output, "clusters").dropna(subset="cluster")
    rows["text"] = rows["text"].replace(NEAR, SETS[0][0])
    return {frozenset(texts) for _, texts in rows.groupby("cluster")["text"]}


def test_a_month_whose_job_is_killed(spark, tmp_path, monkeypatch):
    """Clusters and counts must be right, whatever the order and the partitions, after a resume."""

    def killed(*_):
        raise RuntimeError("killed")

    texts = [text for texts in SETS for text in texts]
    texts += [ALONE, NEAR, SETS[1][0] + " ", "太短了。", None]
    month = pd.DataFrame({"text": texts}).sample(frac=1, random_state=1)
    given = ("--max-pairs", "1")
    monkeypatch.setattr(method, "set_shuffle_partitions", lambda *_: None)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    with monkeypatch.context() as patch:
        patch.setattr(method, "reduce", killed)
        with pytest.raises(RuntimeError, match="killed"):
            run(month, tmp_path / "p", *given)
    assert any((tmp_path / "p/_work/linked").iterdir())
    output = run(tmp_path / "p.parquet", tmp_path / "p", *given, "--resume")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert not (output / "_work").exists()
    told, rows = manifest(output), table(output, "clusters").set_index("id")
    assert clusters(output) == {frozenset(texts) for texts in SETS}
    reasons = dict.fromkeys(("alone", "near_duplicate", "null", "repeated", "too_short"), 1)
    assert told.quarantine == reasons | {"over_limit": 3}
    assert (told.read, told.used, told.groups, told.pairs) == (len(month), 6, 3, 3)
    pairs = table(output, "pairs")
    row = pairs.iloc[0]
    assert (row.origin, row.model, row.version[:11]) == ("human", "core", "SPScore-zh|")
    assert json.loads(row.parameters)["min_share"] == 0.5
    assert set(rows["cluster"].dropna()) == set(pairs["group"])
    left = table(output, "quarantine").set_index("reason")["source"]
    assert left["alone"] == ALONE
    assert left["near_duplicate"] in (NEAR, SETS[0][0])
    assert set(told.files) == {"pairs", "quarantine", "clusters"}
    assert told.figures["sentences"] == 11


def test_a_new_month_joins(spark, tmp_path):
    """New sentences must join earlier clusters and earlier single sentences of their meaning, if
    they share a key."""
    day, other = ["fire", "1"], ["flight", "2"]
    held_back = [SETS[0][2], SETS[2][1], SETS[1][1], SETS[1][0]]
    rows = [(text, *(day if texts == SETS[0] else other), None) for texts in SETS for text in texts]
    january = [row for row in rows if row[0] not in held_back]
    january += [(ALONE, None, None, " "), (OTHER_DAY, "fire", "9", None)]
    february = [row for row in rows if row[0] in held_back]
    february += [(SETS[0][1], *day, None), (NEAR, *day, "u")]
    names = ["text", "topic", "day", "url"]
    keys = ("--key-column", "topic+day", "url")
    before = run(pd.DataFrame(january, columns=names), tmp_path / "january", *keys)
    assert manifest(before).quarantine == {"alone": 3, "no_key": 1}
    files = {path: path.read_bytes() for path in before.rglob("*") if path.is_file()}
    given = (*keys, "--clusters", str(before))
    after = run(pd.DataFrame(february, columns=names), tmp_path / "february", *given)
    assert {path: path.read_bytes() for path in before.rglob("*") if path.is_file()} == files
    assert clusters(after) == {frozenset(texts) for texts in SETS}
    old = table(before, "clusters").set_index("text")["cluster"].dropna()
    new = table(after, "clusters").set_index("text")["cluster"]
    assert new[old.index].equals(old)
    pairs, fresh = table(after, "pairs"), set(held_back)
    assert all({a, b} & fresh for a, b in zip(pairs["source"], pairs["paraphrase"], strict=True))
    told = manifest(after)
    assert (told.read, told.used) == (6, 4)
    with pytest.raises(UserError, match=r"its keys are .*topic.day"):
        run(pd.DataFrame(february, columns=names), tmp_path / "q", "--clusters", str(after))


def test_a_sentence_has_so_many_keys(spark, monkeypatch):
    monkeypatch.setattr(method, "KEYS", 3)
    rows = [("g", "句", [key]) for key in range(5)] + [("h", "话", [1, 2]), ("g", "句", [4])]
    fit = spark.createDataFrame(rows, "group string, source string, keys array<bigint>")
    found = method.distinct_sentences(fit, None).collect()
    assert {row.id: (row["keys"], row.copies) for row in found} == {
        "g": ([0, 1, 2], 5),
        "h": ([1, 2], 0),
    }
