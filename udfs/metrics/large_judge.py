"""The judgements of a large language model as metrics (udfs/paraphrase/judge.py). Unit: 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from pydantic.dataclasses import dataclass
from scipy.special import expit

from gaixie.udfs.metrics.metric import Metric
from gaixie.udfs.paraphrase.judge import JUDGE, JUDGED, Judge
from gaixie.udfs.paraphrase.paraphraser import writer_folder


@dataclass(frozen=True)
class LargeJudge(Metric):
    """One of the judge's judgements.

    output: of JUDGED. folder: of a judge, by default the one that ``gaixie writer`` makes.
    """

    output: str = "overall"
    folder: str = ""

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        name = "judge" if self.output == "overall" else f"judge-{self.output}"
        about = f"What raters say of a pair ({self.output}), as a large language model expects."
        self.describe(name=name, title=name.replace("-", " ").capitalize(), summary=about)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        return expit(_load(self.folder)(texts, paraphrases)[:, JUDGED.index(self.output)])

    def settings(self) -> Sequence[tuple[str, object]]:
        return [("model", _load(self.folder).digest)]


@cache
def _load(folder: str) -> Judge:
    return Judge.load(folder or writer_folder() / JUDGE)
