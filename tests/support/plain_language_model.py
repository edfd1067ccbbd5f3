"""Computes the look-ups and columns of udfs/meaning/language_model.py by definition."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gaixie.udfs.meaning import language_model_kernel as kernel
from gaixie.udfs.meaning.bucket import WAYS
from gaixie.udfs.meaning.language_model import NAMES, LanguageModel
from gaixie.udfs.meaning.language_model_kernel import Tables

SIDE = NAMES[: len(NAMES) // 2]


class Position(NamedTuple):
    """The model's values at one position of a sentence."""

    log_p: float
    gain: float
    order: int


def positions(text: str, tables: Tables) -> list[Position]:
    """Returns the n + 1 positions of a normalised sentence of n characters."""
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
    """Returns the ids of the beginning, the characters and the end."""
    known = len(tables.characters)
    codes = (ord(character) for character in text)
    numbers = [int(tables.characters[c]) if c < known else kernel.UNKNOWN for c in codes]
    return [kernel.BEGIN, *numbers, kernel.END]


def _find(gram: Sequence[int], tables: Tables) -> tuple[float, float] | None:
    """Returns (log probability, log backoff) of an n-gram, or None if the model lacks it."""
    value = int(kernel.SEED)
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
    """Returns the columns of a normalised pair."""
    bigrams = [list(pairwise(_numbers(text, model.tables))) for text in (a, b)]
    of_a = _describe(positions(a, model.tables), bigrams[0], bigrams[1])
    of_b = _describe(positions(b, model.tables), bigrams[1], bigrams[0])
    added = {f"{name}_added": of_b[name] - of_a[name] for name in SIDE}
    return {**of_b, **added}


def _describe(
    positions: list[Position], bigrams: list[tuple[int, int]], others: list[tuple[int, int]]
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
