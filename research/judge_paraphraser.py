"""Judges the shipped paraphraser on sentences it has not learned from: a sheet out, figures back.

  python research/judge_paraphraser.py draw ../shared/data --seed 1 --output judged
  python research/judge_paraphraser.py report judged ratings.tsv second_reader.tsv

draw    takes unseen sources by seed: written groups, and human translations of WMT sentences that
        are kept for the test. It paraphrases them with the shipped model and settings, and writes a
        sheet to rate (research/annotation/sheets.py). For each WMT source the sheet also has the
        best machine translation of the same sentence; it does not say what wrote a row
report  reads ratings that follow the guideline, and averages those of several readers

Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
from sacrebleu import sentence_bleu

from gaixie.research.annotation.sheets import CRITERIA, read_key, read_ratings, write_sheet
from gaixie.research.pair_encoder import sets, versions
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.paraphrase.paraphraser import Paraphraser
from gaixie.udfs.text.entities import EntityFinder, EntitySettings

GOOD = 4.0


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    args = _arguments(argv)
    work = draw if args.command == "draw" else report
    return run_command("judge_paraphraser", partial(work, args))


def draw(args: argparse.Namespace) -> None:
    """Draws sources, paraphrases them, and writes the sheet and its key."""
    sources = _sources(args.data, args.each, Random(args.seed))
    found = Paraphraser.load()([row["source"] for row in sources])
    rows = []
    for item, (row, candidates) in enumerate(zip(sources, found, strict=True)):
        row |= {"item": item, "paraphrase": candidates[0].text if candidates else None}
        if candidates:
            rows.append(row | {"system": "ours"})
        if row["translation"]:
            rows.append(row | {"system": "translation", "paraphrase": row["translation"]})
    sheet = write_sheet(pd.DataFrame(rows), args.output, args.seed)
    (args.output / "sources.json").write_text(json.dumps(sources, ensure_ascii=False), "utf-8")
    print(f"{sheet}: {len(rows)} pairs to rate, of {len(sources)} sources")


def report(args: argparse.Namespace) -> None:
    """Prints every output with its ratings, then the figures."""
    key = read_key(args.folder)
    rated = key.join(read_ratings(args.ratings, key).groupby("id")[CRITERIA].mean(), how="inner")
    for row in rated[rated["system"] == "ours"].sort_values("item").to_dict("records"):
        print(f"{row['item']}\t{row['source']}\n\t{row['paraphrase']}")
        print("\t" + ", ".join(f"{name} {row[name]:.2f}" for name in CRITERIA))
    sources = json.loads((args.folder / "sources.json").read_text("utf-8"))
    for name, value in figures(sources, rated).items():
        print(f"{name:56} {value:.3f}")


def figures(sources: list[dict[str, Any]], rated: pd.DataFrame) -> dict[str, float]:
    """Returns shares and means. rated: the key's columns, and the mean ratings of each row."""
    ours, theirs = (rated[rated["system"] == name] for name in ("ours", "translation"))
    emitted = [row for row in sources if row["paraphrase"]]
    bleu = [
        sentence_bleu(row["paraphrase"], [row["source"]], tokenize="zh").score for row in emitted
    ]
    finder = EntityFinder(EntitySettings())
    kept = [
        all(row["source"][e.start : e.end] in row["paraphrase"] for e in finder.find(row["source"]))
        for row in emitted
    ]
    good = (ours[["meaning", "fluency"]] >= GOOD).all(axis=1)
    by_kind = good.groupby(ours["kind"], sort=False).mean()
    return {
        "share without a paraphrase": 1 - len(emitted) / len(sources),
        "share of those rated with meaning of 4 or more": float((ours["meaning"] >= GOOD).mean()),
        "share of those rated with meaning and fluency of 4 or more": float(good.mean()),
        **{f"the same share, {kind} alone": float(share) for kind, share in by_kind.items()},
        "mean overall of 5": float(ours["overall"].mean()),
        "mean overall of another translation, WMT alone": float(theirs["overall"].mean()),
        "mean overall of ours, WMT alone": float(
            ours["overall"][ours["item"].isin(theirs["item"])].mean()
        ),
        "mean Self-BLEU": sum(bleu) / len(bleu),
        "share that keeps all entities": sum(kept) / len(kept),
    }


def _sources(data: Path, each: int, random: Random) -> list[dict[str, Any]]:
    groups = [row for row in read_json_lines(data / sets.GROUPS) if sets.held_out(row["group"])]
    written = [
        {"kind": "written", "source": row["texts"][0], "translation": None}
        for row in random.sample(groups, each)
    ]
    apart = [
        {"kind": "wmt", "source": human, "translation": machine}
        for foreign, human, machine in versions.read_references(data)
        if versions.held_out(foreign) and len(human) >= 15
    ]
    return written + random.sample(apart, min(each, len(apart)))


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("judge_paraphraser.py", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="sources, their paraphrases, a sheet to rate")
    drawing.add_argument("data", metavar="DATA", type=Path)
    drawing.add_argument("--each", type=positive, default=100, help="of either kind (%(default)s)")
    drawing.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    drawing.add_argument("--output", type=Path, default=Path("out/judged"), help="(%(default)s)")
    reporting = commands.add_parser("report", help="figures of a sheet that was rated")
    reporting.add_argument("folder", metavar="FOLDER", type=Path, help="that draw left")
    reporting.add_argument("ratings", metavar="RATINGS", type=Path, nargs="+")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
