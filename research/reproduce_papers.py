"""Puts the figures of CSPC, MCTS, MultiPIT and WEEM4PG beside ours, on one page.

  python research/fit_spscore.py --config conf/spscore.yaml --data DATA --tier paper --ablation \\
      --test 0.1 --output OUT/cspc
  python research/report_simplifications.py --data DATA/mcts --output OUT/mcts
  python research/identify_paraphrases.py --data DATA --encoder MODEL --members 3 \\
      --output OUT/multipit
  python research/identify_paraphrases.py --data DATA --encoder MODEL --noisy Twitter-Para \\
      --limit 3000 --epochs 4 --freeze 4 --learning-rate 2e-4 --student-epochs 1 --output OUT/noise
  python research/evaluate_generators.py --reviews DATA/hotel_reviews.csv --vectors VECTORS \\
      --seeds 2 --output OUT/generators
  python research/reproduce_papers.py OUT --data DATA --encoder MODEL --page docs/papers.md

The last command measures how far people's paraphrases go in MultiPIT's expert set, and writes the
page. It leaves out a section without figures; if there are none at all, it writes no page.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from gaixie.research.identification.data import Config, read_pairs
from gaixie.research.papers.diversity import human_diversity
from gaixie.udfs.command_line import make_parser, run_command, say
from gaixie.udfs.reports import render
from gaixie.udfs.storage.settings import load_settings

SETTINGS = Path(__file__).parents[1] / "conf/identification.yaml"
HERE = Path(__file__).parent / "papers"
REFERENCES = 8
"""Diversity is measured over this many paraphrases of a source, as in MultiPIT_NMR."""
FILES = {
    "cspc": "cspc/paper/evaluation.json",
    "cspc_test": "cspc/paper/test.json",
    "mcts": "mcts/simplifications.json",
    "multipit": "multipit/identification.json",
    "noise": "noise/identification.json",
    "generators": "generators/generators.json",
}


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    return run_command("reproduce_papers", partial(reproduce, _arguments(argv)))


def reproduce(args: argparse.Namespace) -> None:
    """Reads the figures, measures human diversity, and writes the page."""
    figures: dict[str, Any] = {}
    for name, file in FILES.items():
        path = args.figures / file
        figures[name] = json.loads(path.read_text("utf-8")) if path.is_file() else None
        if not path.is_file():
            say(f"{name}: left out: {path} is not there")
    figures["diversity"] = _diversity(args.data, args.encoder) if args.data else None
    if not any(figures.values()):
        raise ValueError(f"{args.figures}: has no figures, so there is no page to write")
    if mcts := figures["mcts"]:
        # Each person is scored against the others.
        bleu = [mcts["systems"][f"person {k}"]["bleu"]["score"] for k in range(mcts["references"])]
        figures |= {"people_low": min(bleu), "people_high": max(bleu)}
    published = yaml.safe_load((HERE / "published.yaml").read_text("utf-8"))
    args.page.write_text(render(HERE / "papers.md.j2", published=published, **figures), "utf-8")
    print(args.page)


def _diversity(data: Path, encoder: str | None) -> dict[str, Any]:
    """Measures human diversity on both parts of the expert set."""
    pairs = next(s for s in load_settings(Config, SETTINGS).sets if s.test)
    found: dict[str, list[str]] = {}
    for file in (pairs.path, pairs.test):
        part = read_pairs(pairs.model_copy(update={"path": file}), data)
        for source, paraphrase, label in zip(*part, strict=True):
            if label >= 0.5:
                found.setdefault(source, []).append(paraphrase)
    return human_diversity(found, REFERENCES, encoder, "13a")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("reproduce_papers.py", __doc__)
    add = parser.add_argument
    add("figures", type=Path, metavar="OUT", help="of the commands above")
    add("--data", type=Path, metavar="FOLDER", help="of the sets, for people's diversity")
    add("--encoder", metavar="MODEL", help="of English, for BERT-iBLEU")
    add("--page", type=Path, required=True, metavar="FILE", help="Markdown")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
