"""Has people rate pairs in Label Studio: tasks out, agreement and ratings back.

  python research/annotate.py export out/runs/demo --annotators anna bo chen --output tasks
  python research/annotate.py import tasks exports/*.json --output rated
  python research/annotate.py import tasks exports --output rated --drop-careless
  python research/fit_spscore.py --input rated/ratings.parquet --output models/mine

export samples pairs from a run, a release, or a table with source and paraphrase: equally many from
each origin and each fifth of the score. It writes a file of tasks for each annotator. Each pair
goes to --overlap annotators. Some pairs come twice, and some are copies or unrelated sentences;
these checks show who does not read. Tasks show neither scores nor origins: those are in plan.json,
which annotators must not see.

  OUTPUT/plan.json, guideline.md                     for you, and for the annotators
  OUTPUT/label_studio/config.xml, NAME.json          labelling configuration, tasks to import

import reads exports of Label Studio (JSON, JSON-MIN or CSV): 0 to 5 for structure, synonyms,
meaning, fluency and overall, 0 or 1 for is_paraphrase. It writes

  OUTPUT/ratings.parquet                  a rating for each pair, as input for fit_spscore.py
  OUTPUT/annotation.md, annotation.json   alpha, and which annotators are careless and why

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


def main(argv: list[str] | None = None) -> int:
    """Runs the job and returns its exit code."""
    args = _arguments(argv)
    work = partial(export if args.what == "export" else import_answers, args)
    return run_command("annotate", work, "nothing was written")


def export(args: argparse.Namespace) -> None:
    """Samples pairs and writes the plan and the tasks."""
    from gaixie.research.annotation.sampling import sample
    from gaixie.research.annotation.tasks import PLAN, assign, write_plan

    names = args.annotators
    for name in names:
        if not re.fullmatch(r"\w[\w.-]*", name) or names.count(name) > 1:
            raise ValueError(f"--annotators {name}: expected different names of letters and digits")
    if args.overlap > len(names):
        raise ValueError(f"--overlap {args.overlap}: there are {len(names)} annotators")
    if storage.exists(storage.join(args.output, PLAN)):
        raise ValueError(f"{args.output}: has a plan already; use another --output")
    pairs, strata = sample(args.pairs_of, args.pairs, args.attention, args.seed)
    plan = assign(pairs, names, args.overlap, args.repeats, args.seed)
    files = write_plan(plan, args.output)
    print(strata.to_string(header=["sampled", "there are"]))
    if (count := int((pairs["kind"] == "pair").sum())) < args.pairs:
        print(f"{count} pairs, not {args.pairs}: there are no more of different sources")
    for file, name in zip(files, names, strict=True):
        kinds = plan[plan["annotator"] == name]["kind"].tolist()
        checks = f"{kinds.count('repeat')} repeated, {args.attention} attention pairs"
        print(f"{file}: {len(kinds)} tasks ({checks})")
    print(f"plan: {storage.join(args.output, PLAN)} (not for annotators)")


def import_answers(args: argparse.Namespace) -> None:
    """Reads answers, reports on them, and writes a rating for each pair."""
    from gaixie.research.annotation import report
    from gaixie.research.annotation.agreement import krippendorff
    from gaixie.research.annotation.answers import read_answers
    from gaixie.research.annotation.tasks import read_plan
    from gaixie.udfs.reports import render, write_json
    from gaixie.udfs.storage.local_copy import local_copy

    plan = read_plan(args.plan)
    answers = read_answers(plan, args.answers)
    people = report.annotators(plan, answers)
    careless = [name for name, own in people.items() if own["careless"]]
    dropped = careless if args.drop_careless else []
    counted = {"everybody": answers}
    if dropped:
        counted["without the careless"] = answers[~answers["annotator"].isin(dropped)]
    agreements = {
        who: {name: krippendorff(own.to_numpy(float)) for name, own in report.tables_of(of).items()}
        for who, of in counted.items()
    }
    ratings = report.one_rating(answers, dropped, args.apart)
    if ratings.empty:
        raise ValueError("no pair has a rating that counts; nothing was written")
    figures = {
        "people": people,
        "dropped": dropped,
        "agreements": agreements,
        **report.outcome(ratings, plan[plan["kind"] == "pair"]["pair"].nunique()),
    }
    text = render(Path(__file__).parent / "annotation/annotation.md.j2", **figures)
    with local_copy(args.output) as (folder,):
        folder.mkdir(parents=True, exist_ok=True)
        ratings.to_parquet(folder / "ratings.parquet", index=False)
        (folder / "annotation.md").write_text(text, "utf-8")
        write_json(folder / "annotation.json", figures)
    print(text)
    print(f"ratings: {storage.join(args.output, 'ratings.parquet')}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("annotate.py", __doc__)
    commands = parser.add_subparsers(dest="what", required=True, metavar="export | import")
    add = commands.add_parser("export", help="sample pairs and write tasks").add_argument
    add("pairs_of", metavar="PAIRS", help="folder of a run or release, or a table of pairs")
    add("--annotators", metavar="NAME", nargs="+", required=True, help="a file of tasks for each")
    add("--output", metavar="FOLDER", required=True, help="for plan and tasks")
    add("--pairs", metavar="N", type=positive, default=200, help="default 200")
    add("--overlap", metavar="K", type=positive, default=2, help="annotators of a pair; default 2")
    add("--repeats", metavar="SHARE", type=float, default=0.1, help="pairs that come twice; 0.1")
    add("--attention", metavar="N", type=int, default=6, help="attention pairs of each; default 6")
    add("--seed", type=int, default=1, help="of what is drawn; default 1")
    add = commands.add_parser("import", help="read answers, report, and write ratings").add_argument
    add("plan", metavar="FOLDER", help="--output of export")
    add("answers", metavar="EXPORT", nargs="+", help="exports of Label Studio, folders of them")
    add("--output", metavar="FOLDER", required=True, help="for ratings and report")
    add("--drop-careless", action="store_true", help="their answers do not count")
    add("--apart", metavar="N", type=float, default=2, help="more than N apart is disputed; 2")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
