"""A character language model: how fluent a paraphrase is, and where it reads oddly.

It gives P(character | up to four before it) by interpolated modified Kneser-Ney
(research/make_language_model.py), packed so that a look-up costs one cache line. A sentence of n
characters has n + 1 positions: its characters and its end. The begin before the first character is
not a position. All characters outside the model are one character, unknown. Logarithms are natural.

    log p(w | h) = log of the stored probability of hw if the model has it,
                   else log backoff(h) (0 if the model has no h) + log p(w | h'),

where h' is h without its first character. Two n-grams in one bucket are confused if the same 16
bits of their hashes agree: of 10,000 look-ups of absent n-grams, two to three succeed.

*Gain* is log p minus the log probability of the character alone: it distinguishes an odd sequence
from a rare word (SLOR; Kann, Rothe and Filippova 2018, *Sentence-Level Fluency Evaluation*).
*Order* is the length of the longest n-gram of the model that ends at a position. A *joint* is a
position whose bigram (its character and the one before, begin and end included) does not occur in
the other sentence: the paraphrase was rewritten there. The first columns describe the paraphrase B,
over its positions:

| column | meaning |
|---|---|
| mean, gain, deviation, order | mean of log p, of gain; standard deviation of log p; mean order |
| end | log p of the end |
| worst_3, worst_5, worst_gain_3, worst_gain_5 | lowest mean of log p (gain) of 3 or 5 positions |
| | in a row; of all if there are fewer |
| rare, very_rare | share with log p below -8, -11 |
| surprise | mean of the excess of -log p over 7 |
| loss, losing | mean of the gains below 0, counting others as 0; share of gains below 0 |
| weak | share of positions with an order of at most 2 |
| joints, joint_loss, joint_weak | joints, their gains below 0, joints with an order of at most 2: |
| | sum / positions |
| joint_mean, joint_gain, joint_worst | at joints: mean of log p, of gain; lowest gain |
| joint_worst_3, joint_worst_5, joint_mean_5 | lowest (mean) of the mean gains from 1 (2) before |
| | to 1 (2) behind a joint |
| new_mean | mean of log p at joints followed by a joint or by nothing: new material |
| total | sum of log p |

The columns ..._added are each of these minus that of the source A, with joints against B. A mean
over nothing is NaN.
"""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning import language_model_kernel as kernels
from gaixie.udfs.meaning.array_folder import digest_of, read_arrays
from gaixie.udfs.meaning.language_model_kernel import Positions, Tables
from gaixie.udfs.meaning.surface_order import ratio
from gaixie.udfs.text.code_points import CodePoints, from_strings
from gaixie.udfs.text.compiled import entry, frozen, inner, row_of, summing
from gaixie.udfs.text.normalise import NORMALISATION

FOLDER = Path(__file__).parents[1] / "models/language-model-zh"
MANIFEST, FORMAT, VERSION = "language_model.json", "gaixie-language-model", 1
STRETCH, EXPECTED = 3, 1.0
"""Characters of an odd spot, and the mean gain in nats below which they are odd."""
_TYPES = dict(zip(Tables._fields, ("uint16", "float32", "uint32", "float32"), strict=True))


class LanguageModel(NamedTuple):
    """A model, memory-mapped from its folder, so that the processes of a host share it."""

    tables: Tables
    digest: str
    order: int

    @classmethod
    def load(cls, folder: str | Path | None = None) -> LanguageModel:
        """Loads the model of a folder, by default the shipped one.

        Raises FileNotFoundError if a file is missing and ValueError if one is damaged or of another
        version or normalisation, in one line that names it.
        """
        expected = {"format": FORMAT, "version": VERSION, "normalisation": NORMALISATION}
        path = Path(folder or FOLDER) / MANIFEST
        arrays, checksum = read_arrays(path, _TYPES, expected, digest, "a language model")
        tables = Tables(*arrays)
        return cls(tables, checksum, len(tables.scales) + 1)

    def log_probabilities(self, text: str) -> np.ndarray:
        """Returns log p of a normalised sentence's characters and end: float32, (n + 1,)."""
        return self._read(text).log_p[1:]

    def _read(self, text: str) -> Positions:
        """Returns the positions of a sentence; the first is its begin."""
        room = kernels.positions(len(text) + 2, self.order)
        kernels.read_text(from_strings([text]).values, self.tables, room)
        return room


