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
from gaixie.udfs.metrics.metric import signature


@dataclass(frozen=True)
class Moved(Metric):
    """Share of the paraphrase's characters that do not stand in the source in the same order."""

    name, title = "moved", "Moved"
    summary = "Characters of the paraphrase that are new or moved."
    range, higher_is_better = (0.0, 1.0), True

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        both = zip(pairs.source.to_pylist(), pairs.paraphrase.to_pylist(), strict=True)
        return np.array([1 - LCSseq.similarity(a, b) / max(len(b), 1) for a, b in both])

    def signature(self) -> str:
        return signature(self.title)


table = pd.read_json(Path(__file__).with_name("pairs.jsonl"), lines=True)
pairs = Pairs.of(table["source"].tolist(), table["paraphrase"].tolist())
for metric in (Moved(), load_metric("pinc"), load_metric("spscore")):
    scores = metric.sentence_scores(pairs)
    print(f"{spearmanr(scores, table['rated']).statistic:6.3f}  {metric.signature()}")
