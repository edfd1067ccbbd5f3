"""A metric of your own beside those of the package: how it follows the ratings of the sample pairs.

python examples/own_metric.py
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rapidfuzz.distance import LCSseq
from scipy.stats import spearmanr

from gaixie.udfs.metrics import Metric, Pairs, load_metric


@dataclass(frozen=True)
class Moved(Metric):
    """Share of the paraphrase's characters that do not stand in the source in the same order."""

    name, title = "moved", "Moved"
    summary = "Characters of the paraphrase that are new or moved."
    range, higher_is_better = (0.0, 1.0), True

    def scores_of(self, texts: list[str], paraphrases: list[str]) -> np.ndarray:
        both = zip(texts, paraphrases, strict=True)
        return np.array([1 - LCSseq.similarity(a, b) / max(len(b), 1) for a, b in both])


table = pd.read_json(Path(__file__).with_name("pairs.jsonl"), lines=True)
pairs = Pairs.of(table["source"].tolist(), table["paraphrase"].tolist())
for metric in (Moved(), load_metric("pinc"), load_metric("spscore")):
    scores = metric.sentence_scores(pairs)
    print(f"{spearmanr(scores, table['rated']).statistic:6.3f}  {metric.signature()}")
