"""Scores a corpus of sentence pairs with SPScore-zh and sorts it into the curriculum's stages.

  spark-submit jobs/score_corpus.py --input pairs/ --origin parallel --output s3a://bucket/gaixie
  spark-submit jobs/score_corpus.py --config my.yaml --run-id monday --resume
  spark-submit jobs/score_corpus.py --config my.yaml --new-only      what no run has scored yet
  spark-submit jobs/score_corpus.py --config my.yaml --rescore unreleased    again, with a new model
  python jobs/score_corpus.py --input sample.csv --origin llm --output out --dry-run
  python jobs/score_corpus.py --input pairs/ --origin llm --output out --tier paper

Reads Parquet, JSON lines, CSV or TSV, and writes one run:

  OUTPUT/runs/RUN_ID/scored/origin=…/stage=…/*.parquet    pairs with features, judgements, score
  OUTPUT/runs/RUN_ID/quarantine/reason=…/*.parquet        pairs that cannot be scored, and why
  OUTPUT/runs/RUN_ID/report.html, report.png              counts, plots and examples of the run
  OUTPUT/runs/RUN_ID/metrics.prom                         the run's figures for Prometheus
  OUTPUT/runs/RUN_ID/manifest.json                        counts, settings; written last

A run without a manifest does not exist for readers. If the job is killed, run it again with the
same --run-id: it starts over, or with --resume continues after the last finished unit of input.
--clean deletes what killed runs left behind. Only one process at a time can hold a run; a second is
refused. Exit codes: 0 done, 2 user error (one line says what), 3 done, but the run has drifted
(--fail-on-drift), 1 anything else.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import sys

from pydantic import ValidationError

from gaixie.jobs.corpus.early import check_local_inputs
from gaixie.jobs.corpus.paths import check_apart
from gaixie.jobs.corpus.publish import clean_runs
from gaixie.jobs.corpus.settings import Csv, Input
from gaixie.jobs.errors import JobError
from gaixie.jobs.scoring.settings import CONFIG, ScoreSettings, load_settings
from gaixie.udfs.command_line import above_zero, make_parser, positive, run_command
from gaixie.udfs.storage.manifest import ManifestError
from gaixie.udfs.storage.options import add_config, add_options
from gaixie.udfs.storage.settings import first_fault

INTERRUPTED = "the run can be resumed with --resume"
NEW = ("new_only", "since", "rescore")
READ = ("origin", "origin_column", "source_column", "paraphrase_column", "license", "format")
"""Settings of an input that are command-line options."""
WRITE = ("output", "run_id", "table", "target_file_mb")
LENGTHS = ("min_characters", "max_characters")
PLANNED = ("cores", "pairs", "pairs_per_second", "core_hour_price")
"""Command-line options of --dry-run."""
HOW = ("tier", "model", "segmenter", *LENGTHS, "on_corrupt_file", "unit_mb")


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    overrides = {name: getattr(args, name) for name in (*NEW, *WRITE, *HOW)}
    if args.input:
        given = {name: getattr(args, name) for name in READ}
        given = {name: value for name, value in given.items() if value is not None}
        try:
            overrides["inputs"] = [Input(path=args.input, **given)]
        except ValidationError as error:
            raise JobError(f"--input {args.input}: {first_fault(error, 'origin')}") from error
    encoding = [f"csv.encoding={args.encoding}"] if args.encoding else []
    settings = load_settings(args.config, overrides, [*encoding, *args.set])
    if not settings.output:
        raise JobError("nowhere to write: give --output, or output in the config file")
    if args.clean:
        clean_runs(settings.output, settings.run_id, args.older_than, args.take_over)
        return 0
    for name in PLANNED:
        if getattr(args, name) and not args.dry_run:
            raise JobError(f"--{name.replace('_', '-')}: only valid with --dry-run")
    for name in ("input", "new_only", "since", "limit"):
        if getattr(args, name) and settings.rescore:
            raise JobError(f"--{name.replace('_', '-')}: not valid with --rescore")
    if settings.rescore:
        from gaixie.jobs.releases.store import runs_of

        try:
            settings.rescore = runs_of(settings.output, settings.rescore)
        except (OSError, ManifestError) as error:
            raise JobError(str(error)) from error
        if not settings.rescore:
            print(f"{settings.output}: no unreleased runs: nothing to score again")
            return 0
    if not (settings.inputs or settings.rescore):
        raise JobError("nothing to read: give --input, or inputs in the config file")
    check_apart(settings.output, [source.path for source in settings.inputs])
    check_local_inputs(settings.inputs)
    from gaixie.jobs.scoring.run import score_corpus  # imported late: it takes a second

    return score_corpus(settings, args)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("score_corpus.py", __doc__)
    read = parser.add_argument_group("what to read (several inputs: in the config file)")
    replaces = "file, folder or glob; replaces the config's inputs"
    read.add_argument("--input", metavar="PATH", help=replaces)
    add_options(read, Input, *READ)
    add_options(read, Csv, "encoding")
    add_options(read, ScoreSettings, *NEW)
    read.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
    write = parser.add_argument_group("what to write")
    add_options(write, ScoreSettings, *WRITE)
    for name, text in (
        ("resume", "continue a killed run"),
        ("take-over", "take over the run from a process on another host, which must have ended"),
        ("clean", "only delete what killed runs left behind; with --run-id, only that run"),
        ("dry-run", "check and score a sample, estimate time and space, write nothing"),
    ):
        write.add_argument(f"--{name}", action="store_true", help=text)
    drift = "exit with 3 if the published run has drifted from RUN (default: the last run)"
    write.add_argument("--fail-on-drift", metavar="RUN", nargs="?", const="", help=drift)
    url = "send the run's metrics to this Prometheus Pushgateway"
    write.add_argument("--push-metrics", metavar="URL", help=url)
    hours = "for --clean: keep what was written to in the last HOURS (default: 24)"
    write.add_argument("--older-than", metavar="HOURS", type=float, default=24, help=hours)
    for name, kind, text in (
        ("cores", positive, "for --dry-run: cores or GPUs of the cluster"),
        ("pairs", positive, "for --dry-run: number of pairs (default: that of the inputs)"),
        ("pairs-per-second", above_zero, "for --dry-run: rate of a core (default: measured here)"),
        ("core-hour-price", above_zero, "for --dry-run: price of a core-hour, for the cost"),
    ):
        write.add_argument(f"--{name}", metavar="N", type=kind, help=text)
    how = parser.add_argument_group("how to score")
    add_options(how, ScoreSettings, *HOW)
    add_config(how, CONFIG, "conf/score.yaml")
    return parser.parse_args(argv)


if __name__ == "__main__":
    atexit.register(gc.freeze)  # makes the exit half a second faster
    said = "nothing was written" if "--dry-run" in sys.argv else INTERRUPTED
    sys.exit(run_command("score_corpus", main, said, mistakes=()))
