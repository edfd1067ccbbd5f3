"""Where a released pair comes from: from its place in the release back to the file that it was read from.

Nothing is sorted by pair_id, which is random, so the search reads that column of the files until the pair is
there: 32 bytes of each pair. A hash of pair_id decides the file that a pair is in (rows.write_shards), so
those files come first, and a known pair takes a fraction of what an unknown one does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from xxhash import xxh64_intdigest

from gaixie.jobs.errors import JobError
from gaixie.jobs.releases.rows import RUN
from gaixie.jobs.releases.store import build_of
from gaixie.udfs.features import FEATURES
from gaixie.udfs.reports import number
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, ReleaseManifest, RunManifest, read_run

THREADS = 4
PAIR_ID = re.compile("[0-9a-f]{32}")


class Hit(NamedTuple):
    uri: str
    row: dict[str, Any]


def trace(root: str, manifest: ReleaseManifest, pair_id: str) -> list[tuple[str, str]]:
    """(what, value) of a pair, from how it was made to its score.

    Raises JobError where the release has no such pair. What is gone since (a run, an input) is said.
    """
    if not PAIR_ID.fullmatch(pair_id):
        raise JobError(f"--trace {pair_id}: expected a pair_id, 32 hexadecimal digits")
    folder = build_of(root, manifest)
    uris = [storage.join(folder, file.path) for file in manifest.data_files]
    hit = find_pair(in_likely_order(uris, pair_id, manifest.settings.seed), pair_id)
    if hit is None:
        raise JobError(
            f"{folder}/data: no pair {pair_id} in release {manifest.version} ({manifest.pairs:,} pairs)"
        )
    split = _folders(hit.uri).get("split", "train")
    row, scored, found_in = _of_its_run(root, manifest, hit.row)
    known = {**(scored or {}), **row}
    lines = [
        ("pair", pair_id),
        ("source", row["source"]),
        ("paraphrase", row["paraphrase"]),
        ("origin", row["origin"]),
        *[(n, _text(known.get(n))) for n in ("method", "model", "version", "parameters", "group")],
        ("licence", _text(known.get("license"))),
        *_inputs(found_in, known, root),
        *[
            (name, "  ".join(f"{n} {_text(row.get(n))}" for n in names))
            for name, names in (("features", FEATURES), ("judgements", OUTPUTS))
        ],
        ("stage", f"{row['stage']}, cut points {_cuts(found_in, row['origin'])}"),
        ("signature", manifest.signature),
        ("release", f"{manifest.version}, split {split}: {hit.uri.removeprefix(folder + '/')}"),
        ("", f"{manifest.title}, {manifest.license}, {manifest.created[:19]}"),
    ]
    return [line for line in lines if line[1]]


def find_pair(uris: Iterable[str], pair_id: str) -> Hit | None:
    """The row of a pair, with all columns, and its file; None where no file has it."""
    with ThreadPoolExecutor(THREADS) as pool:
        waiting = [pool.submit(_look, uri, pair_id) for uri in uris]
        try:
            for done in as_completed(waiting):
                if hit := done.result():
                    return hit
        finally:
            for task in waiting:
                task.cancel()
    return None


def _look(uri: str, pair_id: str) -> Hit | None:
    with _parquet(uri) as file:
        for group in range(file.num_row_groups):
            ids = file.read_row_group(group, columns=["pair_id"])["pair_id"]
            place = pc.index(ids, pa.scalar(pair_id)).as_py()
            if place >= 0:
                [row] = file.read_row_group(group).slice(place, 1).to_pylist()
                folders = _folders(uri)
                stage = {"stage": int(folders["stage"])} if "stage" in folders else {}
                return Hit(uri, row | {k: v for k, v in folders.items() if k == "origin"} | stage)
    return None


@contextmanager
def _parquet(uri: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file of which only what is asked for is read, in an object store too."""
    system, path = storage.arrow_filesystem(uri)
    try:
        with system.open_input_file(path) as file:
            yield pq.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise JobError(f"{uri}: not readable as Parquet: {str(error).splitlines()[0]}") from None


def in_likely_order(uris: Sequence[str], pair_id: str, seed: int) -> list[str]:
    """The files of a release, of each split and stage first the one that write_shards puts the pair in.

    Its hash is Spark's xxhash64 of ("file", seed, pair_id): XXH64 of each value, the seed of the next.
    """
    mixed = xxh64_intdigest(b"file", 42)
    mixed = xxh64_intdigest(seed.to_bytes(4, "little", signed=True), mixed)
    mixed = xxh64_intdigest(pair_id.encode(), mixed)
    signed = mixed - 2**64 if mixed >= 2**63 else mixed
    likely, rest = [], []
    for _, files in groupby(sorted(uris), key=lambda uri: uri.rpartition("/")[0]):
        shards = [*files]  # in order of their numbers
        likely.append(shards.pop(signed % len(shards)))
        rest += shards
    return likely + rest


