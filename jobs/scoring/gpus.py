"""Runs tier ``full`` on GPUs: if executors have some, each scoring task has one to itself."""

from __future__ import annotations

from collections import Counter

from pyspark import AccumulatorParam
from pyspark.resource import ResourceProfile, ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import DataFrame, SparkSession


def gpu_profile(spark: SparkSession, tier: str) -> ResourceProfile | None:
    """Returns the resources that a scoring task asks for; None means a core, as for any other
    task."""
    context = spark.sparkContext
    amount = context.getConf().get("spark.executor.resource.gpu.amount", "0")
    if tier != "full" or amount == "0" or str(context.master).startswith("local"):
        return None
    return ResourceProfileBuilder().require(TaskResourceRequests().resource("gpu", 1)).build


def with_profile(rows: DataFrame, profile: ResourceProfile | None) -> DataFrame:
    """Applies a profile to the tasks that compute the rows and what follows them up to a shuffle.

    In Spark SQL, only mapInArrow takes a profile; the one here leaves the rows unchanged.
    """
    if profile is None:
        return rows
    return rows.mapInArrow(lambda batches: batches, rows.schema, profile=profile)


class Counts(AccumulatorParam[Counter[str]]):
    """Adds up named counts over tasks."""

    def zero(self, value: Counter[str]) -> Counter[str]:
        return Counter()

    def addInPlace(self, value1: Counter[str], value2: Counter[str]) -> Counter[str]:
        return value1 + value2
