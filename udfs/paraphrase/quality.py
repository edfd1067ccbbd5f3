"""Says how likely a reader accepts a draft: that it keeps the meaning and is good Chinese.

    quality = Quality.load()
    quality(sources, drafts)        # for each pair a Reading

Two linear models over what the writer, the pair encoder (in both directions) and SPScore-zh say of
the draft: a logistic regression of acceptance (meaning and fluency of 4 or more out of 5), and a
ridge regression of the raters' overall judgement. quality.json has their weights, once for drafts
whose likelihood is known and once for others; research/fit_quality.py fits them to rated drafts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder, load_pair_encoder
from gaixie.udfs.paraphrase.prompt import overlap
from gaixie.udfs.paraphrase.writer import Draft
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.text.normalise import normalise

FILE = Path(__file__).with_name("quality.json")
READ = [TASKS.index(name) for name in ("same", "fluent", "good")]
LIKELIHOOD = ("likelihood", "weakest")
COLUMNS = (
    *LIKELIHOOD,
    *("same", "fluent", "good", "doubt"),
    *("same_back", "fluent_back", "good_back", "doubt_back"),
    *(f"{tier}_{name}" for tier in ("core", "full") for name in OUTPUTS),
    *("overlap", "length"),
)
"""Of the writer, of the encoder, of the encoder with source and draft exchanged, of SPScore-zh; the
share of common character pairs and triples; the logarithm of the ratio of lengths."""


class Reading(NamedTuple):
    """What is expected of a pair."""

    accepted: float
    """The probability that a reader accepts the draft."""
    overall: float
    """The expected overall judgement, 0 to 1."""
    judgements: dict[str, float]
    """Of SPScore-zh, tier full, by name."""

    @property
    def worth(self) -> float:
        """By what the best draft is chosen: a bold one must be as likely to be accepted."""
        return self.accepted**2 * self.overall


class Quality:
    """The two models, and what reads for them."""

    def __init__(self, weights: dict[str, Any], encoder: PairEncoder | None = None):
        """weights: what quality.json holds."""
        self.weights, self.encoder = weights, encoder or load_pair_encoder()
        self.metrics = {tier: SPScore.load(tier) for tier in ("core", "full")}

    @classmethod
    def load(cls, path: Path = FILE) -> Quality:
        """Loads the models that ship."""
        return cls(json.loads(path.read_text("utf-8")))

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
        first = COLUMNS.index(f"full_{OUTPUTS[0]}")
        judged = columns[:, first : first + len(OUTPUTS)].tolist()
        return [
            Reading(float(a), float(o), dict(zip(OUTPUTS, row, strict=True)))
            for a, o, row in zip(accepted, overall, judged, strict=True)
        ]

    def columns(self, sources: Sequence[str], drafts: Sequence[Draft]) -> np.ndarray:
        """Returns COLUMNS of each pair: float64, shape (pairs, columns)."""
        a, b = [*map(normalise, sources)], [normalise(draft.text) for draft in drafts]
        read = []
        for source, paraphrase in ((a, b), (b, a)):
            found, doubts = self.encoder.read(source, paraphrase)
            doubt = [own.max(initial=0.0) for own in doubts]
            read.append(np.column_stack([found[:, READ], doubt]))
        judged = [metric.outputs(a, b).astype(float) for metric in self.metrics.values()]
        written = [(draft.likelihood, draft.weakest) for draft in drafts]
        ratios = [math.log(max(1, len(y)) / max(1, len(x))) for x, y in zip(a, b, strict=True)]
        shared = [overlap(x, y) for x, y in zip(a, b, strict=True)]
        return np.column_stack([written, *read, *judged, shared, ratios])
