"""How fast the surface metrics score, from Arrow strings to float64, on one core.

bench.py prints it. Beside them, in the same run: what sacrebleu's own BLEU does sentence by sentence
on the same work.
A row is a source, a paraphrase and a reference, three systems' Chinese for one English sentence.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from sacrebleu.metrics.bleu import BLEU as Sacrebleu

from gaixie.research.benchmarks.common import best_rate, translations
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.metrics.metric import Pairs

METRICS = (
    *("bleu", "self-bleu", "ibleu", "rouge-1", "rouge-2", "rouge-l", "pinc", "edit-distance"),
)
BASELINE_ROWS = 4_000


def triples(data: Path, count: int, seed: int = 7) -> list[tuple[str, str, str]]:
    """Rows of a source, a paraphrase and a reference, drawn by the seed."""
    lists = [row for row in translations(data) if len(row) >= 3]
    rng = random.Random(seed)
    return [tuple(rng.sample(rng.choice(lists), 3)) for _ in range(count)]


def bench_metrics(data: Path, pairs: int) -> dict[str, dict[str, float]]:
    """Pairs a second and core of each metric, and of sacrebleu, by name."""
    rows = triples(data, pairs)
    columns = Pairs.of(*zip(*rows, strict=True))
    sacrebleu = Sacrebleu(tokenize="char", effective_order=True)

    def baseline() -> list[float]:
        # A tokenizer's cache would remember the sentences from one repeat to the next.
        sacrebleu.tokenizer.__class__.__call__.cache_clear()
        return [sacrebleu.sentence_score(p, [r]).score for _, p, r in rows[:BASELINE_ROWS]]

    slow = best_rate(min(pairs, BASELINE_ROWS), baseline, 2)
    result = {
        "pairs": {"characters_a_sentence": float(np.mean([len(s) for row in rows for s in row]))},
        "sacrebleu": {"pairs_per_s_per_core": slow},
    }
    for name in METRICS:
        metric = load_metric(name)
        rate = best_rate(pairs, lambda metric=metric: metric.sentence_scores(columns))
        result[name] = {"pairs_per_s_per_core": rate, "ratio_to_sacrebleu": rate / slow}
    return result