def digest(*arrays: np.ndarray) -> str:
    """Returns the digest of the arrays of Tables."""
    return digest_of(Tables(*arrays)._asdict(), "{name} {array.dtype} {array.shape}\n")


def features(a: CodePoints, b: CodePoints, model: LanguageModel) -> np.ndarray:
    """Returns the columns of normalised pairs: float32, shape (rows, len(NAMES))."""
    rows = np.empty((len(a.offsets) - 1, len(NAMES)), np.float32)
    longest = sum(int(np.diff(text.offsets).max(initial=0)) for text in (a, b))
    _fill_rows(*frozen(a, b, model.tables), room_for(longest, model.order), rows)
    return rows


class Spot(NamedTuple):
    """An odd stretch of a sentence: text[start:end]."""

    start: int
    end: int
    nats: float
    """The total shortfall of its characters' gains from EXPECTED."""


def odd_spots(text: str, model: LanguageModel, count: int) -> list[Spot]:
    """Returns the oddest stretches of a normalised sentence, oddest first, without overlaps.

    A stretch is STRETCH consecutive characters (or all, if there are fewer) whose mean gain is
    below EXPECTED, and the character before, with which they do not fit.
    """
    gains = model._read(text).gains[1 : len(text) + 1].astype(float)
    width = min(STRETCH, len(gains))
    sums = np.convolve(gains, np.ones(width), "valid") if width else gains
    spots: list[Spot] = []
    for start in np.argsort(sums, kind="stable").tolist():
        short = EXPECTED * width - float(sums[start])
        if short <= 0 or len(spots) == count:
            break
        spot = Spot(max(start - 1, 0), start + width, short)
        if all(spot.end <= other.start or other.end <= spot.start for other in spots):
            spots.append(spot)
    return spots


# The columns

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
NAMES = (*SIDE, *(f"{name}_added" for name in SIDE))
"""The columns, in order."""
MEAN, GAIN, DEVIATION, END, WORST_3, WORST_5, WORST_GAIN_3, WORST_GAIN_5 = range(8)
RARE, VERY_RARE, SURPRISE, LOSS, LOSING, ORDER, WEAK = range(8, 15)
JOINTS, JOINT_MEAN, JOINT_GAIN, JOINT_WORST, JOINT_LOSS, JOINT_WEAK = range(15, 21)
JOINT_WORST_3, JOINT_WORST_5, JOINT_MEAN_5, NEW_MEAN, TOTAL = range(21, 26)


class _Room(namedtuple("_Room", "positions joints heads chain at padded near wide")):
    """positions: room for those of AT_ONCE, and of the longest pair.

    joints: uint8, (positions,). heads: int32, (HEADS,), all -1 between pairs. chain: int32,
    (positions,). at: int32, (positions,): which are joints. padded, near, wide: float64, (EDGE +
    positions + EDGE,): of one sentence.
    """


def room_for(longest: int, order: int) -> _Room:
    """Allocates scratch space for pairs of up to longest characters together."""
    count = AT_ONCE + longest + 4
    return _Room(
        kernels.positions(count, order),
        np.empty(count, np.uint8),
        np.full(HEADS, -1, np.int32),
        *np.empty((2, count), np.int32),
        *np.empty((3, longest + 2 * EDGE + 1)),
    )


@entry
def _fill_rows(texts_a, texts_b, tables, room, rows):
    """Fills rows, float32 (pairs, len(NAMES)), for columns of code points."""
    ids, characters = room.positions.ids, tables.characters
    stop = 0
    while stop < len(rows):
        start, count = stop, 0
        while stop < len(rows) and count < AT_ONCE:
            count = kernels.number(row_of(texts_a, stop), characters, ids, count)
            count = kernels.number(row_of(texts_b, stop), characters, ids, count)
            stop += 1
        kernels.read(count, tables, room.positions)
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
