"""Real sentences for metrics: three systems' Chinese for one English sentence."""

from __future__ import annotations

import random
from pathlib import Path

from gaixie.research.benchmarks.common import translations


def triples(data: Path, count: int, seed: int = 7) -> list[tuple[str, str, str]]:
    """Rows of a source, a paraphrase and a reference, drawn by the seed."""
    lists = [row for row in translations(data) if len(row) >= 3]
    rng = random.Random(seed)
    return [tuple(rng.sample(rng.choice(lists), 3)) for _ in range(count)]
