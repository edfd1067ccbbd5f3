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

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning import language_model_columns as columns
from gaixie.udfs.meaning import language_model_kernel as kernels
from gaixie.udfs.meaning.array_folder import digest_of, read_arrays
from gaixie.udfs.meaning.language_model_kernel import Positions, Tables
from gaixie.udfs.text.code_points import CodePoints, from_strings
from gaixie.udfs.text.compiled import frozen
from gaixie.udfs.text.normalise import NORMALISATION

FOLDER = Path(__file__).parents[1] / "models/language-model-zh"
MANIFEST, FORMAT, VERSION = "language_model.json", "gaixie-language-model", 1
STRETCH, EXPECTED = 3, 1.0
"""Characters of an odd spot, and the mean gain in nats below which they are odd."""
_TYPES = dict(zip(Tables._fields, ("uint16", "float32", "uint32", "float32"), strict=True))

NAMES = (*columns.SIDE, *(f"{name}_added" for name in columns.SIDE))
"""The columns, in order."""


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
    room = columns.room(longest, model.order)
    columns.fill_rows(*frozen(a, b, model.tables), room, rows)
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
