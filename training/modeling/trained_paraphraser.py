"""Paraphrases with a trained model, and ranks what it writes by the metric.

    paraphraser = TrainedParaphraser.load("runs/first/model")
    paraphraser(["…"], Decoding(draws=8, code="4"))    # for each source its candidates, best first

The best candidate has, in this order: all entities of its source; a meaning of at least
min_meaning; and the highest SPScore-zh. Ranked by the model, candidates keep its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gaixie.training.modeling.generator import Generator
from gaixie.training.modeling.model import load_model
from gaixie.training.settings import Decoding, Ranking
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.text.entities import EntityFinder, load_settings
from gaixie.udfs.text.entities_kept import ENTITIES, entities_kept
from gaixie.udfs.text.normalise import normalise


class Ranked(NamedTuple):
    """A candidate of a source, with its judgements."""

    text: str
    entities: float
    """Percentage of the source's entities that it keeps; NaN for a source without any."""
    judgements: dict[str, float]
    """By name: structure, synonyms, meaning, fluency, spscore."""


class TrainedParaphraser:
    """A generator, and the metric that judges what it writes."""

    def __init__(self, generator: Generator, ranking: Ranking | None = None):
        self.generator, self.ranking = generator, ranking or Ranking()
        self.spscore = SPScore.load(self.ranking.tier)
        self._finder = EntityFinder(load_settings(ENTITIES))

    @classmethod
    def load(cls, folder: str, ranking: Ranking | None = None) -> TrainedParaphraser:
        """Loads the model of a folder. Raises OSError or ValueError, in one line, if it cannot be
        loaded."""
        ranking = ranking or Ranking()
        return cls(Generator(*load_model(folder, ranking.precision)), ranking)

    def __call__(
        self,
        sources: Sequence[str | None],
        decoding: Decoding | None = None,
        progress: Callable[[int], None] = lambda sentences: None,
    ) -> list[list[Ranked]]:
        """Returns the candidates of each source, best first; none for one without text."""
        made = self.generator.candidates(sources, decoding or Decoding(), progress)
        of = [k for k, candidates in enumerate(made) for _ in candidates]
        texts = [text for candidates in made for text in candidates]
        scores = self.spscore.outputs([str(sources[k]) for k in of], texts).astype(float)
        ranked: list[list[Ranked]] = [[] for _ in sources]
        for k, text, row in zip(of, texts, scores, strict=True):
            kept = entities_kept(normalise(str(sources[k])), normalise(text), self._finder)
            ranked[k].append(Ranked(text, kept, dict(zip(OUTPUTS, row.tolist(), strict=True))))
        if self.ranking.rank_by == "spscore":
            ranked = [sorted(candidates, key=self._key) for candidates in ranked]
        return ranked

    def _key(self, candidate: Ranked) -> tuple[bool, bool, float]:
        """Returns a sort key that puts the best first."""
        meant = np.nan_to_num(candidate.judgements["meaning"]) >= self.ranking.min_meaning
        score = float(np.nan_to_num(candidate.judgements["spscore"]))
        return candidate.entities < 100, not meant, -score
