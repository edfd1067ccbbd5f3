"""Components of identified pairs in, as Spark has them; pairs, leftovers and members of clusters out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from gaixie.jobs.pairs.cluster.identify import Identifier
from gaixie.jobs.pairs.cluster.link import Cluster, Component, Linker, Sentence
from gaixie.jobs.pairs.cluster.minhash import overlaps
from gaixie.jobs.pairs.versions import OVER_LIMIT

LINKED = "reason string, node bigint, source string, paraphrase string, group string"
"""A pair (reason null), a sentence that is in none though it is in a cluster, or MEMBER: a node's cluster."""

MEMBER = "member"

SENTENCES = 5_000
"""Linked at once, or a component alone."""

COLUMNS = ("reason", "node", "source", "paraphrase", "group")
TYPES = (pa.string(), pa.int64(), pa.string(), pa.string(), pa.string())


def link_groups(
    batches: Iterable[pa.RecordBatch],
    linker: Linker,
    identifier: Identifier,
    copy: tuple[int, float],
    seed: int,
    both: bool,
    most: int | None,
) -> Iterator[pa.RecordBatch]:
    """Rows LINKED of components: columns sentences, a list of (node, id, text, cluster), and edges, of (a, b).

    copy: n of the n-grams, and the overlap from which on two sentences are copies, and no pair.
    """

    def score(sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        scores = identifier.scores(sources, paraphrases)
        a, b = pa.array(sources, pa.string()), pa.array(paraphrases, pa.string())
        return np.where(overlaps(a, b, copy[0]) >= copy[1], np.float32(-1), scores)

    waiting: list[Component] = []
    size = 0
    for batch in batches:
        for row in range(batch.num_rows):
            waiting.append(_component(batch.slice(row, 1).to_pylist()[0]))
            size += len(waiting[-1].sentences)
            if size >= SENTENCES:
                yield _rows(waiting, linker.link(waiting, score), seed, both, most)
                waiting, size = [], 0
    yield _rows(waiting, linker.link(waiting, score), seed, both, most)


def _component(group: dict[str, Any]) -> Component:
    sentences = sorted((Sentence(**s) for s in group["sentences"]), key=lambda s: s.node)
    index = {sentence.node: k for k, sentence in enumerate(sentences)}
    pairs = sorted(
        (min(index[e["a"]], index[e["b"]]), max(index[e["a"]], index[e["b"]]))
        for e in group["edges"]
    )
    return Component(sentences, dict.fromkeys(pairs, True))


def _rows(
    components: list[Component],
    linked: list[list[Cluster]],
    seed: int,
    both: bool,
    most: int | None,
) -> pa.RecordBatch:
    rows: list[tuple[str | None, int | None, str | None, str | None, str]] = []
    for component, clusters in zip(components, linked, strict=True):
        for cluster in clusters:
            joined = [component.sentences[index] for index in cluster.members]
            joined = [sentence for sentence in joined if sentence.cluster is None]
            rows += [(MEMBER, s.node, s.text, None, cluster.id) for s in joined]
            texts = [
                (component.sentences[a].text, component.sentences[b].text) for a, b in cluster.pairs
            ]
            pairs = choose(texts, seed, both, most)
            rows += [(None, None, a, b, cluster.id) for a, b in pairs]
            used = {text for pair in pairs for text in pair}
            rows += [
                (OVER_LIMIT, s.node, s.text, None, cluster.id)
                for s in joined
                if s.new and s.text not in used
            ]
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(COLUMNS))


def choose(
    pairs: list[tuple[str, str]], seed: int, both: bool, most: int | None
) -> list[tuple[str, str]]:
    """The pairs in one direction, which a hash chooses, or in both; of them the `most` with the least hash."""

    def code(text: str) -> int:
        return xxh3_64_intdigest(text.encode(), seed)

    directed = [pair if code(pair[0]) < code(pair[1]) else pair[::-1] for pair in pairs]
    if both:
        directed += [(b, a) for a, b in directed]
    if most is not None and len(directed) > most:
        directed = sorted(directed, key=lambda pair: (code("\n".join(pair)), pair))[:most]
    return directed
