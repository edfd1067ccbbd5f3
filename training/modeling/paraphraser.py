"""Paraphrases by beam search and sampling together, and ranks the candidates by the metric.

    paraphraser = Paraphraser(generator, Decoding(beams=4, draws=8, degree=4), Ranking("spscore"))
    paraphraser(["…"])      # for each source its candidates, the best first, with their judgements

Ranked by the metric, the best candidate has, in this order: all entities of its source; a meaning
of at least min_meaning; and the highest SPScore-zh. Two mean log-probabilities by the model itself
may be added to the score: that of the paraphrase given the source (forward), which is low for text
that reads badly; and that of the source given the paraphrase (reverse), which is low if content is
lost (the noisy channel; Li et al. 2016, section 4.5, rerank by both).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from gaixie.training.modeling.entities_kept import ENTITIES, entities_kept
from gaixie.training.modeling.generator import Decoding, Generator
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.text.entities import EntityFinder, load_settings
from gaixie.udfs.text.normalise import normalise


@dataclass(frozen=True, config=ConfigDict(use_attribute_docstrings=True))
class Ranking:
    """What decides the order of a source's candidates. Raises ValueError for a value out of
    range."""

    rank_by: Literal["model", "spscore"] = "model"
    """What ranks a sentence's candidates: the model, or SPScore-zh, which ranks candidates that
    lost an entity last."""
    min_meaning: float = Field(default=0.0, ge=0, le=1)
    """With spscore: candidates whose judged meaning, 0 to 1, is below this rank last."""
    reverse: float = Field(default=0.0, ge=0)
    """With spscore: weight of log p(sentence | candidate), added to the score."""
    forward: float = Field(default=0.0, ge=0)
    """With spscore: weight of log p(candidate | sentence), added to the score."""


class Ranked(NamedTuple):
    """A candidate of a source, with its judgements."""

    text: str
    log_probability: float
    """Mean over the paraphrase's tokens, by the model."""
    reverse: float
    """Mean log-probability of the source's tokens given the paraphrase; NaN if it was not
    requested."""
    entities: float
    """Percentage of the source's entities that it keeps; NaN for a source without any."""
    judgements: dict[str, float]
    """By name: structure, synonyms, meaning, fluency, spscore."""


class Paraphraser:
    """A generator, and the metric that ranks what it writes.

    decoding.n_best: candidates of each source to return. If the metric ranks, all beams and samples
    are candidates; otherwise the model's n_best.
    """

    def __init__(
        self,
        generator: Generator,
        decoding: Decoding | None = None,
        ranking: Ranking | None = None,
        spscore: SPScore | None = None,
    ):
        self.generator, self.decoding = generator, decoding or Decoding()
        self.ranking = ranking or Ranking()
        self.spscore = spscore or SPScore.load()
        self._finder = EntityFinder(load_settings(ENTITIES))
        self._by_metric = self.ranking.rank_by == "spscore"
        self._pool = self.decoding
        if self._by_metric:
            self._pool = replace(self.decoding, n_best=self.decoding.pool)

    def __call__(
        self,
        sources: Sequence[str | None],
        progress: Callable[[int], None] = lambda sentences: None,
    ) -> list[list[Ranked]]:
        """Returns up to n_best candidates of each source, best first; none for one without text.

        If the metric ranks and a degree is given, a source without a candidate that has all
        entities and enough meaning is written again with one degree less, down to the first.
        """
        answers = self._ranked(sources, self._pool, progress)
        if self._by_metric:
            counts = self.generator.counts.copy()
            for degree in range((self._pool.degree or 1) - 1, 0, -1):
                again = [k for k, own in enumerate(answers) if own and any(self._key(own[0])[:2])]
                pool = replace(self._pool, degree=degree)
                more = self._ranked([sources[k] for k in again], pool)
                for k, others in zip(again, more, strict=True):
                    merged = {candidate.text: candidate for candidate in (*others, *answers[k])}
                    answers[k] = sorted(merged.values(), key=self._key)
            self.generator.counts = counts  # counts what was asked for, not how often
        return [candidates[: self.decoding.n_best] for candidates in answers]

    def _ranked(
        self,
        sources: Sequence[str | None],
        pool: Decoding,
        progress: Callable[[int], None] = lambda sentences: None,
    ) -> list[list[Ranked]]:
        """Returns all candidates of each source."""
        made = self.generator.candidates(sources, pool, progress=progress)
        of = [k for k, candidates in enumerate(made) for _ in candidates]
        texts = [candidate.text for candidates in made for candidate in candidates]
        own = [str(sources[k]) for k in of]
        scores = self.spscore.outputs(own, texts).astype(float)
        reverse = [float("nan")] * len(texts)
        if self.ranking.reverse:
            reverse = self.generator.log_probabilities(texts, own, pool.batch_size)
        ranked: list[list[Ranked]] = [[] for _ in sources]
        flat = (candidate for candidates in made for candidate in candidates)
        for k, candidate, back, row in zip(of, flat, reverse, scores, strict=True):
            source = normalise(str(sources[k]))
            kept = entities_kept(source, normalise(candidate.text), self._finder)
            judgements = dict(zip(OUTPUTS, row.tolist(), strict=True))
            ranked[k].append(Ranked(*candidate, back, kept, judgements))
        if self._by_metric:
            ranked = [sorted(candidates, key=self._key) for candidates in ranked]
        return ranked

    def _key(self, candidate: Ranked) -> tuple[bool, bool, float]:
        """Returns a sort key that puts the best first."""
        score = np.nan_to_num(candidate.judgements["spscore"])
        if self.ranking.reverse:
            score += self.ranking.reverse * candidate.reverse
        if self.ranking.forward:
            score += self.ranking.forward * candidate.log_probability
        meant = np.nan_to_num(candidate.judgements["meaning"]) >= self.ranking.min_meaning
        return candidate.entities < 100, not meant, -float(score)
