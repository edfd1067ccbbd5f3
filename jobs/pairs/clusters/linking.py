"""Cuts components of identified pairs into clusters: transitive, but guarded against chains.

If a says what b does and b what c does, a may still be far from c. So a component of the graph of
identified pairs is cut into stars (Aslam, Pelekhov and Rus, "The star clustering algorithm for
static and dynamic information organization", 2004): by falling degree, each sentence that is in no
star becomes a centre, and its neighbours that are in no star become its satellites. Then all pairs
of a star are identified, including those that shared no bucket. A satellite stays if it is
identified with the centre and with a minimum share of the members (star-like clusterings keep their
precision: Hassanzadeh, Chiang, Lee and Miller, "Framework for evaluating clustering algorithms in
duplicate detection", 2009). Sentences that leave make stars among themselves, or join a
neighbouring star under the same conditions.

A cluster's id is that of its centre. Published clusters are seeds: sentences join them, no two of
them merge, and their centres never change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import pyarrow as pa
from xxhash import xxh3_64_intdigest

from gaixie.jobs.pairs.clusters.candidates import Identifier
from gaixie.jobs.pairs.clusters.minhash import overlaps
from gaixie.jobs.pairs.method import OVER_LIMIT

LINKED = "reason string, node bigint, source string, paraphrase string, group string"
"""Columns of a pair (the reason is null), of a cluster's sentence that is in no pair, or of a
MEMBER of a cluster."""

LINKED_ARROW = pa.schema(
    [(name, pa.int64() if name == "node" else pa.string()) for name in LINKED.split()[::2]]
)

MEMBER = "member"

SENTENCES = 5_000
"""Sentences linked at once; a larger component is linked by itself."""

COMPARED = 50
"""Members of a cluster, the centre first, that are identified with each other; further members are
compared only with these."""

PROPOSALS = 3
"""Clusters that a sentence tries to join: those with which it has the most pairs."""

Pair = tuple[int, int]
"""Two indexes, the smaller first."""


class Sentence(NamedTuple):
    """A node of the graph."""

    node: int
    id: str
    text: str
    cluster: str | None
    """The published cluster that has the sentence."""
    new: bool = True
    """Whether this run read it."""


@dataclass
class Component:
    """A connected part of the graph, and what is known of its pairs."""

    sentences: list[Sentence]
    """Sorted by node."""
    alike: dict[Pair, bool] = field(default_factory=dict)
    """Whether two sentences say the same."""
    clusters: list[list[int]] = field(default_factory=list)
    """Members by index, the centre first; at first those of published clusters."""

    def __post_init__(self) -> None:
        published: dict[str, list[int]] = {}
        for index, sentence in enumerate(self.sentences):
            if sentence.cluster is not None:
                published.setdefault(sentence.cluster, []).append(index)
        for name, members in sorted(published.items()):
            members.sort(key=lambda index: (self.sentences[index].id != name, index))
            self.clusters.append(members)

    def known(self, a: int, b: int) -> bool:
        return self.alike.get((min(a, b), max(a, b)), False)

    def near(self) -> dict[int, set[int]]:
        """Returns the identified neighbours of each index."""
        sets: dict[int, set[int]] = {index: set() for index in range(len(self.sentences))}
        for (a, b), same in self.alike.items():
            if same:
                sets[a].add(b)
                sets[b].add(a)
        return sets

    def cluster_of(self) -> dict[int, int]:
        """Maps each clustered member to its cluster's number."""
        return {member: k for k, cluster in enumerate(self.clusters) for member in cluster}

    def share(self, index: int, members: Sequence[int]) -> float:
        """Returns the share of the other members with which a sentence is identified."""
        others = [member for member in members if member != index]
        return sum(self.known(index, member) for member in others) / len(others)

    def stars(self) -> list[list[int]]:
        """Returns stars of two members or more among the sentences in no cluster: the centre, then
        at most COMPARED - 1 satellites by falling degree."""
        near, where = self.near(), self.cluster_of()
        free = near.keys() - where.keys()
        order = sorted(free, key=lambda index: (-len(near[index] & free), index))
        rank = {index: place for place, index in enumerate(order)}
        stars = []
        for centre in order:
            satellites = near[centre] & free
            if centre in free and satellites:
                star = [centre, *sorted(satellites, key=rank.__getitem__)]
                stars.append(star[:COMPARED])
                free -= {*star}
        return stars

    def proposals(self) -> list[tuple[int, int]]:
        """Returns (index, cluster) of each sentence without a cluster and the PROPOSALS clusters
        with which it has the most pairs."""
        where, near = self.cluster_of(), self.near()
        proposals: list[tuple[int, int]] = []
        for index in near.keys() - where.keys():
            counts = Counter(where[n] for n in near[index] if n in where)
            order = sorted(counts, key=lambda cluster: (-counts[cluster], cluster))
            proposals += [(index, cluster) for cluster in order[:PROPOSALS]]
        return proposals

    def pairs(self) -> list[list[Pair]]:
        """Returns the identified pairs of each cluster, without those of two published
        sentences."""
        where = self.cluster_of()
        pairs: list[list[Pair]] = [[] for _ in self.clusters]
        for (a, b), same in sorted(self.alike.items()):
            old = self.sentences[a].cluster and self.sentences[b].cluster
            if same and a in where and where[a] == where.get(b) and not old:
                pairs[where[a]].append((a, b))
        return pairs


