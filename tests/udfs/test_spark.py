"""The Spark functions must equal the plain ones."""

import json
import os
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from usage import output_of

from gaixie.udfs import spark as ours
from gaixie.udfs.features import FEATURES, extract
from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.stages import RATED_CUTS, RATED_MIN_MEANING, SCORE_BINS
from gaixie.udfs.spscore.stages import stage as plain_stage
from gaixie.udfs.text.segmenters import load_segmenter

ROWS = 60


@pytest.fixture(scope="module")
def pairs(examples):
    """Returns some of the examples, numbered in column n."""
    return examples[["source", "paraphrase", "origin"]][:ROWS].assign(n=range(ROWS))


@pytest.fixture(scope="module")
def frame(spark, pairs):
    """Returns the pairs in three partitions, then a null source and a null paraphrase."""
    text = pairs["source"][0]
    nulls = [(None, text, "llm", ROWS), (text, None, "llm", ROWS + 1)]
    table = pd.concat([pairs, pd.DataFrame(nulls, columns=pairs.columns)])
    schema = "source string, paraphrase string, origin string, n int"
    rows = list(table.astype(object).itertuples(index=False, name=None))
    return spark.createDataFrame(rows, schema).repartition(3).cache()


@pytest.fixture(scope="module")
def expected(pairs):
    """Returns (features, outputs) of the pairs, by the plain functions and the default model."""
    segmenter = load_segmenter("jieba")
    texts = pa.array(pairs["source"]), pa.array(pairs["paraphrase"])
    return extract(*texts, segmenter).astype(np.float32), SPScore.load().outputs(*texts, segmenter)


def in_order(rows) -> pd.DataFrame:
    return rows.toPandas().sort_values("n", ignore_index=True)


def test_judgements_follow_the_validation_of_the_job(spark, pairs):
    good, short = pairs["source"][0], "今天天气很好。"
    rows = [(good, "，" * 30), (good, good), (good, ""), (good, short), (good, pairs["source"][1])]
    table = spark.createDataFrame(rows, "source string, paraphrase string").coalesce(1)
    judged = table.select(
        ours.judgements("source", "paraphrase").alias("by_default"),
        ours.judgements_udf(SPScore.load("paper"), min_characters=5)("source", "paraphrase").alias(
            "own"
        ),
        ours.spscore("source", "paraphrase").alias("spscore"),
    ).collect()
    by_default, own = ([row[name] for row in judged] for name in ("by_default", "own"))
    reasons = ["no_han", "identical", "empty", "too_short", None]
    assert [row.reason for row in by_default] == reasons
    assert [row.reason for row in own] == [*reasons[:3], None, None]
    assert [row.meaning is None for row in by_default] == [True] * 4 + [False]
    assert [row.spscore for row in judged] == [row.spscore for row in by_default]
    expected = SPScore.load("paper").outputs([good] * 2, [short, pairs["source"][1]])
    np.testing.assert_array_equal(np.float32([row[:5] for row in own[3:]]), expected)


def test_stages_are_the_python_function_and_bins_rounded(spark):
    """The expressions must equal the Python functions, also exactly on thresholds."""
    generator = np.random.default_rng(3)
    edges = [0.0, 1.0, *{cut for cuts in RATED_CUTS.values() for cut in cuts}]
    scores = np.concatenate([generator.random(200), edges]).astype(np.float32)
    meaning = generator.choice(np.array([0.1, 0.65, 0.8, 0.9], np.float32), len(scores))
    pairs = [(*map(float, pair),) for pair in zip(scores, meaning, strict=True)]
    rows = [(origin, *pair) for origin in RATED_CUTS for pair in pairs]
    rows += [("llm", None, 1.0), ("gpt", 0.5, 1.0)]
    frame = spark.createDataFrame(rows, "origin string, spscore float, meaning float")
    found = frame.select(
        ours.stage("spscore", "origin", "meaning").alias("stage"),
        ours.stage(F.col("spscore"), "origin").alias("without"),
        ours.score_bin_column().alias("bin"),
    )
    assert found.schema["stage"].dataType.simpleString() == "int"
    *found, no_score, no_origin = found.collect()
    assert no_score.stage is no_origin.stage is None
    for number, (origin, cuts) in enumerate(RATED_CUTS.items()):
        part = found[number * len(pairs) : (number + 1) * len(pairs)]
        least = RATED_MIN_MEANING[origin]
        assert [row.stage for row in part] == plain_stage(scores, cuts, meaning, least).tolist()
        assert [row.without for row in part] == plain_stage(scores, cuts).tolist()
        bins = [int(float(score) * SCORE_BINS + 0.5) for score in scores]
        assert [row.bin for row in part] == bins


def test_sql(spark, frame, expected):
    ours.register(spark)
    frame.createOrReplaceTempView("pairs")
    query = """
        SELECT n, features(source, paraphrase).acs AS acs, spscore(source, paraphrase) AS s,
            judgements(source, paraphrase).meaning AS meaning FROM pairs WHERE n < 60
    """
    rows = in_order(spark.sql(query))
    np.testing.assert_array_equal(rows["acs"], expected[0][:, FEATURES.index("acs")])
    np.testing.assert_array_equal(rows["s"], expected[1][:, -1])
    np.testing.assert_array_equal(rows["meaning"], expected[1][:, OUTPUTS.index("meaning")])


