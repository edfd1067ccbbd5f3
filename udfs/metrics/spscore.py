"""SPScore-zh and its four judgements as metrics; udfs/spscore computes them. Unit: 0 to 1."""

from functools import cache

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.metric import Metric, Pairs
from gaixie.udfs.spscore import OUTPUTS, TIERS, SPScore
from gaixie.udfs.text.segmenters import Segmenter, load_segmenter

SUMMARIES = {
    "structure": "How much the structure of the sentence changed, as judged by SPScore-zh.",
    "synonyms": "How much of the wording was replaced, as judged by SPScore-zh.",
    "meaning": "How well the meaning was kept, as judged by SPScore-zh.",
    "fluency": "How readable the paraphrase is, as judged by SPScore-zh.",
    "spscore": "How good a paraphrase is: thoroughly changed, with the meaning kept, fluent.",
}


@dataclass(frozen=True)
class SPScoreZh(Metric):
    """SPScore-zh, or one of its judgements.

    output: of gaixie.udfs.spscore.OUTPUTS. tier: ``core``, ``paper``, or a fitted metric's folder.
    """

    output: str = "spscore"
    tier: str = "core"
    segmenter: str = "jieba"

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        # The name omits the default tier and a folder.
        tier = self.tier if self.tier in TIERS and self.tier != "core" else ""
        judgement = "" if self.output == "spscore" else self.output
        words = [word for word in (tier, judgement) if word]
        name, title = "-".join(["spscore", *words]), " ".join(["SPScore-zh", *words])
        self.describe(name=name, title=title, summary=SUMMARIES[self.output])

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        model, segmenter = self.loaded()
        outputs = model.outputs(pairs.source, pairs.paraphrase, segmenter)
        return outputs[:, OUTPUTS.index(self.output)].astype(np.float64)

    def signature(self) -> str:
        model, segmenter = self.loaded()
        output = "" if self.output == "spscore" else f"|output:{self.output}"
        return model.signature(segmenter) + output

    def loaded(self) -> tuple[SPScore, Segmenter]:
        """Returns the model and the segmenter, loaded once in a process."""
        return _load(self.tier, self.segmenter)


@cache
def _load(tier: str, segmenter: str) -> tuple[SPScore, Segmenter]:
    return SPScore.load(tier), load_segmenter(segmenter)
