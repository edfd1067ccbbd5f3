"""Has the shipped paraphraser judged blind: readers do not know what wrote a sentence.

  python research/judge_paraphraser.py draw DATA --output judged
  python research/judge_paraphraser.py report judged ratings.tsv second_reader.tsv

draw    takes unseen sources by seed: written groups, and human translations of WMT sentences that
        are kept for the test. It paraphrases them with the shipped model and settings, and writes
        judged/sheet.tsv to rate and judged/key.json to keep. For each WMT source, the sheet also
        has the best machine translation of the same sentence. The sheet's rows (id, source,
        paraphrase) are shuffled and do not say what wrote them
report  reads ratings that follow the rating guide, tab-separated: id, structure, synonyms, meaning,
        fluency, overall. It averages the ratings of several readers

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

from gaixie.research.pair_encoder.sets import held_out as held_out_group
from gaixie.research.pair_encoder.versions import held_out, read_references
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.paraphrase.paraphraser import Paraphraser
from gaixie.udfs.text.entities import EntityFinder, EntitySettings

GOOD = 4.0
COLUMNS = ["id", "structure", "synonyms", "meaning", "fluency", "overall"]


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    args = _arguments(argv)
    work = draw if args.command == "draw" else report
    return run_command("judge_paraphraser", partial(work, args))


def draw(args: argparse.Namespace) -> None:
    """Draws sources, paraphrases them, and writes the sheet and its key."""
    rows = _sources(args.data, args.each, Random(args.seed))
    found = Paraphraser.load()([row["source"] for row in rows])
    for row, own in zip(rows, found, strict=True):
        row["paraphrase"] = own[0].text if own else None
    sheet = [
        (f"{number}{letter}", row["source"], row[kind])
        for number, row in enumerate(rows)
        for letter, kind in (("a", "paraphrase"), ("b", "translation"))
        if row.get(kind)
    ]
    Random(args.seed).shuffle(sheet)
    key = {str(number): own[0] for number, own in enumerate(sheet)}
    args.output.mkdir(parents=True, exist_ok=True)
    lines = (f"{number}\t{source}\t{text}\n" for number, (_, source, text) in enumerate(sheet))
    (args.output / "sheet.tsv").write_text("".join(lines), "utf-8")
    whole = json.dumps({"rows": rows, "key": key}, ensure_ascii=False, indent=1)
    (args.output / "key.json").write_text(whole, "utf-8")
    print(f"{args.output}/sheet.tsv: {len(sheet)} pairs to rate, of {len(rows)} sources")


def report(args: argparse.Namespace) -> None:
    """Prints every output with its ratings, then the figures."""
    drawn = json.loads((args.folder / "key.json").read_text("utf-8"))
    rated = pd.concat([_ratings(path) for path in args.ratings]).groupby("id").mean()
    rated.index = rated.index.map(lambda number: drawn["key"][str(int(number))])
    for number, row in enumerate(drawn["rows"]):
        print(f"{number}\t{row['source']}\n\t{row['paraphrase'] or '(none)'}")
        if f"{number}a" in rated.index:
            own = rated.loc[f"{number}a"]
            print("\t" + ", ".join(f"{name} {own[name]:.2f}" for name in COLUMNS[1:]))
    for name, value in figures(drawn["rows"], rated).items():
        print(f"{name:56} {value:.3f}")


def _ratings(path: Path) -> pd.DataFrame:
    """Reads a reader's ratings, with or without a header line."""
    with open(path, encoding="utf-8") as lines:
        named = int(lines.readline().startswith("id\t"))
    try:
        return pd.read_csv(path, sep="\t", names=COLUMNS, skiprows=named, dtype=float)
    except ValueError as error:
        raise ValueError(f"{path}: expected six numbers in each line ({error})") from None


def figures(rows: list[dict[str, Any]], rated: pd.DataFrame) -> dict[str, float]:
    """Returns shares and means over the rated paraphrases. rated: by id (0a, 0b, …)."""
    ours = rated[rated.index.str.endswith("a")]
    theirs = rated[rated.index.str.endswith("b")]
    emitted = [row for row in rows if row["paraphrase"]]
    bleu = [
        sentence_bleu(row["paraphrase"], [row["source"]], tokenize="zh").score for row in emitted
    ]
    good = (ours[["meaning", "fluency"]] >= GOOD).all(axis=1)
    kinds = [rows[int(own[:-1])]["kind"] for own in ours.index]
    by_kind = {
        f"the same share, {kind} alone": float(share)
        for kind, share in good.groupby(kinds, sort=False).mean().items()
    }
    return {
        "share without a paraphrase": 1 - len(emitted) / len(rows),
        "share of those rated with meaning of 4 or more": float((ours["meaning"] >= GOOD).mean()),
        "share of those rated with meaning and fluency of 4 or more": float(good.mean()),
        **by_kind,
        "mean overall of 5": float(ours["overall"].mean()),
        "mean overall of another translation, WMT alone": float(theirs["overall"].mean()),
        "mean overall of ours, WMT alone": float(
            ours[ours.index.isin(theirs.index.str.replace("b", "a"))]["overall"].mean()
        ),
        "mean Self-BLEU": sum(bleu) / len(bleu),
        "share that keeps all entities": _entities_kept(emitted),
    }


def _entities_kept(rows: list[dict[str, Any]]) -> float:
    finder = EntityFinder(EntitySettings())
    kept = [
        all(
            row["paraphrase"].count(row["source"][own.start : own.end])
            for own in finder.find(row["source"])
        )
        for row in rows
    ]
    return sum(kept) / len(kept)


def _sources(data: Path, each: int, random: Random) -> list[dict[str, Any]]:
    lines = (data / "written_groups.jsonl").read_text("utf-8").splitlines()
    groups = [own for own in map(json.loads, lines) if held_out_group(own["group"])]
    written = [
        {"kind": "written", "source": own["texts"][0]} for own in random.sample(groups, each)
    ]
    apart = [own for key, *own in read_references(data) if held_out(key) and len(own[0]) >= 15]
    translated = [
        {"kind": "wmt", "source": human, "translation": machine}
        for human, machine in random.sample(apart, min(each, len(apart)))
    ]
    return written + translated


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
