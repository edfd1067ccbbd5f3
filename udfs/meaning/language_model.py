"""A character language model: how fluent a paraphrase is, and where it reads oddly.

P(character | up to four before it), interpolated modified Kneser-Ney (research/make_language_model.py),
packed so that a look-up costs one cache line. A sentence of n characters has n + 1 positions: its
characters and its end. Its first character follows a begin that is no position. Characters that the
model does not know are one character, unknown. Natural logarithms.

    log p(w | h) = log of the stored probability of hw where the model has it,
                   else log backoff(h) (0 where the model has no h) + log p(w | h'),

h' being h without its first character. Two n-grams of one bucket with the same 16 bits of their
hashes are taken for one another: of 10,000 look-ups of what is not there, two to three succeed.

*Gain* is log p less the log probability of the character alone: it tells an odd sequence from a
rare word (SLOR; Kann, Rothe and Filippova 2018, *Sentence-Level Fluency Evaluation*). *Order* is
the length of the longest n-gram of the model that ends at a position. A *joint* is a position whose
bigram (its character and the one before it, begin and end included) does not occur in the other
sentence: where the paraphrase was rewritten. Columns, first of the paraphrase B, over its positions:

| column | meaning |
|---|---|
| mean, gain, deviation, order | mean of log p, of gain; standard deviation of log p; mean order |
| end | log p of the end |
| worst_3, worst_5, worst_gain_3, worst_gain_5 | lowest mean of log p (gain) of 3 or 5 positions in a row; of all where there are fewer |
| rare, very_rare | share with log p below -8, -11 |
| surprise | mean of what -log p has above 7 |
| loss, losing | mean of the gains below 0, with 0 for others; their share |
| weak | share of an order of at most 2 |
| joints, joint_loss, joint_weak | joints, their gains below 0, those of an order of at most 2: sum / positions |
| joint_mean, joint_gain, joint_worst | at joints: mean of log p, of gain; lowest gain |
| joint_worst_3, joint_worst_5, joint_mean_5 | lowest (mean) of the mean gains from 1 (2) before to 1 (2) behind a joint |
| new_mean | mean of log p at joints that a joint, or nothing, follows: new material |
| total | sum of log p |

and then each of them less that of the source A, its joints being those against B: ..._added. NaN
where nothing is there to take the mean of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning import language_model_columns as columns
from gaixie.udfs.meaning import language_model_kernel as kernels
from gaixie.udfs.meaning.array_folder import read_arrays
from gaixie.udfs.meaning.bucket import WAYS
from gaixie.udfs.meaning.language_model_kernel import Positions, Tables
from gaixie.udfs.text.code_points import CodePoints, from_strings
from gaixie.udfs.text.compiled import read_only
from gaixie.udfs.text.normalise import NORMALISATION

FOLDER = Path(__file__).parents[1] / "models/language-model-zh"
MANIFEST, FORMAT, VERSION = "language_model.json", "gaixie-language-model", 1
STRETCH, EXPECTED = 3, 1.0
"""Characters of an odd spot, and the gain in nats below which the mean of theirs is odd."""
_TYPES = dict(zip(Tables._fields, ("uint16", "float32", "uint32", "float32"), strict=True))

_SIDE = (
    *("mean", "gain", "deviation", "end"),
    *("worst_3", "worst_5", "worst_gain_3", "worst_gain_5"),
    *("rare", "very_rare", "surprise", "loss", "losing", "order", "weak"),
    *("joints", "joint_mean", "joint_gain", "joint_worst", "joint_loss", "joint_weak"),
    *("joint_worst_3", "joint_worst_5", "joint_mean_5", "new_mean", "total"),
)
NAMES = (*_SIDE, *(f"{name}_added" for name in _SIDE))
"""The columns, in order."""


class LanguageModel(NamedTuple):
    """A model as its folder holds it; memory-mapped, so that the processes of a host share it."""

    tables: Tables
    digest: str
    order: int

    @classmethod
    def load(cls, folder: str | Path | None = None) -> LanguageModel:
        """The model of a folder, by default the one that ships.

        Raises FileNotFoundError where a file is missing and ValueError where one is damaged or of
        another version or normalisation, in one line that names it.
        """
        expected = {"format": FORMAT, "version": VERSION, "normalisation": NORMALISATION}
        path = Path(folder or FOLDER) / MANIFEST
        arrays, checksum = read_arrays(path, _TYPES, expected, digest, "a language model")
        tables = Tables(*arrays)
        return cls(tables, checksum, len(tables.scales) + 1)

    def log_probabilities(self, text: str) -> np.ndarray:
        """log p of each character of a normalised sentence, and of its end: float32, (n + 1,)."""
        return self._read(text).log_p[1:]

    def _read(self, text: str) -> Positions:
        """Positions of a sentence; the first is that of its begin."""
        room = kernels.positions(len(text) + 2, self.order)
        kernels.read_text(from_strings([text]).values, self.tables, room)
        return room


def digest(*arrays: np.ndarray) -> str:
    """Ten hexadecimal digits of SHA-256 over the arrays of Tables and their shapes."""
    checksum = hashlib.sha256()
    for name, array in zip(Tables._fields, arrays, strict=True):
        checksum.update(f"{name} {array.dtype} {array.shape}\n".encode())
        checksum.update(np.ascontiguousarray(array).data)
    return checksum.hexdigest()[:10]


def features(a: CodePoints, b: CodePoints, model: LanguageModel) -> np.ndarray:
    """The columns of normalised pairs: float32, shape (rows, len(NAMES))."""
    rows = np.empty((len(a.offsets) - 1, len(NAMES)), np.float32)
    longest = sum(int(np.diff(text.offsets).max(initial=0)) for text in (a, b))
    room = columns.room(longest, model.order)
    columns.fill_rows(*map(read_only, (*a, *b)), model.tables, room, rows)
    return rows


class Spot(NamedTuple):
    """An odd stretch of a sentence: text[start:end]."""

    start: int
    end: int
    nats: float
    """By how much the gains of its characters fall short of EXPECTED."""


def odd_spots(text: str, model: LanguageModel, count: int) -> list[Spot]:
    """The oddest stretches of a normalised sentence, the oddest first; they do not overlap.

    A stretch is STRETCH characters in a row (all, of fewer) with less gain than EXPECTED, and the
    character before them, which they do not go with.
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


