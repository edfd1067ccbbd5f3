"""Evaluates paraphrase generators by PINC and WEEM4PG, and by sentiment classifiers.

  python research/evaluate_generators.py --reviews hotel_reviews.csv --vectors vectors.bin \\
      --output generators

The reviews are a table with columns label (0, 1) and review; the vectors are any word2vec file, as
gensim's ``Word2Vec(rows of words, sg=1).wv.save_word2vec_format`` writes. The generators PG1, PG2
and PG3 replace a word by its nearest, second and third nearest word in the vectors. Four networks
(MLP, CNN, GRU, LSTM) learn sentiment from the reviews and classify the paraphrases of the test
part. The question is whether a metric predicts which paraphrases still show the sentiment (the
paper's Table 3).

  OUTPUT/generators.md      scores and correlations with intervals; generators.json has the same

Source: Hailu, Yu & Fantaye 2020, *Intrinsic and Extrinsic Automatic Evaluation Strategies for
Paraphrase Generation Systems*.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.research.generators.evaluate import (
    NETWORKS,
    ORIGINAL,
    PARTS,
    by_review,
    extrinsic,
    generate,
    intrinsic,
    read_reviews,
    score_reviews,
)
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.metrics import load_metric
from gaixie.udfs.reports import render, write_json

TEMPLATE = Path(__file__).parent / "generators/generators.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_command("evaluate_generators", partial(evaluate, _arguments(argv)))


def evaluate(args: argparse.Namespace) -> None:
    """Reads the reviews, paraphrases and scores them, trains the networks, writes the report."""
    reviews = read_reviews(args.reviews, args.limit)
    specs = {"pinc": "pinc:tokenize=char", "weem4pg": f"weem4pg:vectors={args.vectors}"}
    metrics = {name: load_metric(spec) for name, spec in specs.items()}
    written = generate(reviews, args.vectors)
    scores, label = score_reviews(written, metrics), reviews.label
    train, _, test = (np.flatnonzero(reviews.part == k) for k in range(len(PARTS)))
    read = extrinsic(reviews, written, args.vectors, args.seeds)
    changed = {of: own for of, own in read.items() if of[0] != ORIGINAL}
    result: dict[str, Any] = {
        "name": Path(args.reviews).name,
        "reviews": len(label),
        "parts": {name: int(np.sum(reviews.part == k)) for k, name in enumerate(PARTS)},
        "majority": float(max(label[test].mean(), 1 - label[test].mean())),
        "seeds": args.seeds,
        "accuracy": {n: float((read[ORIGINAL, n] > 0.5).mean()) for n in NETWORKS},
        "intrinsic": intrinsic(scores, train, args.samples),
        "by_review": by_review(scores, changed, test, args.samples),
        "signatures": {name: metric.signature() for name, metric in metrics.items()},
    }
    args.output.mkdir(parents=True, exist_ok=True)
    write_json(args.output / "generators.json", result)
    text = render(TEMPLATE, **result)
    (args.output / "generators.md").write_text(text, "utf-8")
    print(text)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("evaluate_generators.py", __doc__)
    add = parser.add_argument
    add("--reviews", required=True, metavar="FILE", help="a table of labelled reviews")
    add("--vectors", required=True, metavar="PATH", help="word vectors: a file or a folder")
    add("--output", type=Path, required=True, metavar="FOLDER")
    add("--limit", type=int, default=0, metavar="N", help="reviews; 0 is all")
    add("--seeds", type=positive, default=3, metavar="N", help="trainings of each (%(default)s)")
    add("--samples", type=positive, default=1000, metavar="N", help="resamples (%(default)s)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