@dataclass(frozen=True)
class Linking:
    """Links batches of components; a function for mapInArrow.

    min_share: share of a cluster's members with which each member must be identified. copies: the
    overlap at which two sentences count as copies, not as a pair. most: maximum pairs of a cluster,
    those with the least hash; None keeps all.
    """

    identifier: Identifier
    min_share: float
    copies: float
    seed: int
    most: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields rows LINKED for components: columns sentences and edges, lists of structs."""
        waiting: list[Component] = []
        for batch in batches:
            for row in range(batch.num_rows):
                waiting.append(_component(batch.slice(row, 1).to_pylist()[0]))
                if sum(len(component.sentences) for component in waiting) >= SENTENCES:
                    yield self._rows(waiting)
                    waiting = []
        yield self._rows(waiting)

    def link(self, components: list[Component]) -> None:
        """Makes the clusters of each component; the pairs of all components are identified at
        once."""
        self._join(components)
        for _ in range(2):  # those that leave a star may make another
            self._cut(components)
        self._join(components)

    def same(self, sources: Sequence[str], paraphrases: Sequence[str]) -> Iterable[bool]:
        """Tells which pairs say the same, and are no copies."""
        a, b = pa.array(sources, pa.string()), pa.array(paraphrases, pa.string())
        scores = self.identifier.scores(sources, paraphrases)
        return (scores >= self.identifier.least) & (overlaps(a, b) < self.copies)

    def _identify(self, components: list[Component], wanted: list[set[Pair]]) -> None:
        """Decides which of the wanted pairs of each component say the same, unless that is
        known."""
        asked = [
            (component, pair)
            for component, pairs in zip(components, wanted, strict=True)
            for pair in sorted(pairs - component.alike.keys())
        ]
        if asked:
            a, b = ([c.sentences[pair[side]].text for c, pair in asked] for side in (0, 1))
            for (component, pair), same in zip(asked, self.same(a, b), strict=True):
                component.alike[pair] = bool(same)

    def _cut(self, components: list[Component]) -> None:
        """Cuts the sentences without a cluster into stars, from which the members leave that are
        identified with too few others."""
        stars = [component.stars() for component in components]
        wanted = [
            {(min(pair), max(pair)) for star in some for pair in combinations(star, 2)}
            for some in stars
        ]
        self._identify(components, wanted)
        for component, some in zip(components, stars, strict=True):
            for members in some:
                while len(members) > 2:
                    share, worst = min((component.share(k, members), k) for k in members[1:])
                    if share >= self.min_share:
                        break
                    members.remove(worst)
                component.clusters.append(members)

    def _join(self, components: list[Component]) -> None:
        """Lets each sentence without a cluster join the best cluster with which it has a pair."""
        proposals = [component.proposals() for component in components]
        wanted = [
            {(min(k, m), max(k, m)) for k, cluster in some for m in c.clusters[cluster][:COMPARED]}
            for c, some in zip(components, proposals, strict=True)
        ]
        self._identify(components, wanted)
        for component, some in zip(components, proposals, strict=True):
            best: dict[int, tuple[float, str, int]] = {}
            for index, cluster in some:
                members = component.clusters[cluster][:COMPARED]
                share = component.share(index, members)
                if component.known(index, members[0]) and share >= self.min_share:
                    rank = (-share, component.sentences[members[0]].id, cluster)
                    best[index] = min(best.get(index, rank), rank)
            for index, (_, _, cluster) in sorted(best.items()):
                component.clusters[cluster].append(index)

    def _rows(self, components: list[Component]) -> pa.RecordBatch:
        self.link(components)
        rows: list[tuple[Any, ...]] = []
        for component in components:
            sentences = component.sentences
            for members, found in zip(component.clusters, component.pairs(), strict=True):
                group = sentences[members[0]].id
                joined = [s for s in (sentences[k] for k in members) if s.cluster is None]
                rows += [(MEMBER, s.node, s.text, None, group) for s in joined]
                texts = [(sentences[a].text, sentences[b].text) for a, b in found]
                pairs = choose(texts, self.seed, self.most)
                rows += [(None, None, *pair, group) for pair in pairs]
                used = {text for pair in pairs for text in pair}
                left = (s for s in joined if s.new and s.text not in used)
                rows += [(OVER_LIMIT, s.node, s.text, None, group) for s in left]
        dicts = [dict(zip(LINKED_ARROW.names, row, strict=True)) for row in rows]
        return pa.RecordBatch.from_pylist(dicts, LINKED_ARROW)


def _component(group: dict[str, Any]) -> Component:
    sentences = sorted((Sentence(**s) for s in group["sentences"]), key=lambda s: s.node)
    index = {sentence.node: k for k, sentence in enumerate(sentences)}
    ends = ((index[edge["a"]], index[edge["b"]]) for edge in group["edges"])
    return Component(sentences, dict.fromkeys(sorted((min(e), max(e)) for e in ends), True))


def choose(pairs: list[tuple[str, str]], seed: int, most: int | None) -> list[tuple[str, str]]:
    """Returns the pairs in the direction that a hash chooses; at most `most` of them, those with
    the least hash."""

    def code(text: str) -> int:
        return xxh3_64_intdigest(text.encode(), seed)

    directed = [pair if code(pair[0]) < code(pair[1]) else pair[::-1] for pair in pairs]
    if most is not None and len(directed) > most:
        directed = sorted(directed, key=lambda pair: (code("\n".join(pair)), pair))[:most]
    return directed
