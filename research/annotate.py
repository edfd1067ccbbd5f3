"""Has people rate pairs in Label Studio: tasks out, agreement and ratings back.

  python research/annotate.py export out/runs/demo --annotators anna bo chen --output tasks
  python research/annotate.py import tasks exports/*.json --output rated
  python research/annotate.py import tasks exports --output rated --drop-careless --adjudicate third
  python research/annotate.py import tasks exports third.json --third rated/third --output final
  python research/fit_spscore.py --input rated/ratings.parquet --output models/mine

export samples pairs of a run, a release, or a table with source and paraphrase, equally many of
each origin and fifth of the score, and writes a file of tasks for each annotator. Each pair goes to
--overlap annotators. Some pairs come twice, and some are copies or unrelated sentences: they show
who does not read. Tasks show neither scores nor origins; plan.json has these, and stays with you.

  OUTPUT/plan.json, guideline.md                     for you, and for the annotators
  OUTPUT/label_studio/config.xml, NAME.json          labelling configuration, tasks to import

import reads exports of Label Studio (JSON, JSON-MIN or CSV), 0 to 5 for structure, synonyms,
meaning, fluency and overall, 0 or 1 for is_paraphrase, and writes

  OUTPUT/ratings.parquet, ratings.csv     a rating for each pair, as fit_spscore.py takes it
  OUTPUT/annotation.md, annotation.json   alpha, weighted kappa, who is careless and why
  OUTPUT/third/                           with --adjudicate third: tasks of disputed pairs

Every path may be on S3. Exit codes: 0 done, 2 something to fix (one line says what).
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import partial
from pathlib import Path

from gaixie.jobs.errors import run as run_job
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.storage import storage


def main(argv: list[str] | None = None) -> int:
    """Runs the job and gives its exit code."""
    args = _arguments(argv)
    work = partial(export if args.what == "export" else import_answers, args)
    command = partial(run_command, "annotate", work)
    return run_job("annotate", command, "nothing was written")


def export(args: argparse.Namespace) -> None:
    """Samples pairs, and writes plan and tasks."""
    from gaixie.research.annotation.sampling import sample
    from gaixie.research.annotation.tasks import PLAN, assign, write_plan

    names = args.annotators
    for name in names:
        if not re.fullmatch(r"\w[\w.-]*", name) or names.count(name) > 1:
            raise ValueError(f"--annotators {name}: expected different names of letters and digits")
    if args.overlap > len(names):
        raise ValueError(f"--overlap {args.overlap}: there are {len(names)} annotators")
    if storage.exists(storage.join(args.output, PLAN)):
        raise ValueError(f"{args.output}: has a plan already; take another --output")
    if not 0 <= args.repeats <= 0.5:
        raise ValueError(f"--repeats {args.repeats:g}: expected a share from 0 to 0.5")
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
    import pandas as pd

    from gaixie.research.annotation import report
    from gaixie.research.annotation.answers import read_answers
    from gaixie.research.annotation.tasks import read_plan, write_plan
    from gaixie.udfs.reports import render, write_json
    from gaixie.udfs.storage.local_copy import local_copy

    plan = read_plan(args.plan)
    both = pd.concat([plan, read_plan(args.third)]) if args.third else plan
    answers = read_answers(both, args.answers)
    own = answers[answers["annotator"] != report.THIRD]
    people = report.annotators(plan, own)
    careless = report.find_careless(people, own)
    dropped = [*careless] if args.drop_careless else []
    agreements = {"everybody": report.agreement(own, args.samples)}
    if dropped:
        rest = own[~own["annotator"].isin(dropped)]
        agreements["without the careless"] = report.agreement(rest, args.samples)
    table = report.adjudicate(answers, dropped, args.apart)
    left = table["disputed"] & (table["decided_by"] != report.THIRD) & (args.adjudicate == "third")
    waiting, kept = table[left], table[~left].drop(columns="pair")
    if kept.empty:
        raise ValueError("no pair has a rating that counts; nothing was written")
    sample = plan[plan["kind"] == "pair"]["pair"].nunique()
    text = render(
        Path(__file__).parent / "annotation/annotation.md.j2",
        people=people.to_dict("index"),
        careless=careless,
        dropped=dropped,
        agreements=agreements,
        rule=args.adjudicate,
        **report.outcome(kept, sample, len(waiting)),
    )
    alphas = [*agreements.values()][-1]["alpha"]
    figures = {"alpha": alphas, "careless": careless, "dropped": dropped, "pairs": len(kept)}
    figures |= {"disputed": int(table["disputed"].sum()), "left_to_a_third": len(waiting)}
    with local_copy(args.output) as (folder,):
        folder.mkdir(parents=True, exist_ok=True)
        kept.to_parquet(folder / "ratings.parquet", index=False)
        kept.to_csv(folder / "ratings.csv", index=False, encoding="utf-8-sig")
        (folder / "annotation.md").write_text(text, "utf-8")
        write_json(folder / "annotation.json", figures)
    print(text)
    if len(waiting):
        third = plan[plan["pair"].isin(waiting["pair"])].drop_duplicates("pair")
        third = third.assign(annotator=report.THIRD, kind="pair")
        third["task"] = [f"{report.THIRD}-{number:04d}" for number in range(1, len(third) + 1)]
        [file] = write_plan(third, storage.join(args.output, "third"))
        print(f"for a third person: {file}")
    print(f"ratings: {storage.join(args.output, 'ratings.parquet')}")
    print(f"report: {storage.join(args.output, 'annotation.md')}")


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("annotate.py", __doc__)
    commands = parser.add_subparsers(dest="what", required=True, metavar="export | import")
    export = commands.add_parser("export", help="sample pairs and write tasks")
    add = export.add_argument
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
    rule = "of disputed pairs: take the median, or leave them to a third person"
    add("--adjudicate", choices=("median", "third"), default="median", help=rule)
    add("--apart", metavar="N", type=float, default=2, help="more than N apart is disputed; 2")
    add("--third", metavar="FOLDER", help="OUTPUT/third of an earlier import, now answered")
    add("--samples", metavar="N", type=positive, default=1_000, help="of the bootstrap")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
