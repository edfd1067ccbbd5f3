"""Releases the data written for this project: groups of paraphrases, counterparts, ratings.

  python research/release_written.py DATA --output examples/written

DATA has written_groups.jsonl, written_broken.jsonl, written_rated.jsonl and written_tones.jsonl;
further groups are in research/pair_encoder/. The output is a folder that the Hugging Face hub
accepts: a Parquet file for each table and split, and README.md (the card). Splits are by group; no
model here learned from the test split.

Exit codes: 0 done, 2 something to fix (one line says what).
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import pandas as pd

from gaixie.research.pair_encoder import examples, sets
from gaixie.research.ratings.rated import RATINGS
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.command_line import make_parser, run_command
from gaixie.udfs.reports import render

OWN = Path(__file__).with_name("pair_encoder")
CARD = OWN / "written_card.md.j2"
TONES = ("formal", "spoken", "concise")
EXCHANGED, FIRST_REWRITTEN = 30_000, 40_000
"""First group numbers: of groups with exchanged participants, and of free rewrites."""
TABLES = {
    "groups": "sentences that say the same: S0, then a light, a middle and two full rewordings",
    "counterparts": "sentences that say something else than their source, or are no Chinese",
    "ratings": "pairs rated from 0 to 5",
    "premises": "what follows from a sentence, what may be true, and what contradicts it",
    "tones": "a sentence in a formal, a spoken and a concise tone",
}


def main(argv: list[str] | None = None) -> int:
    """Runs the script and returns its exit code."""
    parser = make_parser("release_written.py", __doc__)
    add = parser.add_argument
    add("data", metavar="DATA", type=Path, help="folder of the written sets")
    add("--output", type=Path, default=Path("examples/written"), help="(%(default)s)")
    return run_command("release_written", partial(release, parser.parse_args(argv)))


def release(args: argparse.Namespace) -> None:
    """Writes the folder of the release."""
    counts: dict[str, dict[str, int]] = {}
    for name, table in read_tables(args.data).items():
        counts[name] = {}
        for split, rows in table.groupby("split", sort=True):
            path = Path("data", f"{name}-{split}.parquet")
            (args.output / path).parent.mkdir(parents=True, exist_ok=True)
            own = rows.drop(columns="split").reset_index(drop=True)
            own.to_parquet(args.output / path, compression="zstd", index=False)
            counts[name][str(split)] = len(own)
    card = render(CARD, counts=counts, tables=TABLES, ratings=RATINGS)
    (args.output / "README.md").write_text(card, "utf-8")
    print(args.output)


def read_tables(data: Path) -> dict[str, pd.DataFrame]:
    """Reads the tables, each with a column ``split``."""
    written = read_json_lines(data / sets.GROUPS, OWN / sets.GROUPS)
    exchanged = read_json_lines(OWN / "exchanged.jsonl")
    rewritten = read_json_lines(*(OWN / name for name in sets.REWRITTEN))
    for row in exchanged:
        row["group"] += EXCHANGED
        row["kinds"] = ["roles"] * len(row["roles"]) + ["other"] * len(row["other"])
        row["wrong"] = row["roles"] + row["other"]
    for row in rewritten:
        row["group"] += FIRST_REWRITTEN
    source = {row["group"]: row["texts"][0] for row in written}
    groups = [(row["group"], row["domain"], row["texts"]) for row in written]
    for domain, rows in (("exchanged", exchanged), ("rewritten", rewritten)):
        groups += [(row["group"], domain, [row["source"], *row["same"]]) for row in rows]
    counterparts = [
        (row["group"], kind, source[row["group"]], row[kind])
        for row in read_json_lines(data / sets.BROKEN, OWN / sets.BROKEN)
        for kind in sets.KINDS
    ]
    counterparts += [
        (row["group"], kind, row["source"], text)
        for row in [*exchanged, *rewritten]
        for kind, text in zip(row["kinds"], row["wrong"], strict=True)
    ]
    own = read_json_lines(OWN / sets.REWRITTEN_RATED)
    for row in own:
        row["group"] = FIRST_REWRITTEN + row["number"]
    rated = pd.DataFrame(read_json_lines(data / "written_rated.jsonl") + own)
    premises = [
        (row["group"], kind, row["premise"], text)
        for row in read_json_lines(OWN / "premises.jsonl")
        for kind in examples.FOLLOWS
        for text in row[kind]
    ]
    toned = read_json_lines(data / "written_tones.jsonl", OWN / "tones.jsonl")
    columns = ["group", "kind", "source", "text"]
    tables = {
        "groups": pd.DataFrame(groups, columns=["group", "domain", "texts"]),
        "counterparts": pd.DataFrame(counterparts, columns=columns),
        "ratings": rated[["group", "kind", "source", "paraphrase", *RATINGS]],
        "premises": pd.DataFrame(premises, columns=columns),
        "tones": pd.DataFrame(toned)[["group", "domain", "source", *TONES]],
    }
    # Models learned from all groups without counterparts.
    compared = {*tables["counterparts"]["group"], *tables["premises"]["group"]}
    test = {group for group in {*compared, *tables["tones"]["group"]} if sets.held_out(group)}
    return {
        name: table.assign(split=table["group"].isin(test).map({True: "test", False: "train"}))
        for name, table in tables.items()
    }


if __name__ == "__main__":
    sys.exit(main())
