"""Links components of identified pairs into clusters; yields pairs, leftovers and members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from gaixie.jobs.pairs.clusters.candidates import Identifier
from gaixie.jobs.pairs.clusters.minhash import overlaps
from gaixie.jobs.pairs.clusters.stars import Cluster, Component, Linker, Sentence, pair_of
from gaixie.jobs.pairs.method import OVER_LIMIT

LINKED = "reason string, node bigint, source string, paraphrase string, group string"
"""Columns of a pair (the reason is null), of a cluster's sentence that is in no pair, or of a
MEMBER of a cluster."""

MEMBER = "member"

SENTENCES = 5_000
"""Sentences linked at once; a larger component is linked by itself."""

ROWS = pa.schema(
    [("reason", pa.string()), ("node", pa.int64())]
    + [(name, pa.string()) for name in ("source", "paraphrase", "group")]
)


@dataclass(frozen=True)
class Linking:
    """Links batches of components; a function for mapInArrow.

    copy: n of the n-grams, and the overlap at which two sentences count as copies, not as a pair.
    most: maximum pairs of a cluster, those with the least hash; None keeps all.
    """

    linker: Linker
    identifier: Identifier
    copy: tuple[int, float]
    seed: int
    both_directions: bool
    most: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields rows LINKED for components: columns sentences and edges, lists of structs."""
        waiting: list[Component] = []
        for batch in batches:
            for row in range(batch.num_rows):
                waiting.append(_component(batch.slice(row, 1).to_pylist()[0]))
                if sum(len(component.sentences) for component in waiting) >= SENTENCES:
                    yield self._link(waiting)
                    waiting = []
        yield self._link(waiting)

    def _score(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        scores = self.identifier.scores(sources, paraphrases)
        a, b = pa.array(sources, pa.string()), pa.array(paraphrases, pa.string())
        return np.where(overlaps(a, b, self.copy[0]) >= self.copy[1], np.float32(-1), scores)

    def _link(self, components: list[Component]) -> pa.RecordBatch:
        linked = self.linker.link(components, self._score)
        made = [
            dict(zip(ROWS.names, row, strict=True))
            for component, clusters in zip(components, linked, strict=True)
            for cluster in clusters
            for row in self._rows(component.sentences, cluster)
        ]
        return pa.RecordBatch.from_pylist(made, ROWS)

    def _rows(self, sentences: list[Sentence], cluster: Cluster) -> Iterator[tuple[Any, ...]]:
        joined = [s for s in (sentences[k] for k in cluster.members) if s.cluster is None]
        for sentence in joined:
            yield MEMBER, sentence.node, sentence.text, None, cluster.id
        texts = [(sentences[a].text, sentences[b].text) for a, b in cluster.pairs]
        pairs = choose(texts, self.seed, self.both_directions, self.most)
        for source, paraphrase in pairs:
            yield None, None, source, paraphrase, cluster.id
        used = {text for pair in pairs for text in pair}
        for sentence in joined:
            if sentence.new and sentence.text not in used:
                yield OVER_LIMIT, sentence.node, sentence.text, None, cluster.id


def _component(group: dict[str, Any]) -> Component:
    sentences = sorted((Sentence(**s) for s in group["sentences"]), key=lambda s: s.node)
    index = {sentence.node: k for k, sentence in enumerate(sentences)}
    pairs = (pair_of(index[edge["a"]], index[edge["b"]]) for edge in group["edges"])
    return Component(sentences, dict.fromkeys(sorted(pairs), True))


def choose(
    pairs: list[tuple[str, str]], seed: int, both: bool, most: int | None
) -> list[tuple[str, str]]:
    """Returns the pairs in one direction, chosen by a hash, or in both; at most `most` of them,
    those with the least hash."""

    def code(text: str) -> int:
        return xxh3_64_intdigest(text.encode(), seed)

    directed = [pair if code(pair[0]) < code(pair[1]) else pair[::-1] for pair in pairs]
    if both:
        directed += [(b, a) for a, b in directed]
    if most is not None and len(directed) > most:
        directed = sorted(directed, key=lambda pair: (code("\n".join(pair)), pair))[:most]
    return directed