def test_the_jobs_arrow_function_equals_the_pandas_udfs(frame, expected):
    score = ours.score_columns(SPScore.load(), "jieba", 15, 1000)
    scored = frame.select("n", score("source", "paraphrase", "origin").alias("job"))
    assert scored.schema["job"].dataType.fieldNames() == ours.SCORED_FIELDS.fieldNames()
    udfs = frame.select(
        "n",
        ours.features("source", "paraphrase").alias("f"),
        ours.spscore("source", "paraphrase").alias("s"),
    )
    job = in_order(scored.select("n", "job.*"))
    udfs = in_order(udfs.select("n", "s", *(f"f.{name}" for name in FEATURES)))
    assert job["reason"][ROWS:].tolist() == ["null", "null"]
    assert job["reason"][:ROWS].isna().all()
    np.testing.assert_array_equal(job["spscore"], udfs["s"])
    np.testing.assert_array_equal(job[[*FEATURES]], udfs[[*FEATURES]])
    np.testing.assert_array_equal(job[[*OUTPUTS]][:ROWS], expected[1])
    assert job[["pair_id", *OUTPUTS, *FEATURES]][ROWS:].isna().all(axis=None)


def test_metrics_are_pandas_udfs(spark):
    """A metric's UDF must give the scores of this process, and null where there is none."""
    names = ["bleu", "rouge-l-free", "spscore-meaning"]
    rows = [
        (0, "他昨天坐火车去了北京。", "昨天他是坐火车到北京去的。", "他昨天乘火车去北京了。"),
        (1, "今天天气很好。", None, "天气不错。"),
        (2, "她买了两本新书。", "两本新书，她买下了。", None),
    ]
    frame = spark.createDataFrame(rows, "n int, source string, paraphrase string, reference string")
    columns = [ours.metric(name)("source", "paraphrase", "reference") for name in names]
    found = [*zip(*frame.orderBy("n").select(*columns).collect(), strict=True)]
    pairs = Pairs.of(*[list(column) for column in list(zip(*rows, strict=True))[1:]])
    for name, scores in zip(names, found, strict=True):
        assert scores[1] is None
        expected = load_metric(name).sentence_scores(pairs)
        np.testing.assert_allclose(np.array(scores, float), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="did you mean bleu"):
        ours.metric("bleux")


@pytest.mark.long
@pytest.mark.spark
def test_workers_take_the_python_of_the_session(pytestconfig, tmp_path):
    """The documents' example must run, even if PATH begins with a Python without gaixie."""
    root = pytestconfig.rootpath
    pages = [(root / name).read_text("utf-8") for name in ("README.md", "docs/metric.md")]
    blocks = [re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0] for page in pages]
    script, bare = tmp_path / "example.py", tmp_path / "bin/python3"
    script.write_text("\n".join(blocks), "utf-8")
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nPYTHONPATH= exec {sys._base_executable} -S "$@"\n')
    bare.chmod(0o755)
    own = {"PATH": f"{bare.parent}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    found = re.findall(r"0\.\d+", output_of(sys.executable, script, env=environment | own))
    exec(blocks[0], names := {})
    [expected] = names["metric"].outputs([names["source"]], [names["paraphrase"]])
    np.testing.assert_allclose(np.float32(found), expected, rtol=1e-6)


UNDER_CONNECT = """
import json, sys
from gaixie.udfs.spark import features, judgements, register, spscore, stage  # before the session
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[2]").getOrCreate()  # starts a server
assert "connect" in type(spark).__module__
pairs = spark.read.json(sys.argv[1]).selectExpr("source", "paraphrase", "origin").limit(20)
sides = "source", "paraphrase"
judged = pairs.select("*", spscore(*sides).alias("spscore"), judgements(*sides).alias("j"))
judged = judged.select("*", stage("spscore", "origin").alias("stage"), features(*sides).alias("f"))
register(spark)
pairs.createOrReplaceTempView("pairs")
in_sql = spark.sql("SELECT spscore(source, paraphrase) AS s FROM pairs").toPandas()["s"]
found = judged.selectExpr("f.acs", "j.meaning", "spscore", "stage").toPandas().to_dict("list")
print(json.dumps(found | {"sql": in_sql.tolist()}, default=float))
spark.stop()
"""


@pytest.mark.long
@pytest.mark.spark
def test_under_spark_connect(pytestconfig, pairs, expected):
    """The functions must work over Spark Connect, with a real server and a client without Java."""
    given = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    path = pytestconfig.rootpath / "examples/pairs.jsonl"
    said = output_of(sys.executable, "-c", UNDER_CONNECT, path, env=os.environ | given)
    found = json.loads(said.splitlines()[-1])
    values, outputs = (table[:20] for table in expected)
    for name, column in (
        ("acs", values[:, FEATURES.index("acs")]),
        ("meaning", outputs[:, OUTPUTS.index("meaning")]),
        *[("spscore", outputs[:, -1]), ("sql", outputs[:, -1])],
    ):
        np.testing.assert_array_equal(np.float32(found[name]), column)
    cuts = [RATED_CUTS[origin] for origin in pairs["origin"][:20]]
    at = [plain_stage(np.float32([s]), c)[0] for s, c in zip(found["spscore"], cuts, strict=True)]
    assert found["stage"] == at
