"""jobs/build_pairs.py cluster: clusters of equal meaning, counts that close, months that join."""

import json
from pathlib import Path

import pandas as pd
import pytest
from built_pairs import manifest, on_cluster, table
from pyspark.sql import Observation

from gaixie.jobs.build_pairs import main
from gaixie.jobs.corpus.accounts import observed
from gaixie.jobs.pairs.clusters import steps
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


@pytest.fixture(scope="module")
def month() -> pd.DataFrame:
    texts = [text for texts in SETS for text in texts]
    texts += [ALONE, NEAR, SETS[1][0] + " ", "太短了。", None]
    return pd.DataFrame({"text": texts})


@pytest.fixture(scope="module")
def first(spark, month, tmp_path_factory) -> Path:
    return run(month, tmp_path_factory.mktemp("first") / "out")


def test_sentences_that_say_the_same(first, month):
    told = manifest(first)
    assert clusters(first) == {frozenset(texts) for texts in SETS}
    assert told.quarantine == {
        **{"alone": 1, "near_duplicate": 1, "null": 1, "repeated": 1, "too_short": 1}
    }
    assert (told.read, told.used, told.groups) == (len(month), 9, 3)
    pairs = table(first, "pairs").replace(NEAR, SETS[0][0])
    assert set(pairs["source"]) | set(pairs["paraphrase"]) == {t for texts in SETS for t in texts}
    assert set(pairs["origin"]) == {"human"}
    assert set(pairs["model"]) == {"core"}
    assert pairs["version"][0].startswith("SPScore-zh|")
    assert json.loads(pairs["parameters"][0])["min_share"] == 0.5
    ids = table(first, "clusters").set_index("id")["cluster"].dropna()
    assert set(ids) == set(pairs["group"]) <= set(ids.index)
    left = table(first, "quarantine").set_index("reason")["source"]
    assert left["alone"] == ALONE
    assert left["near_duplicate"] in (NEAR, SETS[0][0])
    assert set(told.files) == {"pairs", "quarantine", "clusters"}
    assert told.figures["sentences"] == 11


def test_neither_order_nor_partitions_matter(first, month, tmp_path, spark):
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        again = run(month.sample(frac=1, random_state=1), tmp_path / "again")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    for name in ("pairs", "clusters"):
        pd.testing.assert_frame_equal(table(again, name), table(first, name))


def test_a_new_month_joins(first, month, tmp_path):
    """New sentences must join earlier clusters and earlier single sentences of their meaning."""
    held_back = [SETS[0][2], SETS[2][1], SETS[1][1], SETS[1][0]]
    january = month[~month["text"].isin(held_back)]
    january = january[january["text"] != SETS[1][0] + " "]
    before = run(january, tmp_path / "january")
    files = {path: path.read_bytes() for path in before.rglob("*") if path.is_file()}
    february = pd.DataFrame({"text": [*held_back, SETS[0][1], ALONE, NEAR]})
    after = run(february, tmp_path / "february", "--clusters", str(before))
    assert {path: path.read_bytes() for path in before.rglob("*") if path.is_file()} == files
    assert clusters(after) == {frozenset(texts) for texts in SETS}
    old = table(before, "clusters").set_index("text")["cluster"].dropna()
    new = table(after, "clusters").set_index("text")["cluster"]
    assert new[old.index].equals(old)
    pairs, fresh = table(after, "pairs"), set(held_back)
    assert all({a, b} & fresh for a, b in zip(pairs["source"], pairs["paraphrase"], strict=True))
    told = manifest(after)
    assert (told.read, told.used) == (7, 4)
    assert told.quarantine == {"repeated": 3}
    again = run(february, tmp_path / "again", "--clusters", str(after))
    assert manifest(again).pairs == 0
    assert manifest(again).quarantine == {"repeated": 7}
    pd.testing.assert_frame_equal(
        table(again, "clusters").drop(columns="new"), table(after, "clusters").drop(columns="new")
    )


