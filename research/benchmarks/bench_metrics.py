"""How fast the surface metrics score, from Arrow strings to float64, on one core.

    python research/benchmarks/bench_metrics.py --data FOLDER --pairs 50000

Beside them, in the same run: what sacrebleu's own BLEU does sentence by sentence on the same work.
A row is a source, a paraphrase and a reference, three systems' Chinese for one English sentence.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from sacrebleu.metrics.bleu import BLEU as Sacrebleu

from gaixie.research.benchmarks.common import TRANSLATIONS, best_rate, parser, show, translations
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.encoder import load_encoder
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


def bench_bertscore(data: Path, model: str, pairs: int = 1_000) -> dict[str, float]:
    """BERTScore on this machine's device, loading apart; beside it the package bert-score."""
    import bert_score

    rows = triples(data, pairs)
    columns = Pairs.of(*zip(*rows, strict=True))
    metric = BERTScore(model)
    layers = load_encoder(metric.model, metric.layer, metric.device, metric.precision).layer
    theirs = bert_score.BERTScorer(model_type=model, num_layers=layers)
    paraphrases, references = [row[1] for row in rows], [row[2] for row in rows]
    ours = best_rate(pairs, lambda: metric.sentence_scores(columns), 2)
    package = best_rate(pairs, lambda: theirs.score(paraphrases, references), 2)
    return {"pairs_per_s": ours, "package_pairs_per_s": package, "ratio": ours / package}


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, help=f"folder of {TRANSLATIONS}")
    options.add_argument("--pairs", type=int, default=50_000)
    args = options.parse_args()
    show(bench_metrics(args.data, args.pairs))
