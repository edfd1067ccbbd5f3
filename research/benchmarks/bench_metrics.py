"""How fast the surface metrics score, from Arrow strings to float64, on one core.

    python research/benchmarks/bench_metrics.py --data FOLDER --pairs 50000

Beside them, in the same run: what sacrebleu's own BLEU does sentence by sentence on the same work.
A row is a source, a paraphrase and a reference, three systems' Chinese for one English sentence.
"""

from __future__ import annotations

import argparse
import random
import timeit
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sacrebleu.metrics.bleu import BLEU as Sacrebleu

from gaixie.research.benchmarks.pairs import TRANSLATIONS
from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.bleu import BLEU
from gaixie.udfs.metrics.edit_distance import EditDistance
from gaixie.udfs.metrics.encoder import load_encoder
from gaixie.udfs.metrics.ibleu import IBLEU
from gaixie.udfs.metrics.metric import Pairs
from gaixie.udfs.metrics.pinc import PINC
from gaixie.udfs.metrics.rouge import ROUGE
from gaixie.udfs.metrics.self_bleu import SelfBLEU

METRICS = (
    BLEU(),
    SelfBLEU(),
    IBLEU(),
    ROUGE("1"),
    ROUGE("2"),
    ROUGE("l"),
    PINC(),
    EditDistance(),
)
BASELINE_ROWS = 4_000


def triples(data: Path, count: int, seed: int = 7) -> list[tuple[str, str, str]]:
    """Rows of a source, a paraphrase and a reference, drawn by the seed."""
    table = pq.read_table(data / TRANSLATIONS, columns=["translations_zh"])
    lists = [sorted({s for s in row if s and s.strip()}) for row in table.column(0).to_pylist()]
    lists = [row for row in lists if len(row) >= 3]
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

    slow = _rate(min(pairs, BASELINE_ROWS), baseline, 2)
    result = {
        "pairs": {"characters_a_sentence": float(np.mean([len(s) for row in rows for s in row]))},
        "sacrebleu": {"pairs_per_s_per_core": slow},
    }
    for metric in METRICS:
        rate = _rate(pairs, lambda metric=metric: metric.sentence_scores(columns), 5)
        result[metric.name] = {"pairs_per_s_per_core": rate, "ratio_to_sacrebleu": rate / slow}
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
    ours = _rate(pairs, lambda: metric.sentence_scores(columns), 2)
    package = _rate(pairs, lambda: theirs.score(paraphrases, references), 2)
    return {"pairs_per_s": ours, "package_pairs_per_s": package, "ratio": ours / package}


def _rate(rows: int, work, repeats: int) -> float:
    """Rows a second of the fastest of some repeats; a first one compiles."""
    work()
    return rows / min(timeit.repeat(work, number=1, repeat=repeats))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder of {TRANSLATIONS}")
    parser.add_argument("--pairs", type=int, default=50_000)
    args = parser.parse_args()
    for name, figures in bench_metrics(args.data, args.pairs).items():
        for figure, value in figures.items():
            print(f"{name + '.' + figure:<46}{value:>16,.1f}")


if __name__ == "__main__":
    main()
