"""All rows of a pair but one are left out, the same ones whether few rows are compared or many."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pyspark.sql.types import StringType, StructField

from gaixie.jobs.scoring.chunks import FEW, KEPT, find_duplicates

EXTRA = [StructField("note", StringType())]


def rows(count: int, pairs: int) -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "pair_id": [f"pair {number}" for number in random.integers(0, pairs, count)],
            "row_key": random.permutation(count),
            "origin": "human",
            "spscore": 0.5,
            "meaning": 0.5,
            "note": random.choice(["a", "b", None], count),
        }
    )


def test_the_same_rows_of_few_and_of_many(spark):
    given = rows(300, 200)
    table = spark.createDataFrame(given)
    left_out = {
        count: find_duplicates(table, count, EXTRA).select(*KEPT).toPandas()
        for count in (len(given), FEW + 1)
    }
    few, many = (sorted(found["row_key"]) for found in left_out.values())
    assert few == many
    kept = given[~given["row_key"].isin(few)]
    assert sorted(kept["pair_id"]) == sorted(set(given["pair_id"]))
    # Of rows that differ in row_key alone, the lowest stays.
    alike = given.groupby(["pair_id", "note"], dropna=False)["row_key"].min()
    assert set(kept["row_key"]) <= set(alike)


def test_where_no_pair_is_there_twice(spark):
    table = spark.createDataFrame(rows(300, 200).drop_duplicates("pair_id"))
    assert find_duplicates(table, FEW + 1, EXTRA) is None
    assert find_duplicates(table, 300, EXTRA).count() == 0
