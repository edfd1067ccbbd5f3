"""One row of each pair must stay, the same one whether few rows are compared or many."""

import numpy as np
import pandas as pd
from pyspark.sql.types import LongType, MapType, StringType, StructField

from gaixie.jobs.scoring import sorting
from gaixie.jobs.scoring.sorting import DUPLICATE_COLUMNS, FEW, find_duplicates, leave_out

TAGS = MapType(StringType(), LongType())
EXTRA = [StructField("note", StringType()), StructField("tags", TAGS)]


def rows(count: int, pairs: int) -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "pair_id": [f"pair {number}" for number in random.integers(0, pairs, count)],
            "row_key": random.permutation(count),
            "source": random.choice(["甲", " 甲"], count),
            "paraphrase": "乙",
            "origin": "human",
            "spscore": 0.5,
            "meaning": 0.5,
            "note": random.choice(["a", "b", None], count),
            "tags": [{"a": int(number)} for number in random.integers(0, 2, count)],
        }
    )


def test_the_same_rows_of_few_and_of_many(spark):
    given = rows(300, 200)
    table = spark.createDataFrame(given)
    found = [find_duplicates(table, count, EXTRA) for count in (len(given), FEW + 1)]
    chosen = (one.select(*DUPLICATE_COLUMNS).collect() for one in found)
    few, many = ({row.row_key for row in rows} for rows in chosen)
    assert few == many
    kept = given[~given["row_key"].isin(few)]
    assert sorted(kept["pair_id"]) == sorted(set(given["pair_id"]))
    # Of rows that differ only in row_key, the lowest stays; else the layout decides nothing.
    alike = given.astype({"tags": str}).groupby(["pair_id", "source", "note", "tags"], dropna=False)
    assert set(kept["row_key"]) <= set(alike["row_key"].min())
    other = given.assign(row_key=given["row_key"].to_numpy()[::-1])
    again = find_duplicates(spark.createDataFrame(other), len(other), EXTRA).toPandas()
    others = other[~other["row_key"].isin(again["row_key"])]
    same = [rows.drop(columns="row_key").sort_values("pair_id") for rows in (kept, others)]
    assert same[0].astype(str).to_numpy().tolist() == same[1].astype(str).to_numpy().tolist()


def test_where_no_pair_is_there_twice(spark):
    table = spark.createDataFrame(rows(300, 200).drop_duplicates("pair_id"))
    assert find_duplicates(table, FEW + 1, EXTRA) is None
    assert find_duplicates(table, 300, EXTRA).count() == 0


def test_the_same_rows_are_left_out_whatever_their_number(spark, monkeypatch):
    given = rows(3000, 1500)
    edges = [0, 1, 1023, 1024, 1025, 32_767, 32_768, 32_769, (1 << 33) - 1, 1 << 33]
    more = 3 << 53  # the first row_key of the third unit
    given["row_key"] = [*edges, *range(more, more + len(given) - len(edges))]
    table = spark.createDataFrame(given)
    found = find_duplicates(table, len(given), EXTRA)
    few = leave_out(table, found, count := found.count())
    monkeypatch.setattr(sorting, "MAX_BROADCAST", 1)
    again = find_duplicates(table, FEW + 1, EXTRA)
    many = leave_out(table, again, count)
    assert sorted(again.collect()) == sorted(found.collect())
    assert sorted(many.columns) == sorted(table.columns)
    keys = [sorted(row.row_key for row in kept.collect()) for kept in (few, many)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == len(given) - count == given["pair_id"].nunique()
