"""Drawn examples as arrays of tokens, made once.

    table = read_table(Path("drawn.jsonl.xz"), "out/pair-encoder/start")

Its rows are pairs: that of each example, and the worse one of those that have one.
"""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from gaixie.udfs.meaning.pair_encoder import TASKS, TOKENIZER

MOST = 256
"""Tokens of a pair; of a longer one the longer sentence is cut."""
UNKNOWN = -1
"""The mark of a token that nobody looked at, and the worse row of an example without one."""
LINES = 2_000
"""Of a piece that is tokenized together."""


class Table(NamedTuple):
    """All tokens one after another, then the rows that they are of, then the examples."""

    ids: np.ndarray
    marks: np.ndarray
    """Of each token: 1 wrong, 0 right, UNKNOWN."""
    starts: np.ndarray
    """Of each row, as lengths and seconds: its place in ids."""
    lengths: np.ndarray
    seconds: np.ndarray
    """Tokens before the paraphrase."""
    targets: np.ndarray
    """float32, shape (rows, tasks); NaN where nothing is known."""
    better: np.ndarray
    """Of each example: its row."""
    worse: np.ndarray
    """The row of its worse one, or UNKNOWN."""
    ranks: np.ndarray
    """The task by which it is worse."""


def read_table(path: Path, bert: str) -> Table:
    """Reads the examples of a file. bert: folder with the tokenizer."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return table_of(lines, bert)


def table_of(lines: Iterable[str], bert: str) -> Table:
    """Reads the examples of the lines of such a file, piece by piece; the tokenizer uses all
    cores."""
    tokenizer = Tokenizer.from_file(str(Path(bert, TOKENIZER)))
    tokenizer.enable_truncation(MOST, strategy="longest_first")
    tokenizer.no_padding()
    rest, parts, rows = iter(lines), [], 0
    while piece := list(islice(rest, LINES)):
        part = _part([json.loads(line) for line in piece], tokenizer)
        worse = np.where(part.worse < 0, UNKNOWN, part.worse + rows)
        parts.append(part._replace(better=part.better + rows, worse=worse))
        rows += len(part.lengths)
    whole = Table(*map(np.concatenate, zip(*parts, strict=True)))
    return whole._replace(starts=np.cumsum(whole.lengths) - whole.lengths)


def _part(examples: Sequence[dict[str, Any]], tokenizer: Tokenizer) -> Table:
    ranked = [row for row, example in enumerate(examples) if "worse" in example]
    worse = np.full(len(examples), UNKNOWN)
    worse[ranked] = len(examples) + np.arange(len(ranked))
    pairs = [
        *examples,
        *({**examples[k]["worse"], "source": examples[k]["source"]} for k in ranked),
    ]
    encoded = tokenizer.encode_batch([(pair["source"], pair["paraphrase"]) for pair in pairs])
    seconds = np.array([len(pair.ids) - sum(pair.type_ids) for pair in encoded])
    lengths = np.array([len(pair.ids) for pair in encoded])
    targets = np.full((len(pairs), len(TASKS)), math.nan, np.float32)
    for row, pair in enumerate(pairs):
        for task, value in pair["targets"].items():
            targets[row, TASKS.index(task)] = value
    marks = [
        _marks(tokens, second, pair.get("spans"))
        for tokens, second, pair in zip(encoded, seconds, pairs, strict=True)
    ]
    return Table(
        ids=np.fromiter(chain.from_iterable(pair.ids for pair in encoded), np.int32),
        marks=np.concatenate(marks),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        seconds=seconds,
        targets=targets,
        better=np.arange(len(examples)),
        worse=worse,
        ranks=np.array([TASKS.index(example.get("rank", "same")) for example in examples]),
    )


def _marks(pair: Any, second: int, spans: Sequence[tuple[int, int]] | None) -> np.ndarray:
    marks = np.full(len(pair.ids), UNKNOWN, np.int8)
    if spans is not None:
        marks[second:-1] = 0
    for place, (start, end) in enumerate(pair.offsets[second:-1] if spans else (), second):
        marks[place] = any(start < e and s < end for s, e in spans or ())
    return marks
