"""Tier ``full`` on GPUs: where executors have some, each task that scores has one to itself."""

from __future__ import annotations

from collections import Counter

from pyspark import AccumulatorParam
from pyspark.resource import ResourceProfile, ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import DataFrame, SparkSession


def gpu_profile(spark: SparkSession, tier: str) -> ResourceProfile | None:
    """Returns what a task that scores asks for; None: a core, as any other task does."""
    context = spark.sparkContext
    amount = context.getConf().get("spark.executor.resource.gpu.amount", "0")
    if tier != "full" or amount == "0" or str(context.master).startswith("local"):
        return None
    return ResourceProfileBuilder().require(TaskResourceRequests().resource("gpu", 1)).build


def with_profile(rows: DataFrame, profile: ResourceProfile | None) -> DataFrame:
    """Gives the tasks that compute the rows, and what is made of them up to a shuffle, a profile.

    Of Spark's SQL only mapInArrow takes one. This one changes nothing.
    """
    if profile is None:
        return rows
    return rows.mapInArrow(lambda batches: batches, rows.schema, profile=profile)


class Counts(AccumulatorParam[Counter[str]]):
    """Adds up counts by name over tasks."""

    def zero(self, value: Counter[str]) -> Counter[str]:
        return Counter()

    def addInPlace(self, value1: Counter[str], value2: Counter[str]) -> Counter[str]:
        return value1 + value2
