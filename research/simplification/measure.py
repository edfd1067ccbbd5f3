"""Measures a set of simplifications with several references, and systems on it.

Source: Chong et al. 2024, *MCTS: A Multi-Reference Chinese Text Simplification Dataset*. A set is
parallel files, ``NAME.orig`` and ``NAME.simp.0``, ``.1``, …, one sentence per line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.metrics.bootstrap import Estimate, estimate_of
from gaixie.udfs.metrics.hsk import mean_levels
from gaixie.udfs.metrics.references import Resamples, estimate, leave_one_out
from gaixie.udfs.metrics.simplification import FEATURES
from gaixie.udfs.storage.text_tables import read_lines

LEAST = 3.54
"""A sentence is worth simplifying if its words' mean HSK level is at least this. MCTS leaves out
easy sentences in this way (section 3.1); its threshold is not known here. 95 % of its development
originals reach this level."""
SHARES = {"hsk-easy": "L1–3 % ↑", "hsk-hard": "L7+ % ↓"}


class SimplificationSet(NamedTuple):
    """Originals, and columns of references of the same length."""

    name: str
    source: pa.Array
    references: tuple[pa.Array, ...]


def read_set(folder: Path, part: str) -> SimplificationSet:
    """Reads the files ``*.PART.orig`` and ``*.PART.simp.K`` of a folder.

    Raises ValueError or OSError, with one line, if there is no set or several, or lengths differ.
    """
    originals = sorted(folder.glob(f"*.{part}.orig"))
    if len(originals) != 1:
        raise ValueError(f"{folder}: {len(originals)} files *.{part}.orig, expected one")
    [original] = originals
    people = sorted(folder.glob(f"{original.name.removesuffix('orig')}simp.*"))
    if len(people) < 2:
        raise ValueError(f"{folder}: {len(people)} files *.{part}.simp.*, expected two or more")
    source = read_column(original)
    columns = tuple(read_column(file, len(source)) for file in people)
    return SimplificationSet(original.name.removesuffix(".orig"), source, columns)


def read_column(file: Path | str, rows: int | None = None) -> pa.Array:
    """Reads the lines of a file. Raises ValueError if there are none, or not ``rows`` of them."""
    lines = list(read_lines(str(file), "strict"))
    if not lines or rows not in (None, len(lines)):
        raise ValueError(f"{file}: {len(lines):,} lines, expected {rows or 'some'}")
    return pa.array(lines, pa.string())


def measure(
    data: SimplificationSet,
    systems: Mapping[str, pa.Array],
    segmenter: str = "jieba",
    deletion: str = "f1",
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Returns the report's figures, ready for JSON. systems: lines by name, one per original."""
    resamples = Resamples(range(len(data.source)), samples, seed)
    cut = f"tokenize=zh-word:segmenter={segmenter}"
    metrics = {
        "sari": load_metric(f"sari:{cut}:deletion={deletion}"),
        "bleu": load_metric(f"bleu:{cut}"),
        **{name: load_metric(f"{name}:segmenter={segmenter}") for name in SHARES},
    }
    features = {name: load_metric(f"{name}:segmenter={segmenter}") for name in FEATURES}
    people = leave_one_out(data.source, data.references)
    rows = {
        "source": [Pairs(data.source, data.source, data.references)],
        "a person": people,
        **{f"person {k}": [pairs] for k, pairs in enumerate(people)},
        **{name: [Pairs(data.source, own, data.references)] for name, own in systems.items()},
    }
    return {
        "set": data.name,
        "rows": len(data.source),
        "references": len(data.references),
        "samples": samples,
        "seed": seed,
        "features": {
            name: estimate(metric, people, resamples)._asdict() for name, metric in features.items()
        },
        "least": LEAST,
        "choice": {
            name: choice(own, segmenter, resamples)
            for name, own in (("source", [data.source]), ("a person", data.references))
        },
        "systems": {
            name: {key: _scaled(key, estimate(m, sets, resamples)) for key, m in metrics.items()}
            for name, sets in rows.items()
        },
        "signatures": {name: metric.signature() for name, metric in metrics.items()},
    }


def choice(columns: Sequence[pa.Array], segmenter: str, resamples: Resamples) -> dict[str, Any]:
    """Returns the mean HSK level of a text's words, and how many per cent of texts reach LEAST."""
    level = np.array([mean_levels(column.to_pylist(), segmenter) for column in columns])
    figures = {"level": np.nanmean(level, axis=0), "kept": 100.0 * (level >= LEAST).mean(axis=0)}
    found = {}
    for name, of in figures.items():
        there = np.isfinite(of)
        total, rows = resamples.sums(np.column_stack([np.where(there, of, 0.0), there])).T
        found[name] = estimate_of(total / rows)._asdict()
    return found


def _scaled(name: str, value: Estimate) -> dict[str, float]:
    """Returns a share in per cent, and any other score unchanged."""
    scale = 100.0 if name in SHARES else 1.0
    return {key: scale * number for key, number in value._asdict().items()}