def test_keys_keep_sentences_apart(spark, tmp_path):
    rows = [
        (SETS[0][0], "fire", "1", None),
        (SETS[0][1], "fire", "1", None),
        (SETS[0][2], "fire", "2", "u"),
        (SETS[0][3], None, "1", "u"),
        (SETS[1][0], "a", "1", None),
        (SETS[1][1], "b", "1", " "),
        (ALONE, None, None, None),
    ]
    given = pd.DataFrame(rows, columns=["text", "topic", "day", "url"])
    output = run(given, tmp_path / "p", "--key-column", "topic+day", "url")
    assert clusters(output) == {frozenset(SETS[0][:2]), frozenset(SETS[0][2:])}
    assert manifest(output).quarantine == {"alone": 2, "no_key": 1}
    with pytest.raises(UserError, match=r"its keys are .*topic.day"):
        run(given, tmp_path / "q", "--clusters", str(output))


def test_limits_and_resumption(spark, month, tmp_path, monkeypatch):
    def killed(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(steps, "reduce", killed)
        with pytest.raises(RuntimeError, match="killed"):
            run(month, tmp_path / "p", "--max-pairs", "1")
    tables = tmp_path / "p" / "_work" / "sentences"
    written = {path: path.stat().st_mtime_ns for path in tables.iterdir()}
    assert written
    output = run(tmp_path / "p.parquet", tmp_path / "p", "--max-pairs", "1", "--resume")
    told = manifest(output)
    assert (told.pairs, told.quarantine["over_limit"], told.used) == (3, 3, 6)
    assert not (output / "_work").exists()


@pytest.mark.parametrize(("text", "reason"), [(ALONE, "alone"), ("太短了。", "too_short")])
def test_nothing_to_pair(spark, compiled, tmp_path, text, reason):
    """Counts must hold when no pair is made, although Spark then skips the steps that count."""
    output = run(pd.DataFrame({"text": [text]}), tmp_path / "p")
    told = manifest(output)
    assert (told.pairs, told.quarantine) == (0, {reason: 1})
    assert len(table(output, "clusters")) == (reason == "alone")


def test_a_published_cluster_is_linked_by_its_first_members(spark):
    rows = [(node, f"{node:02}", "07") for node in range(9)] + [(20, "20", "20"), (21, "21", "20")]
    members = spark.createDataFrame(rows, "node bigint, id string, cluster string")
    first = steps.first_members(members, 3).collect()
    assert sorted((row.cluster, row.node) for row in first) == [
        *(("07", node) for node in (0, 1, 7)),  # the centre, then the smallest
        *(("20", node) for node in (20, 21)),
    ]


def test_a_sentence_has_so_many_keys(spark, monkeypatch):
    monkeypatch.setattr(steps, "KEYS", 3)
    rows = [("g", "句", [key]) for key in range(5)] + [("h", "话", [1, 2]), ("g", "句", [4])]
    fit = spark.createDataFrame(rows, "group string, source string, keys array<bigint>")
    left_out = Observation()
    found = steps.distinct_sentences(fit, None, left_out).collect()
    assert {row.id: (row["keys"], row.copies) for row in found} == {
        "g": ([0, 1, 2], 5),
        "h": ([1, 2], 0),
    }
    assert observed(left_out) == {"count": 2}


def test_on_the_cluster_from_the_store_to_the_store(store, spark_submit, jars, first, tmp_path):
    """The cluster must find the same clusters as local mode."""
    store.put("month/a.parquet", first.with_suffix(".parquet").read_bytes())
    words = "cluster --input s3://gaixie/month --output s3a://gaixie/clustered"
    words = f"build_pairs.py {words} --min-meaning 0.5"
    on_cluster(spark_submit, jars, store, words)
    keys = [key for key in store.keys("clustered/") if not key.endswith("/")]
    for key in keys:
        path = tmp_path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.read(key))
    for name in ("pairs", "clusters"):
        pd.testing.assert_frame_equal(table(tmp_path / "clustered", name), table(first, name))
    assert manifest(tmp_path / "clustered").quarantine == manifest(first).quarantine
    assert not [key for key in keys if "_work" in key or "__magic" in key]
