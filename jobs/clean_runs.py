"""Deletes what killed runs and releases left behind, and old runs that no release names.

  gaixie clean out
  python jobs/clean_runs.py s3a://bucket/gaixie --keep-days 90 --keep-runs 10 --dry-run

ROOT is the --output of jobs/score_corpus.py. Folders without a manifest are deleted once nobody has
written to them for --older-than hours: a run in progress looks the same. With --keep-days or
--keep-runs, a published run is deleted too if it is older than --keep-days days, is not among the
newest --keep-runs, and is named by no release, finished or in progress. Its manifest stays as
cleaned.json: readers ignore it, and score_corpus.py --new-only still knows which files were scored;
to have those scored again, delete the run's folder. Exit codes: 0 done, 2 user error (one line says
what), 1 anything else.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from gaixie.jobs.corpus.runs import CLEANED, LOCK, check_root, read_runs, run_locked
from gaixie.jobs.releases.store import runs_in_use, unpublished_builds
from gaixie.udfs.command_line import UserError, as_user_error, make_parser, positive, run_command
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST, ManifestError
from gaixie.udfs.storage.storage import File


def main(argv: list[str] | None = None) -> int:
    parser = make_parser("clean_runs.py", __doc__)
    parser.add_argument("root", metavar="ROOT", help="a local path or a URI")
    hours = "keep what was written to in the last HOURS (%(default)g)"
    parser.add_argument("--older-than", metavar="HOURS", type=float, default=24, help=hours)
    for name, kept in (("days", "published runs of the last N days"), ("runs", "the newest N")):
        text = f"keep {kept}; delete others that no release names"
        parser.add_argument(f"--keep-{name}", metavar="N", type=positive, help=text)
    parser.add_argument("--dry-run", action="store_true", help="only list what would be deleted")
    args = parser.parse_args(argv)
    with as_user_error(OSError, ManifestError):
        check_root(args.root)
        clean_unpublished(args.root, args.older_than, args.dry_run)
        if args.keep_days or args.keep_runs:
            clean_old(args.root, args.keep_days or 0, args.keep_runs or 0, args.dry_run)
    return 0


def clean_unpublished(root: str, older_than: float, dry_run: bool) -> None:
    """Deletes the folders of runs and releases that have no manifest, if nobody has written there
    for older_than hours."""
    limit = datetime.now(UTC) - timedelta(hours=older_than)
    runs = storage.join(root, "runs")
    folders = [storage.join(runs, name) for name in storage.children(runs)]
    for folder in [*filter(_is_unpublished, folders), *unpublished_builds(root)]:
        files = storage.list_files(folder)
        touched = [file.modified for file in files]
        if not touched and not storage.exists(folder):
            continue  # a store may still list the name of an empty folder
        if touched and max(touched) > limit:
            print(f"{folder}: kept: written to recently")
            continue
        try:
            if not dry_run:
                with run_locked(folder, False) if folder in folders else nullcontext():
                    storage.delete(folder)
            _say_deleted(folder, files, dry_run)
        except UserError as error:
            print(f"kept: {error}")


def _is_unpublished(folder: str) -> bool:
    return not any(storage.exists(storage.join(folder, name)) for name in (MANIFEST, CLEANED))


def _say_deleted(name: str, files: list[File], dry_run: bool) -> None:
    done = "would be deleted" if dry_run else "deleted"
    print(f"{name}: {done} ({sum(file.size for file in files) / 1e6:,.1f} MB)")


def clean_old(root: str, keep_days: int, keep_runs: int, dry_run: bool) -> None:
    """Deletes published runs that are neither young, nor among the newest, nor in a release.

    Each run's manifest stays as CLEANED. Raises UserError if a process holds a run. A run
    disappears for readers first, so that they never see half of it if this process is killed.
    """
    runs = read_runs(root)
    oldest = datetime.now(UTC) - timedelta(days=keep_days)
    spared = {run.run_id for run in runs[max(len(runs) - keep_runs, 0) :]} | runs_in_use(root)
    for run in runs:
        if run.run_id in spared or datetime.fromisoformat(run.created) >= oldest:
            continue
        folder = storage.join(root, "runs", run.run_id)
        files = storage.list_files(folder)
        if not dry_run:
            with run_locked(folder, False):
                rest = run.model_copy(update={"files": {}})
                storage.write(storage.join(folder, CLEANED), rest.to_json())
                for name in (MANIFEST, *storage.children(folder)):
                    if name not in (CLEANED, LOCK):
                        storage.delete(storage.join(folder, name))
        _say_deleted(folder, files, dry_run)


if __name__ == "__main__":
    sys.exit(run_command("clean_runs", main, "nothing was published", mistakes=()))
