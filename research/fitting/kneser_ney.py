"""Interpolated modified Kneser-Ney estimation in numpy, pruned and packed to a size.

Source: Chen and Goodman 1998, *An Empirical Study of Smoothing Techniques for Language Modeling*.
With c the count of an n-gram, h its context and h' that context without its first character:

    p(w | h) = (c(hw) - D(c(hw))) / sum_v c(hv) + g(h) p(w | h')

The highest order counts occurrences. Lower ones count the different characters before the n-gram,
but occurrences where it begins with BEGIN, before which nothing stands. D is one of three discounts
by count 1, 2, 3 and more, from the counts of counts of the order. Below the unigrams lies the
uniform distribution over everything but BEGIN.

Pruning drops the first summand of an n-gram and gives its mass to g(h), which is 1 less what the
n-grams left in h take: what remains is a distribution again, whichever n-grams go. All orders of a
packed model share one table of buckets; where more n-grams fall into a bucket than it has slots,
the ones that would be missed least go.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning.bucket import WAYS
from gaixie.udfs.meaning.language_model_kernel import BEGIN, SEED, extend_hash, first_slot

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts where the counts of counts give none: a tiny corpus, or one of repetitions."""

_hash, _first_slot = extend_hash.py_func, first_slot.py_func


class Grams(NamedTuple):
    """The different n-grams of an order, sorted by context; a cell each."""

    contexts: np.ndarray  # uint32: row of it without its last character, in the order below
    suffixes: np.ndarray  # uint32: row of it without its first character, in the order below
    first: np.ndarray  # uint16: number of its first character
    occurrences: np.ndarray  # uint32


class Model(NamedTuple):
    """By order, from unigrams up: a cell for each n-gram."""

    probabilities: list[np.ndarray]  # float32: p(w | h), smoothed
    backoffs: list[np.ndarray]  # float32: g of the n-gram as a context; none for the highest order


def count_grams(stream: np.ndarray, order: int, size: int) -> list[Grams]:
    """The n-grams of a stream of character numbers below size, uint16, that never cross BEGIN."""
    numbers = np.arange(size, dtype=np.uint16)
    none = np.zeros(size, np.uint32)
    grams = [Grams(none, none, numbers, np.bincount(stream, minlength=size).astype(np.uint32))]
    rows = stream.astype(np.uint32)  # of the n-gram that ends at a position of the stream
    ends = np.arange(len(stream), dtype=np.uint32)
    inside = stream != BEGIN
    for _ in range(1, order):
        ends = ends[inside[ends - np.uint32(len(grams) - 1)]]
        keys = rows[ends - 1].astype(np.uint64) * np.uint64(size) + stream[ends]
        by_key = np.argsort(keys).astype(np.uint32)
        keys = keys[by_key]
        new = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        firsts = np.flatnonzero(new)
        last = ends[by_key[firsts]]
        contexts = (keys[firsts] // np.uint64(size)).astype(np.uint32)
        occurrences = np.diff(firsts, append=len(keys)).astype(np.uint32)
        grams.append(Grams(contexts, rows[last], grams[-1].first[contexts], occurrences))
        rows[ends[by_key]] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    return grams


def adjusted_counts(grams: list[Grams]) -> list[np.ndarray]:
    """c of each n-gram: see above."""
    counts = []
    for order, above in pairwise(grams):
        before = np.bincount(above.suffixes, minlength=len(order.first)).astype(np.uint32)
        counts.append(np.where(order.first == BEGIN, order.occurrences, before))
    counts.append(grams[-1].occurrences)
    counts[0][BEGIN] = 0
    return counts


def discounts(counts: np.ndarray) -> np.ndarray:
    """D by count 0, 1, 2, and 3 and more."""
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)
    if n.all():
        y = n[0] / (n[0] + 2 * n[1])
        discount = np.array([k - (k + 1) * y * n[k] / n[k - 1] for k in (1, 2, 3)])
        if (discount >= 0).all():
            return np.array([0, *discount])
    return np.array([0, *FALLBACK])


def discounted(counts: np.ndarray) -> np.ndarray:
    return counts - discounts(counts)[np.minimum(counts, 3)].astype(np.float32)


def estimate_shares(grams: list[Grams]) -> list[np.ndarray]:
    """The first summand of p for each n-gram: float32."""
    shares = []
    for order, counts in zip(grams, adjusted_counts(grams), strict=True):
        totals = np.bincount(order.contexts, weights=counts)
        shares.append((discounted(counts) / totals[order.contexts]).astype(np.float32))
    return shares


def interpolate(
    grams: list[Grams], shares: list[np.ndarray], kept: list[np.ndarray] | None = None
) -> Model:
    """The model with the n-grams that are kept, a mask for each order; all where it is None."""
    size = len(shares[0])
    below = shares[0] + np.float32((1 - shares[0].sum(dtype=float)) / (size - 1))
    below[BEGIN] = 1  # never predicted, only a context
    model = Model([below], [])
    for k in range(1, len(grams)):
        order = grams[k]
        share = shares[k] if kept is None else shares[k] * kept[k]
        taken = np.bincount(order.contexts, weights=share, minlength=len(below))
        backoffs = np.maximum(1 - taken, 1e-9).astype(np.float32)
        below = share + backoffs[order.contexts] * below[order.suffixes]
        model.probabilities.append(below)
        model.backoffs.append(backoffs)
    return model


