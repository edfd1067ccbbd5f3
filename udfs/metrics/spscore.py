"""SPScore-zh among the metrics: what udfs/spscore scores, in their common form. Range [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from udfs.metrics.metric import Metric, Pairs
from udfs.spscore import SPScore
from udfs.text.segment import Segmenter, load_segmenter


@dataclass(frozen=True)
class SPScoreZh(Metric):
    """SPScore-zh. folder: of a fitted metric, by default the one that ships."""

    folder: str = ""
    segmenter: str = "jieba"

    name = "spscore"
    title = "SPScore-zh"
    summary = "How far a pair looks like a human rewrite: eight features, fitted to human scores."
    range = (0.0, 1.0)
    higher_is_better = True

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        model, segmenter = self._loaded()
        return model.score(pairs.source, pairs.paraphrase, segmenter).astype(np.float64)

    def signature(self) -> str:
        model, segmenter = self._loaded()
        return model.signature(segmenter)

    def _loaded(self) -> tuple[SPScore, Segmenter]:
        return _load(self.folder, self.segmenter)


@cache
def _load(folder: str, segmenter: str) -> tuple[SPScore, Segmenter]:
    return SPScore.load(folder or None), load_segmenter(segmenter)
