"""Fits what says how likely a reader accepts a draft (udfs/paraphrase/quality.py) to rated drafts.

  python research/fit_quality.py research/ratings/drafts_apart.jsonl
  python research/fit_quality.py FILES --output udfs/paraphrase/quality.json

A line has source, code (udfs/paraphrase/prompt.py), paraphrase, and the ratings structure,
synonyms, meaning, fluency and overall, 0 to 5, of research/ratings/guideline.md. The writer says
how likely the drafts are; the judge must not have seen them. It prints, held out by source, how the
two models follow the ratings, and what is shown, accepted and changed at several thresholds. Exit
codes: 0 done, 2 something to fix.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from gaixie.research.ratings.rated import GOOD, RATINGS
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.paraphrase.judge import JUDGE, Judge
from gaixie.udfs.paraphrase.paraphraser import NEAR, writer_folder
from gaixie.udfs.paraphrase.prompt import overlap, prompt
from gaixie.udfs.paraphrase.quality import COLUMNS, FILE, LIKELIHOOD, Quality
from gaixie.udfs.paraphrase.writer import ModelWriter, draft_of
from gaixie.udfs.text.normalise import normalise

FOLDS = 8
REGULARISATION = {"accepted": 0.05, "overall": 30.0}
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("fit_quality.py", __doc__)
    parser.add_argument("drafts", nargs="+", type=Path, metavar="FILE", help="rated drafts")
    shipped = "of the writer and its judge (%(default)s)"
    parser.add_argument(
        "--model", type=Path, default=writer_folder(), metavar="FOLDER", help=shipped
    )
    parser.add_argument("--output", type=Path, help=f"the fitted weights, such as {FILE.name}")
    return run_command("fit_quality", lambda: fit(parser.parse_args(argv)))


def fit(args: argparse.Namespace) -> None:
    """Runs the command."""
    rated = pd.concat([pd.read_json(path, lines=True) for path in args.drafts], ignore_index=True)
    asked = [prompt(*row) for row in zip(rated["source"], rated["code"].astype(str), strict=True)]
    writer = ModelWriter.load(args.model)
    known = writer.log_probabilities([*zip(asked, rated["paraphrase"], strict=True)])
    drafts = [*map(draft_of, rated["paraphrase"], known)]
    columns = Quality(Judge.load(args.model / JUDGE)).columns(rated["source"].tolist(), drafts)
    ratings = rated[[*RATINGS]].to_numpy(float)
    good = (rated["meaning"] >= GOOD) & (rated["fluency"] >= GOOD)
    print(f"{len(rated):,} drafts of {rated['source'].nunique():,} sources, {good.mean():.0%} good")
    weights = {}
    for name, left_out in (("written", ()), ("other", LIKELIHOOD)):
        kept = [k for k, column in enumerate(COLUMNS) if column not in left_out]
        print(f"\n{name}, by {len(kept)} columns, held out by source:")
        _evaluate(columns[:, kept], good.to_numpy(), ratings, rated)
        weights[name] = {"columns": [COLUMNS[k] for k in kept]}
        weights[name] |= _weights(*_fitted(columns[:, kept], good.to_numpy(), ratings[:, -1] / 5))
    if args.output:
        args.output.write_text(json.dumps(weights, indent=1) + "\n", "utf-8")


def _fitted(x: np.ndarray, good: np.ndarray, overall: np.ndarray) -> tuple[Any, Any, Any]:
    scaler = StandardScaler().fit(x)
    x = scaler.transform(x)
    accepted = LogisticRegression(C=REGULARISATION["accepted"], max_iter=2_000).fit(x, good)
    return scaler, accepted, Ridge(REGULARISATION["overall"]).fit(x, overall)


def _weights(scaler: Any, accepted: Any, overall: Any) -> dict[str, Any]:
    return {
        "mean": scaler.mean_.round(6).tolist(),
        "scale": scaler.scale_.round(6).tolist(),
        "accepted": accepted.coef_[0].round(6).tolist(),
        "accepted_bias": round(float(accepted.intercept_[0]), 6),
        "overall": overall.coef_.round(6).tolist(),
        "overall_bias": round(float(overall.intercept_), 6),
    }


def _evaluate(x: np.ndarray, good: np.ndarray, ratings: np.ndarray, rated: pd.DataFrame) -> None:
    sources, texts = rated["source"].map(normalise), rated["paraphrase"].map(normalise)
    near = [overlap(a, b) >= NEAR for a, b in zip(sources, texts, strict=True)]
    accepted, overall = np.empty(len(x)), np.empty(len(x))
    for train, test in GroupKFold(FOLDS).split(x, groups=sources):
        scaler, a, o = _fitted(x[train], good[train], ratings[train, -1] / 5)
        accepted[test] = a.predict_proba(scaler.transform(x[test]))[:, 1]
        overall[test] = o.predict(scaler.transform(x[test]))
    for name, k in (("meaning", 2), ("fluency", 3)):
        print(f"  accepted follows {name} to {spearmanr(accepted, ratings[:, k])[0]:.3f}")
    print(f"  overall follows the ratings to {spearmanr(overall, ratings[:, -1])[0]:.3f}")
    table = pd.DataFrame(
        {"source": sources, "accepted": accepted, "worth": accepted * overall, "good": good}
    )
    table[[*RATINGS]] = ratings
    table.loc[near, "accepted"] = 0.0  # the product does not show them
    for least in THRESHOLDS:
        best = table[table["accepted"] >= least].sort_values("worth").groupby("source").tail(1)
        shown = len(best) / sources.nunique()
        print(
            f"  at {least}: shown {shown:.0%}, good {best['good'].mean():.0%}, structure "
            f"{best['structure'].mean():.2f}, overall {best['overall'].mean():.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
