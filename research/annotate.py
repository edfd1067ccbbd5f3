"""Has people rate pairs: sheets out, agreement and a table for research/fit_spscore.py back.

  python research/annotate.py export out/runs/demo --annotators anna bo chen --pairs 200 --output tasks
  python research/annotate.py import tasks filled/*.csv --output rated
  python research/annotate.py import tasks studio/*.json --output rated --drop-careless --adjudicate third
  python research/annotate.py import tasks filled --third rated/third --output final
  python research/fit_spscore.py --input rated/ratings.parquet --output models/mine

export samples pairs of a run, a release, or a table with source and paraphrase, as many of each origin and
fifth of the score as there are, and writes for each annotator a sheet (CSV that Excel opens) and tasks for
Label Studio. Each pair goes to --overlap annotators. Some pairs come twice in a sheet, and some are copies
or unrelated sentences: who does not read is found by them. Sheets show neither scores nor origins; plan.json
knows what is what, and stays with you.

  OUTPUT/plan.json, guideline.md                     for you, and for the annotators
  OUTPUT/sheets/NAME.csv                             to be filled in
  OUTPUT/label_studio/config.xml, NAME.json          the labelling configuration, and tasks to import

import reads sheets and exports of Label Studio (JSON or JSON-MIN), 0 to 5 for structure, synonyms, meaning,
fluency and overall, 0 or 1 for is_paraphrase, and writes

  OUTPUT/ratings.parquet, ratings.csv                a rating for each pair: what fit_spscore.py takes
  OUTPUT/annotation.md, annotation.json              Krippendorff's alpha, weighted kappa, who is careless and why
  OUTPUT/third/                                      with --adjudicate third: what a third person has to decide

Every path may be on S3. Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import partial
from pathlib import Path

from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.storage import storage

GUIDELINE = Path(__file__).with_name("annotation") / "guideline.md.j2"


def main(argv: list[str] | None = None) -> int:
    """Runs the job; its exit code."""
    args = _arguments(argv)
    return run_command(
        "annotate", partial(export if args.what == "export" else import_answers, args)
    )


def export(args: argparse.Namespace) -> None:
    """Samples pairs, and writes plan, sheets and tasks."""
    from gaixie.research.annotation.adjudicate import now, write_plan
    from gaixie.research.annotation.plan import NAME, Plan, assign
    from gaixie.research.annotation.sampling import sample

    names = args.annotators
    for name in names:
        if not re.fullmatch(r"\w[\w.-]*", name) or names.count(name) > 1:
            raise ValueError(f"--annotators {name}: expected different names of letters and digits")
    if args.overlap > len(names):
        raise ValueError(f"--overlap {args.overlap}: there are {len(names)} annotators")
    if storage.exists(storage.join(args.output, NAME)):
        raise ValueError(f"{args.output}: has a plan already; take another --output")
    if not 0 <= args.repeats <= 0.5:
        raise ValueError(f"--repeats {args.repeats:g}: expected a share from 0 to 0.5")
    pairs, checks, strata = sample(args.pairs_of, args.pairs, args.attention, args.seed)
    chosen = [key for key in pairs if key not in checks]
    tasks = assign(chosen, checks, names, args.overlap, args.repeats, args.seed)
    plan = Plan(
        source=args.pairs_of,
        created=now(),
        seed=args.seed,
        overlap=args.overlap,
        pairs=pairs,
        tasks=tasks,
    )
    sheets = write_plan(plan, args.output)
    guideline = storage.join(args.output, "guideline.md")
    storage.write(guideline, GUIDELINE.read_bytes())
    print(strata.to_string(header=["sampled", "there are"]))
    if len(chosen) < args.pairs:
        print(f"{len(chosen)} pairs, not {args.pairs}: there are no more of different sources")
    for sheet, name in zip(sheets, names, strict=True):
        own = [task.kind for task in tasks if task.annotator == name]
        print(
            f"{sheet}: {len(own)} tasks ({own.count('repeat')} repeated, {len(checks)} attention pairs)"
        )
    print(f"plan: {storage.join(args.output, NAME)} (not for annotators)")


def import_answers(args: argparse.Namespace) -> None:
    """Reads answers, reports on them, and writes a rating for each pair."""
    from gaixie.research.annotation.adjudicate import (
        adjudicate,
        plan_of_third,
        undecided,
        write_plan,
    )
    from gaixie.research.annotation.answers import read_answers
    from gaixie.research.annotation.plan import read_plan
    from gaixie.research.annotation.report import decided_section, look
    from gaixie.udfs.reports import markdown_of, print_sections, write_json
    from gaixie.udfs.storage.local_copy import local_copy

    plan = read_plan(args.plan)
    answers = read_answers(plan, args.answers or [storage.join(args.plan, "sheets")])
    third = None
    if args.third:
        third = read_answers(read_plan(args.third), [storage.join(args.third, "sheets")])
    careless, alphas, sections = look(plan, answers, args.drop_careless, args.samples)
    dropped = [who.annotator for who in careless] if args.drop_careless else []
    table = adjudicate(plan, answers, dropped, args.apart, third)
    waiting = undecided(table) if args.adjudicate == "third" else table["disputed"] & False
    kept = table[~waiting]
    if kept.empty:
        raise ValueError("no pair has a rating that counts; nothing was written")
    sections.append(decided_section(plan, kept, int(waiting.sum()), args.adjudicate))
    with local_copy(args.output) as (folder,):
        folder.mkdir(parents=True, exist_ok=True)
        kept.to_parquet(folder / "ratings.parquet", index=False)
        kept.to_csv(folder / "ratings.csv", index=False, encoding="utf-8-sig")
        text = markdown_of("Annotation", sections)
        (folder / "annotation.md").write_text(text, "utf-8")
        figures = {
            "alpha": {
                field: {level: alpha._asdict() for level, alpha in levels.items()}
                for field, levels in alphas.items()
            },
            "careless": {who.annotator: who.reasons for who in careless},
            "dropped": dropped,
            "pairs": len(kept),
            "disputed": int(table["disputed"].sum()),
            "left_to_a_third": int(waiting.sum()),
        }
        write_json(folder / "annotation.json", figures)
    print_sections(sections)
    if waiting.any():
        [sheet] = write_plan(plan_of_third(plan, table), storage.join(args.output, "third"))
        print(f"\nfor a third person: {sheet}")
    print(f"\nratings: {storage.join(args.output, 'ratings.parquet')}")
    print(f"report: {storage.join(args.output, 'annotation.md')}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("annotate.py", __doc__)
    commands = parser.add_subparsers(dest="what", required=True, metavar="export | import")
    out = commands.add_parser("export", help="sample pairs and write sheets")
    out.add_argument(
        "pairs_of", metavar="PAIRS", help="folder of a run or release, or a table of pairs"
    )
    out.add_argument("--annotators", metavar="NAME", nargs="+", required=True)
    out.add_argument("--output", metavar="FOLDER", required=True)
    out.add_argument("--pairs", metavar="N", type=positive, default=200, help="default 200")
    out.add_argument("--overlap", metavar="K", type=positive, default=2, help="default 2")
    out.add_argument(
        "--repeats", metavar="SHARE", type=float, default=0.1, help="pairs that come twice; 0.1"
    )
    out.add_argument(
        "--attention", metavar="N", type=int, default=6, help="attention pairs a sheet; default 6"
    )
    out.add_argument("--seed", type=int, default=1, help="default 1")
    back = commands.add_parser("import", help="read answers, report, and write the ratings")
    back.add_argument("plan", metavar="FOLDER", help="--output of export")
    back.add_argument(
        "answers",
        metavar="ANSWERS",
        nargs="*",
        help="sheets, exports, folders; default FOLDER/sheets",
    )
    back.add_argument("--output", metavar="FOLDER", required=True)
    back.add_argument("--drop-careless", action="store_true", help="their answers do not count")
    back.add_argument(
        "--adjudicate",
        choices=("median", "third"),
        default="median",
        help="of disputed pairs: take the median, or leave them to a third person",
    )
    back.add_argument(
        "--apart", metavar="N", type=float, default=2, help="answers further apart are disputed; 2"
    )
    back.add_argument("--third", metavar="FOLDER", help="with a filled sheets/third.csv")
    back.add_argument(
        "--samples", metavar="N", type=positive, default=1_000, help="of the bootstrap"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
