"""Scores a table of pairs in Polars: the mean of each judgement, by origin.

python examples/score_in_polars.py
"""

from pathlib import Path

import polars as pl

import gaixie

pairs = pl.read_ndjson(Path(__file__).with_name("pairs.jsonl"))
scored = gaixie.score(pairs)  # a Polars data frame again
judgements = pl.col("structure", "synonyms", "meaning", "fluency", "spscore")
print(scored.group_by("origin").agg(judgements.mean().round(3)).sort("origin"))
