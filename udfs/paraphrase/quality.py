"""Says how likely a reader accepts a draft: that it keeps the meaning and is good Chinese.

    quality = Quality.load(Judge.load(folder))
    quality(sources, drafts)        # for each pair a Reading

Two linear models over what the judge and the writer say of the draft: a logistic regression of
acceptance (meaning and fluency of 4 or more out of 5), and a ridge regression of the raters'
overall judgement. quality.json has their weights, once for drafts whose likelihood is known and
once for others; research/fit_quality.py fits them to rated drafts that the judge has not seen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from gaixie.udfs.paraphrase.judge import JUDGED
from gaixie.udfs.paraphrase.prompt import overlap
from gaixie.udfs.paraphrase.writer import Draft
from gaixie.udfs.text.normalise import normalise

FILE = Path(__file__).with_name("quality.json")
LIKELIHOOD = ("likelihood", "weakest")
COLUMNS = (*LIKELIHOOD, *JUDGED, "overlap", "length")
"""Of the writer; logits of the judge; the share of common character pairs and triples; the
logarithm of the ratio of lengths."""


class Reading(NamedTuple):
    """What is expected of a pair."""

    accepted: float
    """The probability that a reader accepts the draft."""
    overall: float
    """The expected overall judgement, 0 to 1."""

    @property
    def worth(self) -> float:
        """By what the best draft is chosen: a bold one must be as likely to be accepted."""
        return self.accepted**2 * self.overall


class Quality:
    """The two models, and what reads for them."""

    def __init__(self, weights: dict[str, Any], judge: Callable[..., np.ndarray]):
        """weights: what quality.json holds."""
        self.weights, self.judge = weights, judge

    @classmethod
    def load(cls, judge: Callable[..., np.ndarray]) -> Quality:
        """Loads the weights that ship with a judge."""
        return cls(json.loads(FILE.read_text("utf-8")), judge)

    def __call__(self, sources: Sequence[str], drafts: Sequence[Draft]) -> list[Reading]:
        """Reads each draft beside its source."""
        if not drafts:
            return []
        columns = self.columns(sources, drafts)
        known = not any(math.isnan(draft.likelihood) for draft in drafts)
        model = self.weights["written" if known else "other"]
        x = (
            columns[:, [COLUMNS.index(name) for name in model["columns"]]] - model["mean"]
        ) / model["scale"]
        accepted = expit(x @ np.array(model["accepted"]) + model["accepted_bias"])
        overall = (x @ np.array(model["overall"]) + model["overall_bias"]).clip(0, 1)
        return [Reading(float(a), float(o)) for a, o in zip(accepted, overall, strict=True)]

    def columns(self, sources: Sequence[str], drafts: Sequence[Draft]) -> np.ndarray:
        """Returns COLUMNS of each pair: float64, shape (pairs, columns)."""
        judged = logit(self.judge(sources, [draft.text for draft in drafts]))
        a, b = [*map(normalise, sources)], [normalise(draft.text) for draft in drafts]
        written = [(draft.likelihood, draft.weakest) for draft in drafts]
        ratios = [math.log(max(1, len(y)) / max(1, len(x))) for x, y in zip(a, b, strict=True)]
        shared = [overlap(x, y) for x, y in zip(a, b, strict=True)]
        return np.column_stack([written, judged, shared, ratios])
