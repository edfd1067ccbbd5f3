"""Compares metrics by how they rank the translations of a sentence, against people's judgements.

  python research/rank_translations.py --data FOLDER --model full --encoder models/bge-small-zh

Reads the judged translations of WMT 2024 (ESA), which nothing here was trained on. Prints Kendall's
tau-b within a segment, the mean over segments, with 95 % intervals by bootstrap over documents. A
text's score is the mean of a metric over the pairs of another text of the segment and this one. A
metric of which lower is better counts with its sign turned; one that fails is named and left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from gaixie.jobs.errors import JobError, run
from gaixie.research.comparison.translations import Score, translations
from gaixie.udfs.command_line import in_words, make_parser, say
from gaixie.udfs.metrics import Pairs, load_metric
from gaixie.udfs.spscore import OUTPUTS, SPScore

JUDGED = "wmt24_esa_zh.dev.jsonl"
METRICS = (
    *("bleu-free", "self-bleu", "chrf-free", "ter-free", "rouge-1-free", "rouge-2-free"),
    *("rouge-l-free", "meteor-free", "pinc", "edit-distance", "sari", "hsk-easy", "weem4pg"),
    *("similarity", "bertscore-free", "parascore-free", "bert-ibleu"),
)


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    left_out: set[str] = set()
    try:
        metrics: dict[str, Score] = {}
        for folder in ("paper", "core", *args.model):
            metrics |= _outputs(SPScore.load(folder))
        metrics |= {spec: partial(_scores, spec, args, left_out) for spec in args.metric or METRICS}
        ranking = translations(args.data / JUDGED, metrics)
    except (ValueError, OSError, ImportError) as error:
        raise JobError(in_words(error)) from error
    print(
        f"{ranking['texts']:,} translations of {ranking['segments']} segments in"
        f" {ranking['documents']} documents"
    )
    for row in ranking["metrics"]:
        if row["metric"] not in left_out:
            print(f"{row['metric']:28s} {row['tau']:.3f} ({row['low']:.3f} to {row['high']:.3f})")
    return 0


def _outputs(model: SPScore) -> dict[str, Score]:
    """The outputs of a model, computed once, and meaning times fluency."""
    kept: list[dict[str, np.ndarray]] = []

    def score(name: str, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        if not kept:
            found = dict(zip(OUTPUTS, model.outputs(sources, paraphrases).T, strict=True))
            kept.append(found | {"meaning x fluency": found["meaning"] * found["fluency"]})
        return kept[0][name]

    names = (*OUTPUTS, "meaning x fluency")
    return {f"spscore {model.tier}: {name}": partial(score, name) for name in names}


def _scores(
    spec: str,
    args: argparse.Namespace,
    left_out: set[str],
    sources: Sequence[str],
    paraphrases: Sequence[str],
) -> np.ndarray:
    """Scores of a metric, the higher the better; its name is added to left_out where it fails."""
    started = time.perf_counter()
    metric = load_metric(spec, model=args.encoder, vectors=args.word_vectors)
    try:
        scores = metric.sentence_scores(Pairs.of(sources, paraphrases))
    except (ValueError, OSError, ImportError) as error:
        say(f"{spec}: left out: {in_words(error)}")
        left_out.add(spec)
        return np.zeros(len(sources))
    say(f"{spec}: {len(sources):,} pairs, {time.perf_counter() - started:.1f} s")
    return scores if metric.higher_is_better else -scores


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("rank_translations.py", __doc__)
    add = parser.add_argument
    add("--data", required=True, type=Path, metavar="FOLDER", help="folder of the sets")
    add("--model", action="append", default=[], help="a fitted SPScore-zh beside paper and core")
    add("--encoder", default="models/bge-small-zh", help="of the embedding metrics")
    add("--word-vectors", default="models/word-vectors", help="of weem4pg")
    add("--metric", action="append", help=f"may be repeated; by default {', '.join(METRICS)}")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("rank_translations", main))