def usefulness(grams: list[Grams], shares: list[np.ndarray], least: list[int]) -> list[np.ndarray]:
    """By how many nats a text as long as this one would be less probable without an n-gram.

    Its discounted occurrences times what it adds to its log probability (the weighted difference of
    Seymore and Rosenfeld 1996). 0 below the least number of occurrences of its order. A context
    counts as much as the most useful n-gram in it, as nothing is found without its weight. Float32,
    by order; of single characters 0, as all are kept.
    """
    full = interpolate(grams, shares)
    uses = [np.zeros(len(share), np.float32) for share in shares]
    for k in range(len(grams) - 1, 0, -1):
        order = grams[k]
        without = full.backoffs[k - 1][order.contexts] * full.probabilities[k - 1][order.suffixes]
        gain = discounted(order.occurrences) * np.log(full.probabilities[k] / without)
        own = np.where(order.occurrences < least[k], 0, gain).astype(np.float32)
        uses[k] = np.maximum(own, uses[k])
        if k > 1:
            np.maximum.at(uses[k - 1], order.contexts, uses[k])
    return uses


def hash_grams(grams: list[Grams]) -> list[np.ndarray]:
    """The hash of each n-gram, uint64, by order."""
    hashes = [_hash(SEED, grams[0].first.astype(np.uint64))]
    for order in grams[1:]:
        hashes.append(_hash(hashes[-1][order.suffixes], order.first.astype(np.uint64)))
    return hashes


def choose(
    grams: list[Grams], shares: list[np.ndarray], least: list[int], most_buckets: int
) -> tuple[list[np.ndarray], int]:
    """Which n-grams of each order find a slot, and the number of buckets: half full, or the
    most."""
    use = np.concatenate(usefulness(grams, shares, least)[1:])
    wanted = np.flatnonzero(use > 0)
    buckets = max(1, min(most_buckets, -(-2 * len(wanted) // WAYS)))
    if len(wanted) > 2 * buckets * WAYS:
        floor = np.partition(use[wanted], -2 * buckets * WAYS)[-2 * buckets * WAYS]
        wanted = np.flatnonzero(use >= floor)
    hashes = np.concatenate(hash_grams(grams)[1:])
    starts = _first_slot(hashes[wanted], np.uint64(buckets))
    wanted = wanted[np.lexsort([-use[wanted], _tags(hashes[wanted]), starts])]
    names = _first_slot(hashes[wanted], np.uint64(buckets)) << np.uint64(16) | _tags(hashes[wanted])
    wanted = wanted[np.append(True, names[1:] != names[:-1])]  # two of one tag: the more useful
    starts = _first_slot(hashes[wanted], np.uint64(buckets))
    by_use = np.lexsort([-use[wanted], starts])
    kept = np.zeros(len(hashes), bool)
    kept[wanted[by_use[_rank(starts[by_use]) < WAYS]]] = True
    characters = np.ones(len(grams[0].first), bool)
    masks = [characters, *np.split(kept, np.cumsum([len(order.first) for order in grams[1:-1]]))]
    for k in range(2, len(grams)):
        masks[k] &= masks[k - 1][grams[k].contexts]
    return masks, buckets


def pack(
    grams: list[Grams], model: Model, kept: list[np.ndarray], buckets: int
) -> dict[str, np.ndarray]:
    """The arrays unigrams, slots and scales of language_model_kernel.Tables."""
    scales = np.zeros((len(grams) - 1, 2), np.float32)
    words, hashes = [], []
    for k, values in enumerate(hash_grams(grams)[1:], 1):
        logs = np.log(model.probabilities[k][kept[k]])
        backoffs = np.zeros(len(logs), np.float32)
        if k + 1 < len(grams):
            backoffs = np.log(model.backoffs[k][kept[k]])
        scales[k - 1] = logs.min(initial=-1e-6) / 254, backoffs.min(initial=-1e-6) / 255
        codes = np.rint(logs / scales[k - 1, 0]).astype(np.uint32) + 1 << 8
        codes |= np.rint(backoffs / scales[k - 1, 1]).astype(np.uint32)
        hashes.append(values[kept[k]])
        words.append(codes | _tags(hashes[-1]) << np.uint32(16))
    starts = _first_slot(np.concatenate(hashes), np.uint64(buckets))
    by_start = np.argsort(starts, kind="stable")
    slots = np.zeros(buckets * WAYS, np.uint32)
    starts = starts[by_start]
    slots[starts.astype(np.int64) + _rank(starts)] = np.concatenate(words)[by_start]
    unigrams = np.log(np.stack([model.probabilities[0], model.backoffs[0]], axis=1))
    return {"unigrams": unigrams.astype(np.float32), "slots": slots, "scales": scales}


def _tags(hashes: np.ndarray) -> np.ndarray:
    return np.maximum(hashes & np.uint64(0xFFFF), 1).astype(np.uint32)


def _rank(values: np.ndarray) -> np.ndarray:
    """Of sorted values, the how-manieth of its equals each is, from 0."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return np.arange(len(values)) - np.repeat(starts, np.diff(starts, append=len(values)))
