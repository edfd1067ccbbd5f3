"""Reads and writes files by URI, for jobs and training: manifests, releases, checkpoints.

A URI is a local path, file://, or s3:// or s3a://, which mean the same. Credentials come only from
the environment's default chain (variables, profile, role); the endpoint of an S3 server comes from
AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.

A written file appears complete or not at all. If a store is busy or drops a connection, requests
are retried a few times. Wrong credentials and missing buckets fail at once, with an OSError of one
line that names the URI and what to fix (storage_errors.py). fsspec and s3fs do the work.
"""

import hashlib
import io
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractBufferedFile

from gaixie.udfs.storage.storage_errors import explained

ATTEMPTS = 5
CONNECT_SECONDS = 5
READ_SECONDS = 60
BLOCK_BYTES = 8 * 2**20
"""Bytes that a read from a store fetches ahead."""


@dataclass(frozen=True)
class File:
    """A file in a listing."""

    uri: str
    size: int
    """Bytes."""
    modified: datetime


def join(uri: str, *parts: str) -> str:
    """Returns the URI of a path below a folder."""
    return "/".join([uri.rstrip("/"), *parts])


def spark_uri(uri: str) -> str:
    """Returns the URI under which Spark finds what this module finds, whatever Spark's default
    file system is: s3:// becomes s3a://, and a local path file:/…"""
    if uri.startswith("s3://"):
        return f"s3a://{uri[5:]}"
    return uri if _in_store(uri) else f"file:{_path(uri).absolute()}"


def link_to(uri: str, seconds: int = 6 * 3600) -> str:
    """Returns a URL that reads a file of S3 without a key for some time; for other files, their
    URI."""
    if not _in_store(uri):
        return uri
    system, path = filesystem(uri)
    with explained(uri):
        return system.url(path, expires=seconds)


def exists(uri: str) -> bool:
    """Tells whether there is a file, or a folder that is not empty."""
    return bool(list_files(uri)) if _in_store(uri) else _path(uri).exists()


def list_files(uri: str) -> list[File]:
    """Lists a file, or a folder's files at all levels, by URI; empty if nothing is there."""
    files = [
        File(name, entry["size"], _modified(entry))
        for name, entry in _entries(uri)
        if not name.endswith("/")  # a marker that some writers leave for a folder
    ]
    return sorted(files, key=lambda file: file.uri)


def children(uri: str) -> list[str]:
    """Returns the sorted names of the files and folders directly below a folder.

    Some stores, like file systems, keep a folder after all its files are deleted.
    """
    system, root = filesystem(uri)
    with explained(uri):
        try:
            names = system.ls(root, detail=False)
        except FileNotFoundError as error:
            if error.__cause__:  # from the store: there is no such bucket
                raise
            return []
    below = (name.removeprefix(root.rstrip("/")).strip("/") for name in names)
    return sorted({name for name in below if name})


class _Linked(AbstractBufferedFile):
    """A file behind a link of link_to, read in ranges."""

    def __init__(self, link: str):
        answer = self._get(link, 0, 1)
        size = int(answer.headers.get("Content-Range", "/0").rpartition("/")[2])
        super().__init__(None, link, block_size=BLOCK_BYTES, size=size)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._get(self.path, start, end).data

    @staticmethod
    def _get(link: str, start: int, end: int) -> Any:
        answer = _http().request("GET", link, headers={"Range": f"bytes={start}-{end - 1}"})
        if answer.status not in (200, 206, 416):  # 416: the file is empty
            raise OSError(f"the store answers {answer.status} {answer.reason}")
        return answer


@cache
def _http() -> Any:
    """Returns what asks again if a store is busy, or an answer breaks off."""
    from urllib3 import PoolManager, Retry

    codes = 500, 502, 503, 504
    retries = Retry(ATTEMPTS, backoff_factor=0.2, status_forcelist=codes, raise_on_status=False)
    return PoolManager(retries=retries, timeout=READ_SECONDS)


@contextmanager
def open_file(uri: str, mode: str = "rb", link: str = "") -> Iterator[BinaryIO]:
    """Opens a binary file to read ("rb", seekable) or write ("wb"), inside a with block.

    A written file appears when the block ends, and not at all if the block raises. link: of
    link_to, through which a process without credentials reads the file.
    """
    if mode == "wb" and not _in_store(uri):
        with _replacing(uri, os.replace) as file:
            yield file
        return
    system, root = filesystem(uri)
    if mode == "wb":
        with tempfile.NamedTemporaryFile() as beside:
            yield cast(BinaryIO, beside)
            beside.flush()
            with explained(uri):
                system.put_file(beside.name, root)
        return
    options = {"block_size": BLOCK_BYTES, "cache_type": "readahead"} if _in_store(uri) else {}
    with explained(uri):
        opened = _Linked(link) if link.startswith("http") else system.open(root, mode, **options)
    with explained(uri, local=False), opened:
        yield opened


def read_bytes(uri: str) -> bytes:
    """Returns the whole content of a file."""
    system, root = filesystem(uri)
    with explained(uri):
        # One request, without asking for the size first.
        return system.cat_file(root, **{"max_concurrency": 1} if _in_store(uri) else {})


def read_json(uri: str) -> Any:
    """Returns the value of a JSON file. Raises OSError if the file is not JSON."""
    try:
        return json.loads(read_bytes(uri))
    except ValueError as error:
        raise OSError(f"{uri}: not JSON: {error}") from None


