"""Computes the columns that udfs/meaning/language_model.py defines from the model's positions."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from gaixie.udfs.meaning import language_model_kernel as model
from gaixie.udfs.meaning.surface_order import ratio
from gaixie.udfs.text.compiled import entry, inner, row_of, summing

HEADS = 1024
AT_ONCE = 1024
"""Positions whose n-grams are looked up together, so that their cache misses overlap."""
EDGE = 2
"""Positions on either side of the middle of a stretch of five."""

RARE_BELOW, VERY_RARE_BELOW, SURPRISING_BELOW = -8.0, -11.0, -7.0
"""Log probabilities in nats below which a character is rare, very rare or surprising."""

SIDE = (
    *("mean", "gain", "deviation", "end"),
    *("worst_3", "worst_5", "worst_gain_3", "worst_gain_5"),
    *("rare", "very_rare", "surprise", "loss", "losing", "order", "weak"),
    *("joints", "joint_mean", "joint_gain", "joint_worst", "joint_loss", "joint_weak"),
    *("joint_worst_3", "joint_worst_5", "joint_mean_5", "new_mean", "total"),
)
"""The columns of one sentence, in order."""
MEAN, GAIN, DEVIATION, END, WORST_3, WORST_5, WORST_GAIN_3, WORST_GAIN_5 = range(8)
RARE, VERY_RARE, SURPRISE, LOSS, LOSING, ORDER, WEAK = range(8, 15)
JOINTS, JOINT_MEAN, JOINT_GAIN, JOINT_WORST, JOINT_LOSS, JOINT_WEAK = range(15, 21)
JOINT_WORST_3, JOINT_WORST_5, JOINT_MEAN_5, NEW_MEAN, TOTAL = range(21, 26)


class Room(namedtuple("Room", "positions joints heads chain at padded near wide")):
    """positions: room for those of AT_ONCE, and of the longest pair.

    joints: uint8, (positions,). heads: int32, (HEADS,), all -1 between pairs. chain: int32,
    (positions,). at: int32, (positions,): which are joints. padded, near, wide: float64, (EDGE +
    positions + EDGE,): of one sentence.
    """


def room(longest: int, order: int) -> Room:
    """Allocates scratch space for pairs of up to longest characters together."""
    count = AT_ONCE + longest + 4
    return Room(
        model.positions(count, order),
        np.empty(count, np.uint8),
        np.full(HEADS, -1, np.int32),
        *np.empty((2, count), np.int32),
        *np.empty((3, longest + 2 * EDGE + 1)),
    )


@entry
def fill_rows(texts_a, texts_b, tables, room, rows):
    """Fills rows, float32 (pairs, len(NAMES)), for columns of code points."""
    ids, characters = room.positions.ids, tables.characters
    stop = 0
    while stop < len(rows):
        start, count = stop, 0
        while stop < len(rows) and count < AT_ONCE:
            count = model.number(row_of(texts_a, stop), characters, ids, count)
            count = model.number(row_of(texts_b, stop), characters, ids, count)
            stop += 1
        model.read(count, tables, room.positions)
        at = 0
        for row in range(start, stop):
            n, m = len(row_of(texts_a, row)), len(row_of(texts_b, row))
            _fill_row(at, n + 1, m + 1, room, rows[row])
            at += n + m + 4


@inner
def _fill_row(at, n, m, room, row):
    """Fills row for the pair at a position, with n and m positions without the begins."""
    ids, joints = room.positions.ids, room.joints
    ids_a, ids_b = ids[at : at + n + 1], ids[at + n + 1 : at + n + m + 2]
    joints_a, joints_b = joints[: n + 1], joints[n + 1 : n + m + 2]
    mark_joints(ids_a, ids_b, joints_a, joints_b, room.heads, room.chain)
    half = len(row) // 2
    fill_side(at + 1, joints_a, room, row[half:])
    fill_side(at + n + 2, joints_b, room, row[:half])
    for k in range(half):
        row[half + k] = row[k] - row[half + k]


@inner
def mark_joints(ids_a, ids_b, joints_a, joints_b, heads, chain):
    """Sets joints: 0 where the bigram that ends there also occurs in the other sentence, else 1.

    The last cells, which belong to no position, become 1.
    """
    for i in range(len(ids_a) - 1):
        head = _head(ids_a[i], ids_a[i + 1])
        chain[i] = heads[head]
        heads[head] = i
        joints_a[i] = 1
    for j in range(len(ids_b) - 1):
        first, second = ids_b[j], ids_b[j + 1]
        i = heads[_head(first, second)]
        joints_b[j] = 1
        while i >= 0:
            if ids_a[i] == first and ids_a[i + 1] == second:
                joints_a[i] = 0
                joints_b[j] = 0
            i = chain[i]
    joints_a[len(ids_a) - 1] = joints_b[len(ids_b) - 1] = 1
    for i in range(len(ids_a) - 1):
        heads[_head(ids_a[i], ids_a[i + 1])] = -1


@inner
def _head(first, second):
    key = np.uint32((np.uint32(first) << np.uint32(16)) | np.uint32(second))
    return np.int64(np.uint32(key * np.uint32(0x9E3779B1)) >> np.uint32(22))


@inner
def fill_side(start, joints, room, out):
    """Fills out for the sentence whose positions begin at start; see SIDE."""
    count = len(joints) - 1
    last = start + count
    at = room.positions
    log_p, gains, matched = at.log_p[start:last], at.gains[start:last], at.matched[start:last]
    _totals(log_p, gains, matched, out)
    out[END] = log_p[count - 1]
    padded = room.padded[: count + 2 * EDGE]
    _sum_stretches(log_p, padded, room.near, room.wide)
    out[WORST_3] = _lowest(room.near, count, 1) / min(count, 3)
    out[WORST_5] = _lowest(room.wide, count, 2) / min(count, 5)
    _sum_stretches(gains, padded, room.near, room.wide)
    out[WORST_GAIN_3] = _lowest(room.near, count, 1) / min(count, 3)
    out[WORST_GAIN_5] = _lowest(room.wide, count, 2) / min(count, 5)
    _at_joints(log_p, gains, matched, joints, room, out)


@summing
def _totals(log_p, gains, matched, out):
    count = len(log_p)
    total = square = gain = loss = surprise = 0.0
    rare = very_rare = losing = orders = weak = 0
    for i in range(count):
        p, g = np.float64(log_p[i]), np.float64(gains[i])
        total += p
        square += p * p
        gain += g
        loss += g if g < 0 else 0.0
        surprise += SURPRISING_BELOW - p if p < SURPRISING_BELOW else 0.0
        losing += g < 0
        rare += p < RARE_BELOW
        very_rare += p < VERY_RARE_BELOW
    for i in range(count):
        orders += matched[i]
        weak += matched[i] <= 2
    out[MEAN] = total / count
    out[GAIN] = gain / count
    out[DEVIATION] = np.sqrt(max(square / count - (total / count) ** 2, 0.0))
    out[RARE] = rare / count
    out[VERY_RARE] = very_rare / count
    out[SURPRISE] = surprise / count
    out[LOSS] = loss / count
    out[LOSING] = losing / count
    out[ORDER] = orders / count
    out[WEAK] = weak / count
    out[TOTAL] = total


@inner
def _at_joints(log_p, gains, matched, joints, room, out):
    """Fills the columns of joints and the stretches around them, from the sums of the gains."""
    count, at, near, wide = len(log_p), room.at, room.near, room.wide
    number = 0
    for i in range(count):
        at[number] = i
        number += joints[i]
    _to_means(near, count, 1)
    _to_means(wide, count, 2)
    total = gain = loss = mean = new_total = 0.0
    worst = worst_3 = worst_5 = np.inf
    weak = new = 0
    for k in range(number):
        i = at[k]
        p, g, is_new = np.float64(log_p[i]), np.float64(gains[i]), joints[i + 1]
        total += p
        gain += g
        loss += min(g, 0.0)
        weak += matched[i] <= 2
        new += is_new
        new_total += p * is_new
        mean += wide[i]
        worst = min(worst, g)
        worst_3 = min(worst_3, near[i])
        worst_5 = min(worst_5, wide[i])
    out[JOINTS] = number / count
    out[JOINT_MEAN] = ratio(total, number)
    out[JOINT_GAIN] = ratio(gain, number)
    out[JOINT_WORST] = worst if number else np.nan
    out[JOINT_LOSS] = loss / count
    out[JOINT_WEAK] = weak / count
    out[JOINT_WORST_3] = worst_3 if number else np.nan
    out[JOINT_WORST_5] = worst_5 if number else np.nan
    out[JOINT_MEAN_5] = ratio(mean, number)
    out[NEW_MEAN] = ratio(new_total, new)


@inner
def _sum_stretches(values, padded, near, wide):
    """Sums three and five consecutive values, at the middle one. padded: scratch, the values with
    EDGE zeros on either side."""
    count = len(values)
    padded[:EDGE] = 0
    padded[EDGE + count :] = 0
    for i in range(count):
        padded[EDGE + i] = values[i]
    second, third, fourth, fifth = padded[1:], padded[2:], padded[3:], padded[4:]
    for i in range(len(fifth)):
        three = second[i] + third[i] + fourth[i]
        near[i] = three
        wide[i] = padded[i] + three + fifth[i]


@inner
def _lowest(sums, count, edge):
    """Returns the lowest sum that crosses neither end; if all cross, the sum of all values."""
    if count <= 2 * edge:
        return sums[count // 2]
    lowest = sums[edge]
    for i in range(edge + 1, count - edge):
        lowest = min(lowest, sums[i])
    return lowest


@inner
def _to_means(sums, count, edge):
    """Divides each sum by its number of values, which is smaller near the ends."""
    for i in range(min(edge, count)):
        sums[i] /= min(i + edge + 1, count)
    for i in range(edge, count - edge):
        sums[i] /= 2 * edge + 1
    for i in range(max(edge, count - edge), count):
        sums[i] /= count - i + edge
