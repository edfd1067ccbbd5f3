"""Scores a corpus of sentence pairs with SPScore-zh and sorts it into the curriculum's stages.

  spark-submit jobs/score_corpus.py --input pairs/ --origin parallel --output s3a://bucket/gaixie
  spark-submit jobs/score_corpus.py --config my.yaml --run-id monday --resume
  spark-submit jobs/score_corpus.py --config my.yaml --new-only      files that no run has scored
  python jobs/score_corpus.py sample.csv --origin llm --output out --dry-run
  python jobs/score_corpus.py --input pairs/ --origin llm --output out --tier paper

Reads Parquet, JSON lines, CSV or TSV, and writes one run:

  OUTPUT/runs/RUN_ID/scored/origin=…/stage=…/*.parquet    pairs with features, judgements, score
  OUTPUT/runs/RUN_ID/quarantine/reason=…/*.parquet        pairs that cannot be scored, and why
  OUTPUT/runs/RUN_ID/report.html                          accounts, stages, histograms, examples
  OUTPUT/runs/RUN_ID/manifest.json                        counts, settings; written last

A run without a manifest does not exist for readers. If the job is killed, run it again with the
same --run-id: it starts over, or with --resume continues after the last finished unit of input.
Only one process at a time can hold a run; a second is refused. Exit codes: 0 done, 2 user error
(one line says what), 1 anything else.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import sys
from contextlib import nullcontext
from datetime import UTC, datetime

from pydantic import ValidationError

from gaixie.jobs.corpus.files import SMALL_BYTES, check_apart, find_input
from gaixie.jobs.corpus.input import Csv, Input
from gaixie.jobs.corpus.runs import run_locked
from gaixie.jobs.scoring.settings import CONFIG, ScoreSettings, load_settings
from gaixie.udfs.command_line import UserError, encoding, make_parser, positive, run_command
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST
from gaixie.udfs.storage.settings import add_config, add_options, first_fault

INTERRUPTED = "--resume continues after the last finished unit, if there is one"
READ = ("origin", "origin_column", "source_column", "paraphrase_column", "license", "format")
"""Settings of an input that are command-line options."""
WRITE = ("output", "run_id", "target_file_mb", "max_quarantined")
HOW = ("tier", "model", "segmenter", "min_characters", "max_characters", "unit_mb", "cuts_of")


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    settings = _settings(args)
    if not settings.output:
        raise UserError("nowhere to write: give --output FOLDER, or output in the config file")
    if not settings.inputs:
        raise UserError("nothing to read: give --input, or inputs in the config file")
    paths = [source.path for source in settings.inputs]
    check_apart(settings.output, paths)
    run_id = settings.run_id or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = storage.join(settings.output, "runs", run_id)
    found = [find_input(source) for source in settings.inputs]
    with nullcontext() if args.dry_run else run_locked(folder, args.take_over) as lock:
        if lock and storage.exists(storage.join(folder, MANIFEST)):
            if not args.resume:
                raise UserError(f"{folder}: run '{run_id}' is published; use another --run-id")
            print(f"run '{run_id}' is already published: nothing to do ({folder})")
            return 0
        from gaixie.jobs.corpus import session  # takes a second

        small = sum(one.size for one in found) < SMALL_BYTES
        with session.begin_session("gaixie score_corpus", [folder, *paths], small) as wait:
            from gaixie.jobs.scoring.run import score_corpus  # takes a second, while Java starts

            score_corpus(wait, settings, found, folder, lock, args.limit, args.resume)
    return 0


def _settings(args: argparse.Namespace) -> ScoreSettings:
    overrides = {name: getattr(args, name) for name in ("new_only", *WRITE, *HOW)}
    if paths := [*args.file, *args.input]:
        given = {name: value for name in READ if (value := getattr(args, name)) is not None}
        try:
            overrides["inputs"] = [Input(path=path, **given) for path in paths]
        except ValidationError as error:
            raise UserError(f"--input {paths[0]}: {first_fault(error, 'origin')}") from error
    text = [f"csv.encoding={args.encoding}"] if args.encoding else []
    return load_settings(args.config, overrides, [*text, *args.set])


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("score_corpus.py", __doc__)
    read = parser.add_argument_group(
        "what to read (inputs that differ in origin or columns: in the config file)"
    )
    read.add_argument("file", metavar="FILE", nargs="*", help="the same as --input FILE")
    replaces = "file, folder or glob, may be repeated; replaces the config's inputs"
    read.add_argument("--input", metavar="PATH", action="append", default=[], help=replaces)
    add_options(read, Input, *READ)
    text = Csv.model_fields["encoding"].description
    read.add_argument("--encoding", metavar="TEXT", type=encoding, help=text)
    add_options(read, ScoreSettings, "new_only")
    read.add_argument("--limit", metavar="N", type=positive, help="only the first N rows")
    write = parser.add_argument_group("what to write")
    add_options(write, ScoreSettings, *WRITE)
    for name, text in (
        ("resume", "continue a killed run"),
        ("take-over", "take over the run from a process on another host, which must have ended"),
        ("dry-run", "check the inputs, score their first rows, write nothing"),
    ):
        write.add_argument(f"--{name}", action="store_true", help=text)
    how = parser.add_argument_group("how to score")
    add_options(how, ScoreSettings, *HOW)
    add_config(how, CONFIG, "conf/score.yaml")
    return parser.parse_args(argv)


if __name__ == "__main__":
    atexit.register(gc.freeze)  # makes the exit half a second faster
    said = "nothing was written" if "--dry-run" in sys.argv else INTERRUPTED
    sys.exit(run_command("score_corpus", main, said, mistakes=()))
