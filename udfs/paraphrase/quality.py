"""Says how likely a reader accepts a draft: that it keeps the meaning and is good Chinese.

    quality = Quality(Judge.load(folder))
    quality(sources, drafts)        # for each pair a Reading

Two linear models over what the writer, the judge, and the pair encoder in both directions say of
the draft: a logistic regression of acceptance (meaning and fluency of 4 or more out of 5), and a
ridge regression of the raters' overall judgement. quality.json has their weights, once for drafts
whose likelihood is known and once for others; research/fit_quality.py fits them to rated drafts
that the judge has not seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from gaixie.udfs.meaning.pair_encoder import TASKS, load_pair_encoder
from gaixie.udfs.paraphrase.judge import JUDGED
from gaixie.udfs.paraphrase.writer import Draft
from gaixie.udfs.text.normalise import normalise

FILE = Path(__file__).with_name("quality.json")
LIKELIHOOD = ("likelihood", "weakest")
READ = ("same", "fluent", "good")
COLUMNS = (*LIKELIHOOD, *JUDGED, *(f"{way}_{name}" for way in ("encoder", "back") for name in READ))
"""Of the writer; logits of the judge; of the encoder, and with source and draft exchanged."""


class Reading(NamedTuple):
    """What is expected of a pair."""

    accepted: float
    """The probability that a reader accepts the draft."""
    overall: float
    """The expected overall judgement, 0 to 1."""


class Quality:
    """The two models, and what reads for them."""

    def __init__(self, judge: Callable[..., np.ndarray], weights: dict[str, Any] | None = None):
        """weights: by default what quality.json holds."""
        self.judge = judge
        self.weights = weights or json.loads(FILE.read_text("utf-8"))

    def __call__(self, sources: Sequence[str], drafts: Sequence[Draft]) -> list[Reading]:
        """Reads each draft beside its source."""
        if not drafts:
            return []
        columns = self.columns(sources, drafts)
        model = self.weights["other" if np.isnan(columns).any() else "written"]
        places = [COLUMNS.index(name) for name in model["columns"]]
        x = (columns[:, places] - model["mean"]) / model["scale"]
        accepted = expit(x @ np.array(model["accepted"]) + model["accepted_bias"])
        overall = (x @ np.array(model["overall"]) + model["overall_bias"]).clip(0, 1)
        return [Reading(float(a), float(o)) for a, o in zip(accepted, overall, strict=True)]

    def columns(self, sources: Sequence[str], drafts: Sequence[Draft]) -> np.ndarray:
        """Returns COLUMNS of each pair: float64, shape (pairs, columns)."""
        judged = self.judge(sources, [draft.text for draft in drafts])
        a, b = [*map(normalise, sources)], [normalise(draft.text) for draft in drafts]
        places = [TASKS.index(name) for name in READ]
        read = [load_pair_encoder().predict(*two)[:, places] for two in ((a, b), (b, a))]
        return np.column_stack([[draft[1:] for draft in drafts], judged, *read])
