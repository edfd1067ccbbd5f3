"""Scores a table of pairs in pandas, and says why the lowest of them are low.

python examples/score_in_pandas.py [PAIRS.jsonl]     columns source and paraphrase
"""

import sys
from pathlib import Path

import pandas as pd

from gaixie.udfs.spscore import SPScore

path = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("pairs.jsonl")
pairs = pd.read_json(path, lines=True)

metric = SPScore.load()  # tier core; SPScore.load("full") reads with an encoder, slower and better
judged = pairs.join(metric.judge(pairs["source"], pairs["paraphrase"]))

print(metric.signature())
print(judged[["structure", "synonyms", "meaning", "fluency", "spscore"]].describe().round(3))
for pair in judged.nsmallest(3, "spscore").itertuples():
    print(f"\n{pair.spscore:.3f}  {pair.source}\n       {pair.paraphrase}")
    for reason in metric.explain(pair.source, pair.paraphrase):
        print(f"       - {reason}")
