"""Scores the rows of a DuckDB query, and asks the result in SQL.

python examples/score_in_duckdb.py
"""

from pathlib import Path

import duckdb

import gaixie

file = Path(__file__).with_name("pairs.jsonl")
pairs = duckdb.sql(f"SELECT id, source, paraphrase, rated FROM '{file}' WHERE origin = 'llm'")
scored = gaixie.score(pairs)  # a DuckDB relation again
print(
    duckdb.sql("SELECT round(corr(spscore, rated), 3) AS agreement, count(*) AS pairs FROM scored")
)
print(
    duckdb.sql("SELECT id, rated, round(spscore, 3) AS score FROM scored ORDER BY spscore LIMIT 5")
)