def _of_its_run(
    root: str, manifest: ReleaseManifest, row: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any] | None, RunManifest | None]:
    """(the row with its run, the same row as the run has it, the run's manifest); None of what is gone.

    A release of an earlier Gaixie names no run; then its runs are searched in order.
    """
    runs = [row[RUN]] if row.get(RUN) else [run.run_id for run in manifest.runs]
    for run_id in runs:
        folder = storage.join(root, "runs", run_id)
        with suppress(FileNotFoundError):
            run = read_run(folder)
            place = f"scored/origin={row['origin']}/stage={row['stage']}/"
            files = [file.path for file in run.files.get("scored", [])]
            uris = [storage.join(folder, path) for path in files if path.startswith(place)]
            if hit := find_pair(uris, row["pair_id"]):
                return row | {RUN: run_id}, hit.row, run
    return row, None, None


def _inputs(run: RunManifest | None, row: dict[str, Any], root: str) -> Iterator[tuple[str, str]]:
    """The run, the file that it read the pair from, and how that file was made."""
    if run is None:
        yield "run", f"{row.get(RUN) or 'unknown'}: is gone from {root}/runs"
        return
    yield "run", f"{run.run_id}, {run.created}"
    yield "", f"manifest: {storage.join(root, 'runs', run.run_id, NAME)}"
    settings = [
        given
        for given in run.settings.get("inputs", [])
        if given.get("origin") in (None, row["origin"])
    ]
    for given in settings:
        files = _files_with(given, row)
        if files is None and len(settings) > 1:
            yield "input", f"{given['path']} (perhaps: only Parquet is searched)"
        elif files is None:
            yield "input", given["path"]
        for uri in files or ():
            yield "input", uri
            yield from _made_by(uri)


def _files_with(given: dict[str, Any], row: dict[str, Any]) -> list[str] | None:
    """Files of an input that have the pair; None where they cannot be searched."""
    files = [file.uri for file in _stored(given["path"])]
    if not files or not all(uri.endswith(".parquet") for uri in files):
        return None
    names = [given.get("source_column", "source"), given.get("paraphrase_column", "paraphrase")]
    texts = [row["source"], row["paraphrase"]]

    def has(uri: str) -> bool:
        with _parquet(uri) as file:
            for group in range(file.num_row_groups):
                source = file.read_row_group(group, columns=names[:1])[names[0]]
                found = pc.equal(source, pa.scalar(texts[0], source.type))
                if pc.any(found).as_py():
                    other = file.read_row_group(group, columns=names[1:])[names[1]]
                    found = pc.and_(found, pc.equal(other, pa.scalar(texts[1], other.type)))
                    if pc.any(found).as_py():
                        return True
        return False

    with ThreadPoolExecutor(THREADS) as pool:
        return [uri for uri, there in zip(files, pool.map(has, files), strict=True) if there]


def _stored(path: str) -> list[storage.File]:
    """Files of a path of settings, which may be a pattern."""
    with suppress(OSError):
        if files := storage.list_files(path):
            return [file for file in files if "/_" not in file.uri and file.size]
        system, pattern = storage.filesystem(path)
        scheme = f"{path.partition('://')[0]}://" if "://" in path else ""
        names = system.glob(pattern)
        return [file for name in names for file in _stored(scheme + name)]
    return []


def _made_by(uri: str) -> Iterator[tuple[str, str]]:
    """What jobs/build_pairs.py says of a file of its pairs."""
    folder, pairs, _ = uri.rpartition("/pairs/")
    with suppress(OSError, ValueError):
        built = storage.read_json(storage.join(folder, NAME)) if pairs else {}
        if "method" in built:
            paths = ", ".join(entry["path"] for entry in built["inputs"])
            yield "", f"made by build_pairs {built['method']}, {built['created']}, from {paths}"


def _folders(uri: str) -> dict[str, str]:
    """The values that folder names state, such as split=train."""
    return dict(part.split("=", 1) for part in uri.split("/")[:-1] if "=" in part)


def _cuts(run: RunManifest | None, origin: str) -> str:
    cuts = run.thresholds.get(origin) if run else None
    return ", ".join(_text(cut) for cut in cuts) if cuts else "unknown"


def _text(value: Any) -> str:
    if value is None:
        return "not stated"
    return number(value) if isinstance(value, float) else str(value)
