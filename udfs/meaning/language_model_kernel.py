"""Kernels of udfs/meaning/language_model.py: look-ups in the packed model, and a pair's columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

UNKNOWN, BEGIN, END, FIRST_CHARACTER = 0, 1, 2, 3
"""Numbers of what is no character of the vocabulary, and of the first that is."""
PAD = 0xFFFF
"""What stands before BEGIN; no n-gram has it."""
WAYS = 16
"""Slots of a bucket: one cache line, so that a look-up costs one miss at most."""
HEADS = 1024

RARE, VERY_RARE, SURPRISING = np.float32(-8), np.float32(-11), np.float32(-7)
"""Log probabilities below which a character counts as such, in nats."""

SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF, _TAG_BITS = np.uint64(32), np.uint64(16)
_TAG = np.uint64(0xFFFF)
_MATCH = np.uint32(1 << 16)


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


class Side(NamedTuple):
    """Room for one sentence. The position behind its last character is that of its end."""

    ids: np.ndarray  # uint16, (order + length,): PAD..., BEGIN, characters, END
    starts: np.ndarray  # uint32, (order - 1, positions): first slot of an n-gram's bucket
    tags: np.ndarray  # uint32, (order - 1, positions): what its slot has in the upper bits
    grams: np.ndarray  # uint16, (order - 1, positions): its lower bits, 0 where it has no slot
    matched: np.ndarray  # uint8, (positions,): order of the longest n-gram that ends there
    log_p: np.ndarray  # float32, (positions,)
    gains: np.ndarray  # float32, (positions,): log_p less that of the unigram
    joints: np.ndarray  # uint8, (positions + 1,); the last cell is always 1
    touched: np.ndarray  # uint32, (1,): of no meaning


class Room(NamedTuple):
    a: Side
    b: Side
    heads: np.ndarray  # int32, (HEADS,), all -1 between pairs
    chain: np.ndarray  # int32, (positions of a,)


@njit(cache=True, nogil=True)
def extend_hash(value, character):
    """The hash of an n-gram from that of the one without its first character. Both uint64."""
    value = (value ^ character) * _FACTOR
    return value ^ (value >> _HALF)


@njit(cache=True, nogil=True)
def first_slot(value, buckets):
    """Of the bucket of a hash. buckets: uint64."""
    return (((value >> _HALF) * buckets) >> _HALF) * np.uint64(WAYS)


@njit(cache=True, nogil=True)
def tag(value):
    return np.uint32(max(value & _TAG, np.uint64(1)) << _TAG_BITS)


@njit(cache=True, nogil=True)
def look_up(slots, start, wanted):
    """Lower bits of the slot with this tag; 0 where the bucket has none. Free of branches."""
    found = np.uint32(0)
    for k in range(WAYS):
        rest = np.uint32(slots[start + np.uint64(k)] ^ wanted)
        found |= rest if rest < _MATCH else np.uint32(0)
    return found


@njit(cache=True, nogil=True)
def log_probabilities_kernel(text, tables, side):
    """Fills side.log_p, gains and matched for text, uint32 (n,): n characters, then the end."""
    n = len(text)
    characters, unigrams, slots, scales = tables
    ids, starts, tags, grams, matched, log_p, gains, _, _ = side
    orders = len(scales)
    ids[: orders - 1] = PAD
    ids[orders - 1] = BEGIN
    for i in range(n):
        ids[orders + i] = characters[text[i]] if text[i] < len(characters) else UNKNOWN
    ids[orders + n] = END

    buckets = np.uint64(len(slots) // WAYS)
    for i in range(n + 1):
        value = extend_hash(SEED, np.uint64(ids[orders + i]))
        for k in range(orders):
            value = extend_hash(value, np.uint64(ids[orders + i - k - 1]))
            starts[k, i] = first_slot(value, buckets)
            tags[k, i] = tag(value)
    # First all buckets are touched, with nothing between: the processor fetches many at a time.
    touched = np.uint32(0)
    for k in range(orders):
        for i in range(n + 1):
            touched |= slots[starts[k, i]]
    side.touched[0] = touched  # so that the compiler leaves the loop in
    for k in range(orders):
        for i in range(n + 1):
            grams[k, i] = look_up(slots, np.uint64(starts[k, i]), tags[k, i])
        grams[k, : min(k, n + 1)] = 0  # these began before BEGIN

    _interpolate(n + 1, unigrams, scales, ids[orders - 1 :], grams, matched, log_p, gains)


@njit(cache=True, nogil=True)
def _interpolate(count, unigrams, scales, ids, grams, matched, log_p, gains):
    """From what was looked up to log_p, gains and matched. ids: from BEGIN on."""
    for i in range(count):
        alone = unigrams[ids[i + 1], 0]
        gram = np.int32(grams[0, i])
        step = scales[0, 0]
        log_p[i] = np.float32((gram >> 8) - 1) * step if gram else alone + unigrams[ids[i], 1]
        matched[i] = 2 if gram else 1
        gains[i] = alone
    for k in range(1, len(scales)):
        step, backoff_step = scales[k, 0], scales[k - 1, 1]
        row, contexts = grams[k], grams[k - 1]
        for i in range(1, count):  # at 0 there is no context but BEGIN
            gram = np.int32(row[i])
            backoff = np.float32(np.int32(contexts[i - 1] & 0xFF)) * backoff_step
            log_p[i] = np.float32((gram >> 8) - 1) * step if gram else log_p[i] + backoff
            matched[i] = k + 2 if gram else matched[i]
    for i in range(count):
        gains[i] = log_p[i] - gains[i]


@njit(cache=True, nogil=True)
def mark_joints(n, m, orders, room):
    """Sets joints: 0 where the bigram that ends there also occurs in the other sentence, else 1."""
    heads, chain = room.heads, room.chain
    joints_a, joints_b = room.a.joints, room.b.joints
    ids_a, ids_b = room.a.ids[orders - 1 :], room.b.ids[orders - 1 :]
    for i in range(n + 1):
        head = _head(ids_a[i], ids_a[i + 1])
        chain[i] = heads[head]
        heads[head] = i
        joints_a[i] = 1
    joints_a[n + 1] = 1
    for j in range(m + 1):
        i = heads[_head(ids_b[j], ids_b[j + 1])]
        joints_b[j] = 1
        while i >= 0:
            if ids_a[i] == ids_b[j] and ids_a[i + 1] == ids_b[j + 1]:
                joints_a[i] = 0
                joints_b[j] = 0
            i = chain[i]
    joints_b[m + 1] = 1
    for i in range(n + 1):
        heads[_head(ids_a[i], ids_a[i + 1])] = -1


@njit(cache=True, nogil=True)
def _head(first, second):
    key = np.uint32((np.uint32(first) << np.uint32(16)) | np.uint32(second))
    return np.int64(np.uint32(key * np.uint32(0x9E3779B1)) >> np.uint32(22))


@njit(cache=True, nogil=True)
def _worst_mean(values, count, width):
    """Lowest mean of width values in a row; of all where there are fewer."""
    width = min(width, count)
    total = np.float32(0)
    for i in range(width):
        total += values[i]
    lowest = total
    for i in range(width, count):
        total += values[i] - values[i - width]
        lowest = min(lowest, total)
    return lowest / width


@njit(cache=True, nogil=True)
def fill_side(side, count, out):
    """The columns of one sentence of count positions; see language_model._SIDE."""
    log_p, gains, matched, joints = side.log_p, side.gains, side.matched, side.joints
    total, square, gain, loss, surprise = 0.0, 0.0, 0.0, 0.0, 0.0
    rare, very_rare, losing, orders, weak = 0, 0, 0, 0, 0
    new, new_total = 0, 0.0
    at_joints, gain_at, loss_at, worst_at, weak_at = 0.0, 0.0, 0.0, 0.0, 0
    worst_3, worst_5, mean_5 = 0.0, 0.0, 0.0
    number = 0
    for i in range(count):
        p, g = np.float64(log_p[i]), np.float64(gains[i])
        total += p
        square += p * p
        gain += g
        loss += min(g, 0.0)
        losing += g < 0
        surprise += max(SURPRISING - p, 0.0)
        rare += p < RARE
        very_rare += p < VERY_RARE
        orders += matched[i]
        weak += matched[i] <= 2
    for i in range(count):
        if joints[i]:
            p, g = np.float64(log_p[i]), np.float64(gains[i])
            number += 1
            at_joints += p
            gain_at += g
            loss_at += min(g, 0.0)
            weak_at += matched[i] <= 2
            if joints[i + 1]:
                new += 1
                new_total += p
            near, wide = 0.0, 0.0
            for k in range(max(i - 2, 0), min(i + 3, count)):
                wide += gains[k]
                if i - 1 <= k <= i + 1:
                    near += gains[k]
            near /= min(i + 2, count) - max(i - 1, 0)
            wide /= min(i + 3, count) - max(i - 2, 0)
            mean_5 += wide
            if number == 1:
                worst_at, worst_3, worst_5 = g, near, wide
            else:
                worst_at = min(worst_at, g)
                worst_3 = min(worst_3, near)
                worst_5 = min(worst_5, wide)
    out[0] = total / count
    out[1] = gain / count
    out[2] = np.sqrt(max(square / count - (total / count) ** 2, 0.0))
    out[3] = log_p[count - 1]
    out[4] = _worst_mean(log_p, count, 3)
    out[5] = _worst_mean(log_p, count, 5)
    out[6] = _worst_mean(gains, count, 3)
    out[7] = _worst_mean(gains, count, 5)
    out[8] = rare / count
    out[9] = very_rare / count
    out[10] = surprise / count
    out[11] = loss / count
    out[12] = losing / count
    out[13] = orders / count
    out[14] = weak / count
    out[15] = number / count
    out[16] = at_joints / number if number else np.nan
    out[17] = gain_at / number if number else np.nan
    out[18] = worst_at if number else np.nan
    out[19] = loss_at / count
    out[20] = weak_at / count
    out[21] = worst_3 if number else np.nan
    out[22] = worst_5 if number else np.nan
    out[23] = mean_5 / number if number else np.nan
    out[24] = new_total / new if new else np.nan
    out[25] = total


@njit(cache=True, nogil=True)
def features_kernel(a, b, tables, room, out):
    """The columns of a pair of code points, uint32; see language_model.NAMES."""
    log_probabilities_kernel(a, tables, room.a)
    log_probabilities_kernel(b, tables, room.b)
    mark_joints(len(a), len(b), len(tables.scales), room)
    half = len(out) // 2
    fill_side(room.a, len(a) + 1, out[half:])
    fill_side(room.b, len(b) + 1, out[:half])
    for k in range(half):
        out[half + k] = out[k] - out[half + k]


@njit(cache=True, nogil=True)
def fill_rows(values_a, offsets_a, values_b, offsets_b, tables, room, rows):
    """Fills rows, float32 (pairs, len(NAMES))."""
    for row in range(len(rows)):
        a = values_a[offsets_a[row] : offsets_a[row + 1]]
        b = values_b[offsets_b[row] : offsets_b[row + 1]]
        features_kernel(a, b, tables, room, rows[row])
