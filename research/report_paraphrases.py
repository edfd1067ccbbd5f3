"""Prints how readers rated paraphrases: what was shown, and how good it was, by kind of source.

  python research/report_paraphrases.py research/ratings/paraphrases.jsonl

A line has kind (the domain of the source), source, paraphrase (null if none was good enough),
entities_kept (per cent), self_bleu, and ratings: of each reader structure, synonyms, meaning,
fluency and overall, 0 to 5, by research/ratings/guideline.md. The readers did not know the writer.
Texts of corpora that are not ours are left out; their ratings count. Accepted is a paraphrase whose
meaning and fluency are both rated 4 or more, on the mean of the readers. Exit codes: 0 done, 2
something to fix.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from gaixie.research.ratings.rated import GOOD, RATINGS
from gaixie.udfs.command_line import make_parser, run_command


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("report_paraphrases.py", __doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="rated paraphrases")
    return run_command("report_paraphrases", partial(report, parser.parse_args(argv).file))


def report(file: Path) -> None:
    """Prints the table of a file, and how far its readers agree."""
    rated = pd.read_json(file, lines=True)
    shown = rated[rated["ratings"].notna()].copy()
    by_reader = np.array(shown["ratings"].tolist(), float)  # (pairs, readers, ratings)
    shown[[*RATINGS]] = by_reader.mean(axis=1)
    shown["accepted"] = (shown["meaning"] >= GOOD) & (shown["fluency"] >= GOOD)
    columns = ["accepted", *RATINGS, "entities_kept", "self_bleu"]
    table = shown.groupby("kind")[columns].mean()
    table.loc["all"] = shown[columns].mean()
    sources = rated.groupby("kind").size()
    sources["all"] = len(rated)
    counts = shown.groupby("kind").size()
    counts["all"] = len(shown)
    table.insert(0, "sources", sources)
    table.insert(1, "shown", counts / sources)
    print(table.round(2).to_string())
    for k, name in enumerate(RATINGS):
        agreement = spearmanr(by_reader[:, 0, k], by_reader[:, 1, k])[0]
        print(f"the first two readers agree on {name} to {agreement:.2f}")


if __name__ == "__main__":
    sys.exit(main())
