"""Releases scored pairs as a versioned data set, ready to train on and to publish.

  spark-submit jobs/release_dataset.py --root s3a://bucket/gaixie --runs monday tuesday \\
      --version 1.0 --license CC-BY-4.0 --split 0.98 0.01 0.01
  python jobs/release_dataset.py --root out --unreleased --version 1.1 --license MIT --dry-run
  python jobs/release_dataset.py --root out --list
  python jobs/release_dataset.py --root out --verify 1.0
  python jobs/release_dataset.py --root out --set-latest 1.0       roll back

ROOT is the --output of jobs/score_corpus.py. Reads the stages of published runs of one metric
signature, takes a pair that several runs have in these stages from the first of them, whatever
stage another run put it in, and writes

  ROOT/releases/VERSION/manifest.json     every file with its SHA-256, counts, runs; written last
  ROOT/releases/VERSION/build-TOKEN/
    README.md                             the data set's card
    croissant.json                        the card for machines (MLCommons Croissant)
    data/split=…/subset=stage-…/*.parquet shuffled shards of about equal size
  ROOT/releases/latest.json               the version released last

A release without a manifest does not exist for readers: if the job is killed, run it again. A
published version is never overwritten. Columns: pair_id, source, paraphrase, the eight features,
structure, synonyms, meaning, fluency, spscore, origin, stage, those of --keep-columns, those of
group, method, model, version, parameters and license that a run has, and run. If the inputs declare
another licence than --license, --license-note must say why. Exit codes: 0 done, 2 user error (one
line says what), 1 anything else; --verify: 1 for faults.
"""

from __future__ import annotations

import argparse
import sys

from gaixie.jobs.corpus.runs import check_root
from gaixie.jobs.releases import store
from gaixie.jobs.releases.build import release
from gaixie.jobs.releases.request import ReleaseRequest
from gaixie.udfs.command_line import UserError, as_user_error, make_parser, run_command
from gaixie.udfs.reports import print_table
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ManifestError
from gaixie.udfs.storage.published_files import file_faults, print_faults
from gaixie.udfs.storage.settings import add_options, options_of
from gaixie.udfs.text.splits import SPLITS

WHAT = ("runs", "version", "license", "license_note", "stages", "keep_columns", "title")
HOW = ("seed", "shards_mb", "dry_run")


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    with as_user_error(OSError, ManifestError):  # one line that names the URI
        check_root(args.root)
        if args.list:
            return list_releases(args.root)
        if args.verify:
            return verify(args.root, args.verify)
        if args.set_latest:
            store.set_latest(args.root, args.set_latest)
            print(f"{store.latest_of(args.root)}: {args.set_latest}")
            return 0
        if args.unreleased:
            args.runs = store.unreleased_runs(args.root)
            if not args.runs:
                print(f"{args.root}: no unreleased runs: nothing to release")
                return 0
        with as_user_error(ValueError):
            request = options_of(ReleaseRequest, args)
        release(request)
    return 0


def list_releases(root: str) -> int:
    """Prints the published versions, oldest first.

    Raises UserError for those whose manifest cannot be read, once the others are printed.
    """
    latest, (found, faults) = store.read_latest(root), store.readable(root)
    rows = [
        [
            manifest.version + " (latest)" * (manifest.version == latest),
            manifest.created[:19],
            f"{manifest.pairs:,}",
            manifest.license,
            " ".join(run.run_id for run in manifest.runs),
        ]
        for manifest in found
    ]
    if rows:
        print_table(["version", "created", "pairs", "licence", "runs"], rows)
    if faults or not rows:
        raise UserError("; ".join(faults) or f"{root}: no published release")
    return 0


def verify(root: str, name: str) -> int:
    """Prints each fault of a release's files, one a line; the line begins with the file."""
    manifest = store.published_release(root, name)
    folder = storage.join(store.folder_of(root, name), manifest.build)
    faults = file_faults(folder, manifest.files, storage.sha256)
    counts = f"{len(manifest.files)} files, {manifest.pairs:,} pairs"
    return print_faults(f"release {name}: {counts}", faults)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("release_dataset.py", __doc__)
    parser.add_argument("--root", metavar="ROOT", required=True, help="a local path or a URI")
    what = parser.add_argument_group("what to release")
    add_options(what, ReleaseRequest, *WHAT)
    all_new = "all published runs that no release names, instead of --runs"
    what.add_argument("--unreleased", action="store_true", help=all_new)
    how = parser.add_argument_group("how")
    shares = ("TRAIN", "VALIDATION", "TEST")
    split = ReleaseRequest.model_fields["split"].description
    how.add_argument("--split", metavar=shares, type=float, nargs=len(SPLITS), help=split)
    add_options(how, ReleaseRequest, *HOW)
    other = parser.add_argument_group("instead of a release").add_mutually_exclusive_group()
    other.add_argument("--list", action="store_true", help="list the published versions")
    other.add_argument("--verify", metavar="VERSION", help="check every file of a release")
    other.add_argument("--set-latest", metavar="VERSION", help="point latest.json at a version")
    args = parser.parse_args(argv)
    if args.runs and args.unreleased:
        parser.error("--unreleased: not valid with --runs")
    return args


if __name__ == "__main__":
    sys.exit(run_command("release_dataset", main, "nothing was published", mistakes=()))
