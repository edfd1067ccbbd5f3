"""Scores a DataFrame in Spark: judgements, stage, and a metric of another kind beside them.

spark-submit examples/score_in_spark.py [PAIRS.jsonl]     columns source, paraphrase and origin
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from gaixie.udfs.spark import judgements, metric, stage

path = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("pairs.jsonl"))
spark = SparkSession.builder.appName("score in Spark").getOrCreate()
pairs = spark.read.json(path)

scored = (
    pairs.withColumn("judged", judgements("source", "paraphrase"))
    .select("origin", "source", "paraphrase", "judged.*")
    .withColumn("stage", stage("spscore", "origin", "meaning"))
    .withColumn("pinc", metric("pinc")("source", "paraphrase"))
    .cache()
)
by_stage = scored.groupBy("origin", "stage").agg(
    F.count("*").alias("pairs"),
    *[F.round(F.avg(name), 3).alias(name) for name in ("meaning", "spscore", "pinc")],
)
by_stage.orderBy("origin", "stage").show()
