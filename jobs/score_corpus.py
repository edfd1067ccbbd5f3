"""Scores a corpus of sentence pairs with SPScore-zh and sorts it into the stages of the curriculum.

  spark-submit jobs/score_corpus.py --input pairs/ --origin parallel --output s3a://bucket/gaixie
  spark-submit jobs/score_corpus.py --config my.yaml --run-id monday --resume
  python jobs/score_corpus.py --input sample.csv --origin llm --output out --dry-run
  python jobs/score_corpus.py --input pairs/ --origin llm --output out --tier paper

Reads Parquet, JSON lines, CSV or TSV, and writes one run:

  OUTPUT/runs/RUN_ID/scored/origin=…/stage=…/*.parquet    pairs with features, judgements, score
  OUTPUT/runs/RUN_ID/quarantine/reason=…/*.parquet        pairs that cannot be scored, and why
  OUTPUT/runs/RUN_ID/report.html, report.png              what came out, to look at
  OUTPUT/runs/RUN_ID/manifest.json                        counts, settings; written last

A run without a manifest does not exist for readers. Killed at any moment, the job run again with
the same --run-id starts over, or with --resume goes on behind the last finished chunk of input;
--clean deletes what killed runs left behind. One process at a time has a run; a second one is
refused. Exit codes: 0 done, 2 user error (one line says what), 1 anything else.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import sys

from gaixie.jobs.corpus.early import check_local_inputs
from gaixie.jobs.corpus.paths import check_apart
from gaixie.jobs.corpus.publish import clean_runs
from gaixie.jobs.corpus.settings import Input
from gaixie.jobs.errors import JobError, run
from gaixie.jobs.scoring.settings import CONFIG, ScoreSettings, load_settings
from gaixie.udfs.command_line import make_parser, positive
from gaixie.udfs.defaults import TIER_NAMES
from gaixie.udfs.spscore.stages import ORIGINS

SETTINGS = set(ScoreSettings.model_fields) - {"inputs", "thresholds", "read_from", "csv"}
"""Settings that have an option of their own."""

INTERRUPTED = "the run can be resumed with --resume"


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    overrides = {name: value for name, value in vars(args).items() if name in SETTINGS}
    if args.input:
        overrides["inputs"] = [_input_from(args)]
    encoding = [f"csv.encoding={args.encoding}"] if args.encoding else []
    settings = load_settings(args.config, overrides, [*encoding, *args.set])
    if not settings.output:
        raise JobError("nowhere to write: give --output, or output in the config file")
    if args.clean:
        clean_runs(settings.output, settings.run_id, args.older_than, args.take_over)
        return 0
    if (args.cores or args.pairs) and not args.dry_run:
        raise JobError("--cores and --pairs: they belong to --dry-run")
    if not settings.inputs:
        raise JobError("nothing to read: give --input, or inputs in the config file")
    check_apart(settings.output, [source.path for source in settings.inputs])
    check_local_inputs(settings.inputs)
    from gaixie.jobs.scoring.run import score_corpus  # a second's import that mistakes skip

    return score_corpus(settings, args)


def _input_from(args: argparse.Namespace) -> Input:
    if bool(args.origin) == bool(args.origin_column):
        raise JobError(f"--input {args.input}: give --origin or --origin-column")
    if args.origin and args.origin not in ORIGINS:
        raise JobError(f"--origin {args.origin}: unknown, expected one of {', '.join(ORIGINS)}")
    given = {name: getattr(args, name) for name in Input.model_fields if hasattr(args, name)}
    return Input(path=args.input, **{k: v for k, v in given.items() if v is not None})


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("score_corpus.py", __doc__)
    read = parser.add_argument_group("what to read (several inputs: in the config file)")
    for name, metavar, text in (
        ("input", "PATH", "file, folder or glob; replaces the config's"),
        ("origin", "ORIGIN", " | ".join(ORIGINS)),
        ("origin-column", "NAME", "column that holds each row's origin"),
        ("source-column", "NAME", "by default source"),
        ("paraphrase-column", "NAME", "by default paraphrase"),
        ("license", "NAME", "of these pairs, for a release's card"),
        ("encoding", "NAME", "of text files: utf-8 or such as gb18030"),
    ):
        read.add_argument(f"--{name}", metavar=metavar, help=text)
    read.add_argument("--format", choices=["parquet", "jsonl", "csv", "tsv"], help="by its name")
    read.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
    write = parser.add_argument_group("what to write")
    write.add_argument("--output", metavar="ROOT", help="root of the tables: a folder or a URI")
    write.add_argument("--run-id", metavar="ID", help="by default the time of the start, in UTC")
    for name, text in (
        ("resume", "go on with a run that was killed"),
        ("take-over", "take the run from a process on another host, which must be gone"),
        ("clean", "delete what killed runs left, no other work; with --run-id, of that run"),
        ("dry-run", "check and score a sample, say what all takes; no output"),
    ):
        write.add_argument(f"--{name}", action="store_true", help=text)
    hours = "for --clean: leave alone what was written to since; default 24"
    write.add_argument("--older-than", metavar="HOURS", type=float, default=24, help=hours)
    write.add_argument("--cores", metavar="N", type=positive, help="of a cluster, for --dry-run")
    pairs = "for --dry-run, by default those of the inputs"
    write.add_argument("--pairs", metavar="N", type=positive, help=pairs)
    write.add_argument("--target-file-mb", metavar="MB", help="size of output files")
    how = parser.add_argument_group("how to score")
    for name, metavar, text in (
        ("min-characters", "N", "shorter: to quarantine"),
        ("max-characters", "N", "longer: to quarantine"),
        ("model", "PATH", "folder of a fitted SPScore-zh"),
        ("segmenter", "SPEC", "jieba | ltp:NAME_OR_FOLDER"),
        ("unit-mb", "MB", "input between two resume points"),
    ):
        how.add_argument(f"--{name}", metavar=metavar, help=text)
    how.add_argument("--tier", choices=TIER_NAMES, help="what SPScore-zh sees; by default core")
    how.add_argument("--on-corrupt-file", choices=["stop", "quarantine"])
    how.add_argument(
        "--config", metavar="YAML", default=str(CONFIG), help="default conf/score.yaml"
    )
    setting = "any setting of the config"
    how.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=setting)
    return parser.parse_args(argv)


if __name__ == "__main__":
    atexit.register(gc.freeze)  # half a second less to exit
    sys.exit(run("score_corpus", main, INTERRUPTED))