def to_json(value: Any) -> str:
    """Returns a value as the text of a JSON file."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def write(uri: str, content: bytes | str) -> None:
    """Writes a whole file, replacing any file there."""
    _put(uri, content, os.replace, "overwrite")


def write_json(uri: str, value: Any) -> None:
    write(uri, to_json(value))


def write_table(uri: str, table: pa.Table) -> None:
    """Writes a Parquet file."""
    with open_file(uri, "wb") as file:
        pq.write_table(table, file, compression="zstd")


def create(uri: str, content: bytes | str) -> None:
    """Writes a whole file if there is none.

    Of several concurrent calls with different contents exactly one succeeds, and the others raise
    FileExistsError. On a file system a hard link decides; in a store, a conditional request
    (``If-None-Match: *``), which the store must support: AWS, MinIO, SeaweedFS and Ceph do.
    """
    try:
        _put(uri, content, os.link, "create")
    except FileExistsError:
        # If an answer is lost, the client asks again and finds its own file.
        if not _in_store(uri) or read_bytes(uri) != _encoded(content):
            raise


def _encoded(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _put(uri: str, content: bytes | str, publish: Callable[[Path, Path], None], mode: str) -> None:
    if not _in_store(uri):
        with _replacing(uri, publish) as file:
            file.write(_encoded(content))
        return
    system, root = filesystem(uri)
    with explained(uri):
        system.pipe_file(root, _encoded(content), mode=mode)


def delete(uri: str) -> None:
    """Deletes a file, or a folder with all its content; does nothing if nothing is there."""
    if not _in_store(uri):
        path = _path(uri)
        with explained(uri):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return
    system, root = filesystem(uri)
    if not root.partition("/")[2]:
        raise OSError(f"{uri}: refusing to delete a whole bucket")
    before = {name for name, _ in _entries(uri)}
    with explained(uri):
        if before:
            system.rm(root, recursive=True)
    # s3fs says nothing of objects that the store refuses to delete.
    if left := before & {name for name, _ in _entries(uri)}:
        raise PermissionError(f"{uri}: access denied: {len(left)} files cannot be deleted")


def copy(source: str, target: str) -> None:
    """Copies one file, also between a file system and a store."""
    with open_file(source) as reader, open_file(target, "wb") as writer:
        shutil.copyfileobj(reader, writer, BLOCK_BYTES)


def sha256(uri: str, link: str = "") -> str:
    """Returns the SHA-256 of a file as 64 hexadecimal digits; reads it in blocks. link: see
    open_file."""
    with open_file(uri, link=link) as file:
        return hashlib.file_digest(cast(io.BufferedReader, file), "sha256").hexdigest()


def filesystem(uri: str) -> tuple[Any, str]:
    """Returns (fsspec file system without cached listings, absolute path in it)."""
    if not _in_store(uri):
        return LocalFileSystem(), str(_path(uri).absolute())
    variables = sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))
    bucket, _, key = uri.partition("://")[2].partition("/")
    if not bucket:
        raise OSError(f"{uri}: names no bucket, expected s3://bucket/…")
    return _s3(os.getpid(), *variables), f"{bucket}/{key.strip('/')}"


@lru_cache(maxsize=8)
def _s3(*process_and_environment: Any) -> Any:
    """Returns the file system of S3, one for each process and set of variables."""
    from s3fs import S3FileSystem

    has_endpoint = any(map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")))
    settings = {
        "signature_version": "s3v4",  # for links too: some stores accept no other
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
        "s3": {"addressing_style": "path" if has_endpoint else "auto"},
        "max_pool_connections": 32,
    }
    return S3FileSystem(config_kwargs=settings, use_listings_cache=False, skip_instance_cache=True)


def arrow_filesystem(uri: str) -> tuple[Any, str]:
    """Returns (pyarrow file system, path in it), for data sets and for parts of files."""
    from pyarrow import fs

    system, path = filesystem(uri)
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


# Places


def _in_store(uri: str) -> bool:
    scheme, colon, _ = uri.partition("://")
    if colon and scheme not in ("file", "s3", "s3a"):
        raise OSError(f"{uri}: unknown scheme, expected a path, file://, s3:// or s3a://")
    return bool(colon) and scheme != "file"


def _path(uri: str) -> Path:
    return Path(uri.removeprefix("file://").removeprefix("file:"))


def _modified(entry: dict[str, Any]) -> datetime:
    """Returns when a file was last written, from an entry of a store or of the file system."""
    return entry.get("LastModified") or datetime.fromtimestamp(entry["mtime"], UTC)


def _entries(uri: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns (URI, fsspec's entry) of the file with this name, or of all files in that folder."""
    system, root = filesystem(uri)
    with explained(uri):
        found = system.find(root, detail=True)
    start, top = uri.rstrip("/"), root.rstrip("/")
    return [
        (start + entry["name"].removeprefix(top), entry)
        for entry in found.values()
        if entry["type"] != "directory"  # a store may keep it after its last file is gone
        and not (entry.get("islink") and os.path.isdir(entry["name"]))  # it may lead anywhere
    ]


@contextmanager
def _replacing(uri: str, publish: Callable[[Path, Path], None]) -> Iterator[BinaryIO]:
    """Opens a hidden file beside uri that takes its name once the block has ended."""
    path = _path(uri)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with explained(uri):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = part.open("xb")
        with file:
            yield file
            with explained(uri):
                file.flush()
                os.fsync(file.fileno())
        with explained(uri):
            publish(part, path)
    finally:
        part.unlink(missing_ok=True)
