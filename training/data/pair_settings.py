"""Which pairs a stage learns from, how often, and the degree of change that the model is told."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.self_bleu import SelfBLEU
from gaixie.udfs.storage.settings import Strict


class PairSettings(Strict):
    """Which pairs a stage learns from, and how often in an epoch: a part of the section ``data``."""

    model_config = ConfigDict(frozen=True)

    min_meaning: float | None = Field(default=None, ge=0, le=1)
    """Judged meaning, as the run has it: pairs below it are passed over. Likewise:"""
    min_fluency: float | None = Field(default=None, ge=0, le=1)
    max_self_bleu: float | None = Field(default=None, ge=0, le=100)
    """Pairs whose paraphrase has a higher Self-BLEU, of words, are passed over: MultiPIT (Dou et al. 2022)
    leaves out what is above 14, so that the model learns to change more."""
    max_partners: int | None = Field(default=None, ge=1)
    """Pairs of a source in a block, drawn anew for each epoch; None: all."""
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default={})
    """How often the pairs of an origin count: 2 is twice, 0.5 every other one by chance. Default: 1."""
    degrees: bool = False
    """Tell the model the degree of change of each pair, see degree_of, so that it can be asked for one."""

    @model_serializer(mode="wrap")
    def _unless_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what came later, where it is not set: checkpoints of before compare equal."""
        values: dict[str, Any] = dump(self)
        return {k: v for k, v in values.items() if k != "max_self_bleu" or v is not None}

    def columns(self) -> list[str]:
        """What they need, beside source and paraphrase."""
        names = [name for name in FLOORS if getattr(self, f"min_{name}") is not None]
        names += CHANGE if self.degrees else ()
        return names + ["origin"] * bool(self.weights)

    def choose(self, table: pa.Table, random: np.random.Generator) -> pa.Table:
        """The pairs of a table that are above the floors, each as often as its origin counts."""
        for name in FLOORS:
            if (floor := getattr(self, f"min_{name}")) is not None:
                table = table.filter(pc.greater_equal(table[name], floor))
        if self.max_self_bleu is not None:
            pairs = Pairs(*(_whole(table[name]) for name in ("source", "paraphrase")))
            copied = SelfBLEU(tokenize="zh-word").sentence_scores(pairs)
            table = table.filter(pa.array(copied <= self.max_self_bleu))
        if self.weights:
            weight = np.ones(len(table))
            for origin, value in self.weights.items():
                weight[pc.equal(table["origin"], origin).to_numpy()] = value
            times = np.floor(weight + random.random(len(table))).astype(int)
            table = table.take(np.repeat(np.arange(len(table)), times))
        if self.max_partners is not None:
            table = table.filter(pa.array(_partners(table["source"], random) < self.max_partners))
        return table


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().cast(pa.string())


FLOORS = ("meaning", "fluency")
CHANGE = ("structure", "synonyms")
UNTOLD = 0.15
"""Share of the training pairs whose degree the model is not told, so that it can do without."""
DEGREE_EDGES = (0.08, 0.15, 0.22, 0.3)
"""Where degrees 2, 3, 4 and 5 begin."""


def degree_of(structure: np.ndarray, synonyms: np.ndarray) -> np.ndarray:
    """The degree of change, 1 to 5, of judged pairs: by the mean of the two judgements of change."""
    return 1 + np.searchsorted(DEGREE_EDGES, (structure + synonyms) / 2, side="right")


def _partners(source: pa.ChunkedArray, random: np.random.Generator) -> np.ndarray:
    """Of each row, how many rows of the same source come before it in a random order."""
    codes = pc.rank(source, tiebreaker="dense").to_numpy()
    order = random.permutation(len(codes))
    grouped = order[np.argsort(codes[order], kind="stable")]
    own = codes[grouped]
    first = np.concatenate([[True], own[1:] != own[:-1]])[: len(own)]
    starts = np.maximum.accumulate(np.where(first, np.arange(len(own)), 0))
    before = np.empty(len(codes), int)
    before[grouped] = np.arange(len(own)) - starts
    return before
