"""Computes what the packed model of udfs/meaning/language_model.py says of each position.

Several sentences form one row, each between its begin and its end, so that many look-ups run at
once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gaixie.udfs.meaning.bucket import TAG_BITS, WAYS, fetch, search
from gaixie.udfs.text.compiled import entry, inner

UNKNOWN, BEGIN, END, FIRST_CHARACTER = 0, 1, 2, 3
"""Numbers of the three symbols that are not characters, and of the first character."""

SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF, _TAG_SHIFT = np.uint64(32), np.uint64(TAG_BITS)
_TAG = np.uint64((1 << TAG_BITS) - 1)


class Tables(NamedTuple):
    """The arrays of a folder, as the kernels read them.

    characters: uint16, (code points,): number of a character; a code point beyond is UNKNOWN.
    unigrams: float32, (numbers, 2): log probability and log backoff weight.
    slots: uint32, (buckets * WAYS,): n-grams of order 2 and more. From the upper bits: 16 of the
    hash, never 0; 8 of the log probability, 1 more than its steps; 8 of the log backoff weight.
    scales: float32, (order - 1, 2): what a step of either is, in nats (negative), by order.
    """

    characters: np.ndarray
    unigrams: np.ndarray
    slots: np.ndarray
    scales: np.ndarray


class Positions(NamedTuple):
    """A row of positions: those of some sentences, each preceded by its begin."""

    ids: np.ndarray  # uint16, (positions,): BEGIN, characters, END of a sentence after the other
    hashes: np.ndarray  # uint64, (positions,): of the n-grams that end there, of one order
    starts: np.ndarray  # uint32, (order - 1, positions): first slot of an n-gram's bucket
    tags: np.ndarray  # uint32, (order - 1, positions): the upper bits of its slot
    grams: np.ndarray  # uint16, (order - 1, positions): its lower bits, 0 if it has no slot
    matched: np.ndarray  # uint8, (positions,): order of the longest n-gram that ends there
    log_p: np.ndarray  # float32, (positions,)
    gains: np.ndarray  # float32, (positions,): log_p minus that of the unigram


def positions(count: int, order: int) -> Positions:
    """Allocates so many positions."""
    grams = (order - 1, count)
    arrays: list[np.ndarray] = [
        np.empty(count, np.uint16),
        np.empty(count, np.uint64),
        *np.zeros((2, *grams), np.uint32),  # where no n-gram ends yet, any bucket will do
        np.empty(grams, np.uint16),
        np.empty(count, np.uint8),
        *np.empty((2, count), np.float32),
    ]
    return Positions(*arrays)


@njit(cache=True, nogil=True)
def extend_hash(value, character):
    """Extends the hash of an n-gram by a character before it. Both uint64."""
    value = (value ^ character) * _FACTOR
    return value ^ (value >> _HALF)


@njit(cache=True, nogil=True)
def first_slot(value, buckets):
    """Returns the first slot of a hash's bucket. buckets: uint64."""
    return (((value >> _HALF) * buckets) >> _HALF) * np.uint64(WAYS)


@inner
def number(text, characters, ids, at):
    """Writes a sentence at ids[at:]; returns where the next one goes."""
    ids[at] = BEGIN
    at += 1
    for code in text:
        ids[at] = characters[code] if code < len(characters) else UNKNOWN
        at += 1
    ids[at] = END
    return at + 1


@entry
def read_text(text, tables, room):
    """Fills room for one sentence, uint32."""
    read(number(text, tables.characters, room.ids, 0), tables, room)


@inner
def read(count, tables, room):
    """Fills room.log_p, gains and matched for the first count positions, by their ids.

    The values at a begin are meaningless.
    """
    ids, grams = room.ids[:count], room.grams
    _hash(ids, len(tables.slots), room.hashes, room.starts, room.tags)
    for k in range(len(tables.scales)):
        _look_up(tables.slots, room.starts[k], room.tags[k], grams[k, :count])
    _forget_crossing(ids, grams)
    _interpolate(ids, tables, grams, room.log_p, room.gains, room.matched)


@inner
def _hash(ids, slots, hashes, starts, tags):
    """Computes where to look up the n-grams of each order that end at each position."""
    buckets = np.uint64(slots // WAYS)
    for t in range(len(ids)):
        hashes[t] = extend_hash(SEED, np.uint64(ids[t]))
    for k in range(len(starts)):
        here, start, tag = hashes[k + 1 : len(ids)], starts[k, k + 1 :], tags[k, k + 1 :]
        for t in range(len(here)):
            value = extend_hash(here[t], np.uint64(ids[t]))
            here[t] = value
            start[t] = first_slot(value, buckets)
            tag[t] = max(value & _TAG, np.uint64(1)) << _TAG_SHIFT


@inner
def _look_up(slots, starts, tags, grams):
    """Sets grams of an order to their stored values."""
    for t in range(len(grams)):
        fetch(slots, np.uint64(starts[t]))
    for t in range(len(grams)):
        grams[t] = search(slots, np.uint64(starts[t]), tags[t])


@inner
def _forget_crossing(ids, grams):
    """Sets to 0 the n-grams that cross a begin, or begin before the row."""
    for t in range(len(ids)):
        if ids[t] == BEGIN:
            for k in range(len(grams)):
                grams[k, t : min(t + k + 1, len(ids))] = 0


@inner
def _interpolate(ids, tables, grams, log_p, gains, matched):
    """Computes log_p, gains and matched from the looked-up n-grams."""
    unigrams, scales = tables.unigrams, tables.scales
    log_p, gains, matched = log_p[1 : len(ids)], gains[1 : len(ids)], matched[1 : len(ids)]
    row, step = grams[0, 1:], scales[0, 0]
    for t in range(len(log_p)):
        gram, alone = np.int32(row[t]), unigrams[ids[t + 1], 0]
        log_p[t] = np.float32((gram >> 8) - 1) * step if gram else alone + unigrams[ids[t], 1]
        matched[t] = 2 if gram else 1
        gains[t] = alone
    for k in range(1, len(scales)):
        row, contexts = grams[k, 1:], grams[k - 1]
        step, backoff_step = scales[k, 0], scales[k - 1, 1]
        for t in range(len(log_p)):
            gram = np.int32(row[t])
            backoff = np.float32(np.int32(contexts[t] & 0xFF)) * backoff_step
            log_p[t] = np.float32((gram >> 8) - 1) * step if gram else log_p[t] + backoff
            matched[t] = k + 2 if gram else matched[t]
    for t in range(len(log_p)):
        gains[t] = log_p[t] - gains[t]
