"""A file of drawn examples: JSON lines under xz, from which a machine without the sets can train.

    {"kind": "written", "source": "…", "paraphrase": "…", "targets": {"same": 1}, "spans": [],
     "worse": {"paraphrase": "…", "targets": {"same": 0}}, "rank": "same"}

``spans``, ``worse`` and ``rank`` are there where the example has them.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from gaixie.research.pair_encoder.examples import Examples
from gaixie.research.pair_encoder.sets import Example, Sets

XZ = {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 28}


def write_drawn(sets: Sets, count: int, seed: int, path: Path) -> Counter[str]:
    """Draws count examples into a file. Returns how many there are of each kind."""
    examples = Examples(sets, Random(seed))
    drawn = [examples.draw() for _ in range(count)]
    lines = sorted(line_of(kind, example) for kind, example in drawn)
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8", filters=[XZ]) as file:
        file.writelines(lines)
    return Counter(kind for kind, _ in drawn)


def line_of(kind: str, example: Example) -> str:
    """An example as a line that begins with its texts: equal ones come together when sorted."""
    row = {"source": example.source, **_paraphrase(example)}
    if example.worse is not None:
        row |= {"worse": _paraphrase(example.worse), "rank": example.rank}
    return json.dumps(row | {"kind": kind}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _paraphrase(example: Example) -> dict[str, Any]:
    targets = {name: round(value, 3) for name, value in example.targets.items()}
    spans = {} if example.spans is None else {"spans": example.spans}
    return {"paraphrase": example.paraphrase, "targets": targets, **spans}