# The definition, in plain Python.


class Position(NamedTuple):
    """What a model says of a position."""

    log_p: float
    gain: float
    order: int


def reference_positions(text: str, tables: Tables) -> list[Position]:
    """The n + 1 positions of a normalised sentence."""
    ids = _numbers(text, tables)
    positions = []
    for i in range(1, len(ids)):
        alone = log_p = float(tables.unigrams[ids[i], 0])
        order = 1
        for k in range(2, len(tables.scales) + 2):
            if k > i + 1:
                break
            stored = _find(ids[i - k + 1 : i + 1], tables)
            if stored:
                log_p, order = stored[0], k
            elif k == 2:
                log_p += float(tables.unigrams[ids[i - 1], 1])
            else:
                context = _find(ids[i - k + 1 : i], tables)
                log_p += context[1] if context else 0.0
        positions.append(Position(log_p, log_p - alone, order))
    return positions


def _numbers(text: str, tables: Tables) -> list[int]:
    """The numbers of begin, the characters, and the end."""
    known = len(tables.characters)
    codes = (ord(character) for character in text)
    numbers = [int(tables.characters[c]) if c < known else kernels.UNKNOWN for c in codes]
    return [kernels.BEGIN, *numbers, kernels.END]


def _find(gram: Sequence[int], tables: Tables) -> tuple[float, float] | None:
    """(log probability, log backoff) of an n-gram, None where the model does not have it."""
    value = int(kernels.SEED)
    for number in reversed(gram):
        value = (value ^ number) * 0xD6E8FEB86659FD93 % 2**64
        value ^= value >> 32
    buckets = len(tables.slots) // WAYS
    start = (value >> 32) * buckets >> 32
    for slot in tables.slots[start * WAYS : (start + 1) * WAYS].tolist():
        if slot >> 16 == max(value & 0xFFFF, 1):
            steps = tables.scales[len(gram) - 2].tolist()
            return ((slot >> 8 & 0xFF) - 1) * steps[0], (slot & 0xFF) * steps[1]
    return None


def reference(a: str, b: str, model: LanguageModel) -> dict[str, float]:
    """The columns of a normalised pair."""
    bigrams = [list(pairwise(_numbers(text, model.tables))) for text in (a, b)]
    of_a = _describe(reference_positions(a, model.tables), bigrams[0], bigrams[1])
    of_b = _describe(reference_positions(b, model.tables), bigrams[1], bigrams[0])
    added = {f"{name}_added": of_b[name] - of_a[name] for name in _SIDE}
    return {**of_b, **added}


def _describe(
    positions: list[Position],
    bigrams: list[tuple[int, int]],
    others: list[tuple[int, int]],
) -> dict[str, float]:
    log_p = [p.log_p for p in positions]
    gains = [p.gain for p in positions]
    count = len(positions)
    joints = [i for i in range(count) if bigrams[i] not in others]
    new = [i for i in joints if i + 1 == count or i + 1 in joints]
    near = [_mean(gains[max(i - 1, 0) : i + 2]) for i in joints]
    wide = [_mean(gains[max(i - 2, 0) : i + 3]) for i in joints]
    return {
        "mean": _mean(log_p),
        "gain": _mean(gains),
        "deviation": _mean((p - _mean(log_p)) ** 2 for p in log_p) ** 0.5,
        "end": log_p[-1],
        "worst_3": _worst(log_p, 3),
        "worst_5": _worst(log_p, 5),
        "worst_gain_3": _worst(gains, 3),
        "worst_gain_5": _worst(gains, 5),
        "rare": _mean(p < -8 for p in log_p),
        "very_rare": _mean(p < -11 for p in log_p),
        "surprise": _mean(max(-7 - p, 0) for p in log_p),
        "loss": _mean(min(g, 0) for g in gains),
        "losing": _mean(g < 0 for g in gains),
        "order": _mean(p.order for p in positions),
        "weak": _mean(p.order <= 2 for p in positions),
        "joints": len(joints) / count,
        "joint_mean": _mean(log_p[i] for i in joints),
        "joint_gain": _mean(gains[i] for i in joints),
        "joint_worst": min((gains[i] for i in joints), default=np.nan),
        "joint_loss": sum(min(gains[i], 0) for i in joints) / count,
        "joint_weak": sum(positions[i].order <= 2 for i in joints) / count,
        "joint_worst_3": min(near, default=np.nan),
        "joint_worst_5": min(wide, default=np.nan),
        "joint_mean_5": _mean(wide),
        "new_mean": _mean(log_p[i] for i in new),
        "total": sum(log_p),
    }


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values) if values else np.nan


def _worst(values: list[float], width: int) -> float:
    width = min(width, len(values))
    return min(_mean(values[k : k + width]) for k in range(len(values) - width + 1))
