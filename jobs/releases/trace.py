"""Traces a released pair back from the release to the file from which it was read.

Files are not sorted by pair_id, which is random, so the search reads that column of all files: 32
bytes for each pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.rows import RUN
from gaixie.jobs.releases.store import build_of
from gaixie.udfs.features import FEATURES
from gaixie.udfs.reports import number
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, ReleaseManifest, RunManifest, read_run

PAIR_ID = re.compile("[0-9a-f]{32}")


def trace(root: str, manifest: ReleaseManifest, pair_id: str) -> list[tuple[str, str]]:
    """Returns (what, value) of a pair, from how it was made to its score.

    Raises JobError if the release has no such pair. It reports runs and inputs that no longer
    exist.
    """
    if not PAIR_ID.fullmatch(pair_id):
        raise JobError(f"--trace {pair_id}: expected a pair_id, 32 hexadecimal digits")
    folder = build_of(root, manifest)
    hit = find_pair([storage.join(folder, file.path) for file in manifest.data_files], pair_id)
    if hit is None:
        raise JobError(
            f"{folder}/data: no pair {pair_id} in release {manifest.version} "
            f"({manifest.pairs:,} pairs)"
        )
    uri, released = hit
    row, scored, found_in = _of_its_run(root, manifest, released)
    known = scored | row
    cuts = found_in.thresholds.get(row["origin"], []) if found_in else []
    lines = [
        ("pair", pair_id),
        *[(name, row[name]) for name in ("source", "paraphrase", "origin")],
        *[(n, _text(known.get(n))) for n in ("method", "model", "version", "parameters", "group")],
        ("licence", _text(known.get("license"))),
        *_inputs(found_in, known, root),
        *[
            (name, "  ".join(f"{n} {_text(row.get(n))}" for n in names))
            for name, names in (("features", FEATURES), ("judgements", OUTPUTS))
        ],
        ("stage", f"{row['stage']}, cut points {', '.join(map(_text, cuts)) or 'unknown'}"),
        ("signature", manifest.signature),
        ("release", f"{manifest.version}, split {row['split']}: {uri.removeprefix(folder + '/')}"),
        ("", f"{manifest.title}, {manifest.license}, {manifest.created[:19]}"),
    ]
    return [line for line in lines if line[1]]


def find_pair(uris: Sequence[str], pair_id: str) -> tuple[str, dict[str, Any]] | None:
    """Returns the file and the row of a pair, with values from folder names such as split=train.

    Returns None if no file has the pair.
    """
    wanted = ds.field("pair_id") == pair_id
    for uri in _files_with(uris, wanted):
        [row] = _open(uri).to_table(filter=wanted).to_pylist()[:1]
        folders: dict[str, Any] = dict(re.findall(r"/(\w+)=([^/]*)(?=/)", uri))
        if "stage" in folders:
            folders["stage"] = int(folders["stage"])
        return uri, folders | row
    return None


def _files_with(uris: Sequence[str], wanted: ds.Expression) -> Iterator[str]:
    """Yields those Parquet files that have a matching row; reads only the filter's columns."""
    for uri in uris:
        try:
            if _open(uri).count_rows(filter=wanted):
                yield uri
        except pa.ArrowInvalid as error:
            fault = str(error).splitlines()[0]
            raise JobError(f"{uri}: not readable as Parquet: {fault}") from None


def _open(uri: str) -> ds.Dataset:
    system, path = storage.arrow_filesystem(uri)
    return ds.dataset(path, format="parquet", filesystem=system)


def _of_its_run(
    root: str, manifest: ReleaseManifest, row: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], RunManifest | None]:
    """Returns (row with its run, row of the run, the run's manifest), without those that no longer
    exist.

    A release of an earlier Gaixie names no run; then its runs are searched in order.
    """
    known = [run.run_id for run in manifest.runs]
    for run_id in [row[RUN]] if row.get(RUN) in known else known:
        if found := _in_run(root, run_id, row["pair_id"], f"{row['origin']}/stage={row['stage']}"):
            return row | {RUN: run_id}, *found
    return row, {}, None


def _in_run(
    root: str, run_id: str, pair_id: str, origin: str
) -> tuple[dict[str, Any], RunManifest] | None:
    """Returns (row of a pair, manifest) of a run that has it. origin: its folder, or one below."""
    folder = storage.join(root, "runs", run_id)
    with suppress(FileNotFoundError):
        run = read_run(folder)
        files = [file.path for file in run.files.get("scored", [])]
        place = f"scored/origin={origin}/"
        uris = [storage.join(folder, path) for path in files if path.startswith(place)]
        if hit := find_pair(uris, pair_id):
            return hit[1], run
    return None


def _inputs(run: RunManifest | None, row: dict[str, Any], root: str) -> Iterator[tuple[str, str]]:
    """Yields the run, the file from which it read the pair, and how that file was made."""
    if run is None:
        yield "run", f"{row.get(RUN) or 'unknown'}: no longer in {root}/runs"
        return
    yield "run", f"{run.run_id}, {run.created}"
    yield "", f"manifest: {storage.join(root, 'runs', run.run_id, NAME)}"
    if run.rescored:
        yield "", f"scored again the pairs of {', '.join(run.rescored)}"
        found = (_in_run(root, name, row["pair_id"], row["origin"]) for name in run.rescored)
        first = next((known for known in found if known and not known[1].rescored), None)
        yield from _inputs(first[1], row, root) if first else ()
        return
    inputs = run.settings.get("inputs", [])
    settings = [given for given in inputs if given.get("origin") in (None, row["origin"])]
    for given in settings:
        files = [file.uri for file in _stored(given["path"])]
        if not files or not all(uri.endswith(".parquet") for uri in files):
            unsure = " (perhaps; only Parquet is searched)" if len(settings) > 1 else ""
            yield "input", given["path"] + unsure
            continue
        names = [given.get(f"{side}_column", side) for side in ("source", "paraphrase")]
        same = (ds.field(names[0]) == row["source"]) & (ds.field(names[1]) == row["paraphrase"])
        for uri in _files_with(files, same):
            yield "input", uri
            yield from _made_by(uri)


def _stored(path: str) -> list[storage.File]:
    """Lists the files of a path in settings, which may be a pattern."""
    with suppress(OSError):
        if files := storage.list_files(path):
            return [file for file in files if "/_" not in file.uri and file.size]
        system, pattern = storage.filesystem(path)
        scheme = f"{path.partition('://')[0]}://" if "://" in path else ""
        return [file for name in system.glob(pattern) for file in _stored(scheme + name)]
    return []


def _made_by(uri: str) -> Iterator[tuple[str, str]]:
    """Yields what jobs/build_pairs.py recorded about a file of its pairs."""
    folder, pairs, _ = uri.rpartition("/pairs/")
    with suppress(OSError, ValueError):
        built = storage.read_json(storage.join(folder, NAME)) if pairs else {}
        if "method" in built:
            paths = ", ".join(entry["path"] for entry in built["inputs"])
            yield "", f"made by build_pairs {built['method']}, {built['created']}, from {paths}"


def _text(value: Any) -> str:
    if value is None:
        return "not stated"
    return number(value) if isinstance(value, float) else str(value)
