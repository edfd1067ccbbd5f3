"""Cuts components of identified pairs into clusters: transitive, but guarded against chains.

If a says what b does and b what c does, a may still be far from c. So a component of the graph of
identified pairs is cut into stars (Aslam, Pelekhov and Rus, "The star clustering algorithm for
static and dynamic information organization", 2004): by falling degree, each sentence that is in no
star becomes a centre, and its neighbours that are in no star become its satellites. Then all pairs
of a star are identified, including those that shared no bucket. A satellite stays if it is
identified with the centre and with a minimum share of the members (star-like clusterings keep their
precision: Hassanzadeh, Chiang, Lee and Miller, "Framework for evaluating clustering algorithms in
duplicate detection", 2009). Sentences that leave make stars among themselves, or join a
neighbouring star under the same conditions. Two stars may merge under these conditions too.

A cluster's id is that of its centre. Published clusters are seeds: sentences join them, no two of
them merge, and their centres never change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

import numpy as np

PROPOSALS = 3
"""Clusters that a sentence tries to join: those with which it has the most pairs."""

Pair = tuple[int, int]
"""Two indexes, the smaller first."""
Score = Callable[[Sequence[str], Sequence[str]], np.ndarray]


class Sentence(NamedTuple):
    """A node of the graph."""

    node: int
    id: str
    text: str
    cluster: str | None
    """The published cluster that has the sentence."""
    new: bool = True
    """Whether this run read it."""


class Cluster(NamedTuple):
    """A cluster. members: indexes, the centre first. pairs: its identified pairs, except those of
    two sentences that were in it before."""

    id: str
    members: list[int]
    pairs: list[Pair]


def pair_of(a: int, b: int) -> Pair:
    """Returns two indexes as a pair, the smaller first."""
    return (a, b) if a < b else (b, a)


@dataclass
class Component:
    """A connected part of the graph, and what is known of its pairs."""

    sentences: list[Sentence]
    """Sorted by node."""
    alike: dict[Pair, bool] = field(default_factory=dict)
    """Whether two sentences say the same."""
    clusters: list[list[int]] = field(default_factory=list)
    """Members by index, the centre first."""

    def known(self, a: int, b: int) -> bool:
        return self.alike.get(pair_of(a, b), False)

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

    def free(self) -> list[int]:
        """Returns the indexes of the sentences that are in no cluster."""
        taken = self.cluster_of()
        return [index for index in range(len(self.sentences)) if index not in taken]

    def share(self, index: int, members: Sequence[int]) -> float:
        """Returns the share of the other members with which a sentence is identified."""
        others = [member for member in members if member != index]
        return sum(self.known(index, member) for member in others) / len(others)


@dataclass(frozen=True)
class Linker:
    """Cuts components into clusters.

    least: minimum score of an identified pair. min_share: share of a cluster's members with which
    each member must be identified. compared: number of members, including the centre, that are
    identified with each other; further members are compared only with these.
    """

    least: float
    min_share: float
    compared: int

    def link(self, components: list[Component], score: Score) -> list[list[Cluster]]:
        """Returns the clusters of each component; calls score four times, each time for all
        components."""
        for component in components:
            component.clusters = _published(component.sentences)
        self._join(components, score)
        self._cut(components, score)
        self._merge(components, score)
        self._join(components, score)
        return [_clusters(component) for component in components]

    def _cut(self, components: list[Component], score: Score) -> None:
        """Cuts the sentences without a cluster into stars, and these into clusters."""
        stars = [[star[: self.compared] for star in _stars(c.near(), c.free())] for c in components]
        wanted = [
            {pair_of(a, b) for star in some for a, b in permutations(star, 2)} for some in stars
        ]
        self._identify(components, wanted, score)
        for component, some in zip(components, stars, strict=True):
            for star in some:
                component.clusters += self._refined(component, star)

    def _identify(self, components: list[Component], wanted: list[set[Pair]], score: Score) -> None:
        """Decides which of the wanted pairs of each component say the same, unless that is
        known."""
        asked = [
            (component, pair)
            for component, pairs in zip(components, wanted, strict=True)
            for pair in sorted(pairs - component.alike.keys())
        ]
        texts = [[c.sentences[index].text for index in pair] for c, pair in asked]
        scores = score([a for a, _ in texts], [b for _, b in texts]) if asked else ()
        for (component, pair), value in zip(asked, scores, strict=True):
            component.alike[pair] = bool(value >= self.least)

    def _refined(self, component: Component, star: list[int]) -> list[list[int]]:
        """Returns the clusters of a star whose pairs are all known."""
        near = {a: {b for b in star if a != b and component.known(a, b)} for a in star}
        rest, refined = star, []
        while stars := _stars(near, rest):
            members = stars[0]
            left = [index for index in rest if index not in set(members)]
            while len(members) > 2:
                share, worst = min((component.share(k, members), k) for k in members[1:])
                if share >= self.min_share:
                    break
                members.remove(worst)
                left.append(worst)
            refined.append(members)
            rest = sorted(left)
        return refined

    def _merge(self, components: list[Component], score: Score) -> None:
        """Merges a new cluster with the one to which it has the most identified pairs, if the
        result holds and has at most `compared` members."""
        proposals = [self._neighbours(component) for component in components]
        wanted = [
            {pair_of(a, b) for k, n in pairs for a in c.clusters[k] for b in c.clusters[n]}
            for c, pairs in zip(components, proposals, strict=True)
        ]
        self._identify(components, wanted, score)
        for component, pairs in zip(components, proposals, strict=True):
            clusters = component.clusters
            for k, other in pairs:
                members = [*clusters[k], *clusters[other]]
                centres = [cluster[0] for cluster in (clusters[k], clusters[other]) if cluster]
                for centre in centres if len(centres) == 2 else ():
                    if self._holds(component, centre, members):
                        clusters[k] = [centre, *(m for m in members if m != centre)]
                        clusters[other] = []
                        break
            component.clusters = list(filter(None, clusters))

    def _neighbours(self, component: Component) -> list[Pair]:
        """Returns pairs of new clusters that may merge."""
        clusters, where = component.clusters, component.cluster_of()
        new = [component.sentences[members[0]].cluster is None for members in clusters]
        links: dict[int, Counter[int]] = {}
        for (a, b), same in component.alike.items():
            k, other = where.get(a), where.get(b)
            if not same or k is None or other is None or k == other or not (new[k] and new[other]):
                continue
            if len(clusters[k]) + len(clusters[other]) <= self.compared:
                links.setdefault(k, Counter())[other] += 1
                links.setdefault(other, Counter())[k] += 1
        best = {k: min(count, key=lambda n: (-count[n], n)) for k, count in links.items()}
        return sorted({pair_of(k, other) for k, other in best.items()})

    def _holds(self, component: Component, centre: int, members: list[int]) -> bool:
        """Returns whether all members are identified with the centre and with a share of the
        others."""
        shares = (component.share(member, members) for member in members)
        known = all(component.known(centre, member) for member in members if member != centre)
        return known and all(share >= self.min_share for share in shares)

    def _join(self, components: list[Component], score: Score) -> None:
        """Lets each sentence without a cluster join the best cluster with which it has a pair."""
        proposals = [_proposals(component) for component in components]
        wanted = [
            {pair_of(index, m) for index, k in some for m in c.clusters[k][: self.compared]}
            for c, some in zip(components, proposals, strict=True)
        ]
        self._identify(components, wanted, score)
        for component, some in zip(components, proposals, strict=True):
            best: dict[int, tuple[float, str, int]] = {}
            for index, cluster in some:
                members = component.clusters[cluster][: self.compared]
                share = component.share(index, members)
                if component.known(index, members[0]) and share >= self.min_share:
                    rank = (-share, component.sentences[members[0]].id, cluster)
                    best[index] = min(best.get(index, rank), rank)
            for index, (_, _, cluster) in best.items():
                component.clusters[cluster].append(index)


def _proposals(component: Component) -> list[tuple[int, int]]:
    """Returns (index, cluster) of each sentence without a cluster and the PROPOSALS clusters with
    which it has the most pairs."""
    where, near = component.cluster_of(), component.near()
    proposals: list[tuple[int, int]] = []
    for index in component.free():
        counts = Counter(where[n] for n in near[index] if n in where)
        order = sorted(counts, key=lambda cluster: (-counts[cluster], cluster))
        proposals += [(index, cluster) for cluster in order[:PROPOSALS]]
    return proposals


def _published(sentences: list[Sentence]) -> list[list[int]]:
    """Returns the members of each published cluster, the centre first."""
    clusters: dict[str, list[int]] = {}
    for index, sentence in enumerate(sentences):
        if sentence.cluster is not None:
            clusters.setdefault(sentence.cluster, []).append(index)
    return [
        sorted(members, key=lambda index: (sentences[index].id != name, index))
        for name, members in sorted(clusters.items())
    ]


def _stars(near: Mapping[int, set[int]], free: Iterable[int]) -> list[list[int]]:
    """Returns stars of two members or more among some sentences: the centre, then satellites by
    falling degree."""
    allowed = set(free)
    near = {index: near[index] & allowed for index in allowed}
    order = sorted(allowed, key=lambda index: (-len(near[index]), index))
    rank = {index: place for place, index in enumerate(order)}
    taken: set[int] = set()
    stars = []
    for centre in order:
        satellites = near[centre] - taken
        if centre not in taken and satellites:
            stars.append([centre, *sorted(satellites, key=rank.__getitem__)])
            taken.update(stars[-1])
    return stars


def _clusters(component: Component) -> list[Cluster]:
    """Returns the clusters with their pairs, without pairs of two published sentences."""
    where, sentences = component.cluster_of(), component.sentences
    pairs: list[list[Pair]] = [[] for _ in component.clusters]
    for (a, b), same in sorted(component.alike.items()):
        together = a in where and where[a] == where.get(b)
        if same and together and not (sentences[a].cluster and sentences[b].cluster):
            pairs[where[a]].append((a, b))
    return [
        Cluster(sentences[members[0]].id, members, mine)
        for members, mine in zip(component.clusters, pairs, strict=True)
    ]
