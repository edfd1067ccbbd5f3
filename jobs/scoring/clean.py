"""What killed runs leave behind: folders without a manifest, and uploads that were never ended."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from gaixie.jobs.errors import JobError
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.run_lock import Locked, RunLock


def clean_runs(root: str, run_id: str | None, older_than_hours: float) -> None:
    """Deletes unpublished runs under a root and aborts abandoned uploads; prints what went.

    run_id: only this run, whatever its age. Without it, only what nothing was written to for
    older_than_hours, since a run at work has no manifest either. A published run loses nothing but
    uploads that its killed predecessors left. Raises JobError where the root cannot be read.
    """
    limit = datetime.now(UTC) - timedelta(hours=older_than_hours)
    try:
        runs = [run_id] if run_id else storage.children(storage.join(root, "runs"))
        for name in runs:
            _clean_run(storage.join(root, "runs", name), name, None if run_id else limit)
    except OSError as error:
        raise JobError(str(error)) from error


def _clean_run(folder: str, name: str, limit: datetime | None) -> None:
    uploads = storage.uploads(folder)
    if not uploads and not storage.exists(folder):
        return  # a store may go on listing the name of a folder that is empty
    published = storage.exists(storage.join(folder, "manifest.json"))
    files = [] if published else storage.list_files(folder)
    touched = [upload.started for upload in uploads] + [file.modified for file in files]
    if limit is not None:
        if not published and touched and max(touched) > limit:
            print(f"run {name}: not published, but written to lately: left alone")
            return
        uploads = [upload for upload in uploads if upload.started <= limit]
    try:
        with nullcontext() if published else RunLock(folder):
            for upload in uploads:
                storage.abort_upload(upload)
            if not published:
                storage.delete(folder)
    except Locked as error:
        print(f"run {name}: left alone: {error}")
        return
    size = sum(file.size for file in files) / 1e6
    state = (
        "published" if published else f"not published: deleted ({len(files)} files, {size:.1f} MB)"
    )
    print(f"run {name}: {state}; {len(uploads)} abandoned uploads aborted")
