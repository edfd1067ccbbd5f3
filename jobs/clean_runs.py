"""Deletes old runs that no release names.

  python jobs/clean_runs.py s3a://bucket/gaixie --keep-days 90 --keep-runs 10 --dry-run
  gaixie clean out --keep-days 90

ROOT is the --output of jobs/score_corpus.py. A run is deleted if it is older than --keep-days, is
not among the newest --keep-runs, and is named by no release, finished or in progress. Its manifest
stays as cleaned.json: readers ignore it, and score_corpus.py --new-only still knows which files
were scored. To have those scored again, delete the run's folder. For what killed runs left behind,
use score_corpus.py --clean. Exit codes: 0 done, 2 user error (one line says what), 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta

from gaixie.jobs.corpus.publish import CLEANED, LOCK, held, read_runs
from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.store import runs_in_use
from gaixie.udfs.command_line import make_parser, positive, run_command
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, ManifestError, RunManifest


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    try:
        clean(args.root, args.keep_days, args.keep_runs or 0, args.dry_run)
    except (OSError, ManifestError) as error:
        raise JobError(str(error)) from error
    return 0


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = make_parser("clean_runs.py", __doc__)
    parser.add_argument("root", metavar="ROOT", help="a local path or a URI")
    for name, kept in (("days", "runs of the last N days"), ("runs", "the newest N runs")):
        parser.add_argument(f"--keep-{name}", metavar="N", type=positive, help=f"keep {kept}")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be deleted")
    args = parser.parse_args(argv)
    if not (args.keep_days or args.keep_runs):
        parser.error("expected --keep-days, --keep-runs, or both")
    return args


def clean(root: str, keep_days: int | None, keep_runs: int, dry_run: bool) -> None:
    """Deletes old runs and prints their names. keep_days: None for runs of any age."""
    runs = read_runs(root)
    limit = datetime.now(UTC) - timedelta(days=keep_days or 0)
    old = [
        run
        for run in runs[: max(len(runs) - keep_runs, 0)]
        if datetime.fromisoformat(run.created) < limit
    ]
    in_use = runs_in_use(root)
    for manifest in old:
        folder = storage.join(root, "runs", manifest.run_id)
        if manifest.run_id in in_use:
            print(f"{folder}: kept: a release names it")
            continue
        size = sum(file.bytes for files in manifest.files.values() for file in files) / 1e6
        if not dry_run:
            retire(folder, manifest)
        print(f"{folder}: {'would be deleted' if dry_run else 'deleted'} ({size:,.1f} MB)")
    print(f"{len(runs)} published runs, {len(old)} of them old")


def retire(folder: str, manifest: RunManifest) -> None:
    """Deletes a published run except its manifest, which is renamed to CLEANED.

    Raises JobError if a process holds the run. The run disappears for readers first, so that they
    never see half a run if this process is killed.
    """
    with held(folder, False):
        rest = manifest.model_copy(update={"files": {}})
        storage.write(storage.join(folder, CLEANED), rest.to_json())
        for name in (NAME, *storage.children(folder)):
            if name not in (CLEANED, LOCK):
                storage.delete(storage.join(folder, name))


if __name__ == "__main__":
    sys.exit(run_command("clean_runs", main, "nothing was published", mistakes=()))
