"""Reads and writes files by URI, for jobs and training: manifests, releases, checkpoints.

A URI is a local path, file://, s3:// or s3a:// (both mean the same), or one of a store that another
fsspec package supports (stores.py). Credentials come only from the environment's default chain
(variables, profile, role); the endpoint of an S3 server comes from AWS_ENDPOINT_URL_S3 or
AWS_ENDPOINT_URL.

A written file appears complete or not at all. If a store is busy or drops a connection, requests
are retried a few times. Wrong credentials and missing buckets fail at once, with an OSError of one
line that names the URI and what to fix (storage_errors.py). fsspec and s3fs do the work.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage import stores
from gaixie.udfs.storage.storage_errors import explained, refused
from gaixie.udfs.storage.stores import ATTEMPTS, READ_SECONDS

BLOCK_BYTES = 8 * 2**20
"""Bytes that a read from a store fetches ahead."""
DELETED_AT_ONCE = 1000  # the most that S3 takes in one request


@dataclass(frozen=True)
class File:
    """A file in a listing."""

    uri: str
    size: int
    """Bytes."""
    modified: datetime


@dataclass(frozen=True)
class Upload:
    """An unfinished multipart upload: it takes space and appears in no listing."""

    uri: str
    upload_id: str
    started: datetime


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
    if not _is_s3(uri):
        return uri
    system, path = filesystem(uri)
    with explained(uri):
        return system.url(path, expires=seconds)


def exists(uri: str) -> bool:
    """Tells whether there is a file, or a folder that is not empty."""
    return bool(list_files(uri)) if _in_store(uri) else _path(uri).exists()


def list_files(uri: str) -> list[File]:
    """Lists a file, or a folder's files at all levels, by URI; empty if nothing is there."""
    return sorted(
        (
            File(name, entry["size"], _modified(entry))
            for name, entry in _entries(uri)
            if not name.endswith("/")  # a marker that some writers leave for a folder
        ),
        key=lambda file: file.uri,
    )


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


class _Linked(io.RawIOBase):
    """A file behind a link of link_to, read in ranges."""

    def __init__(self, link: str):
        self._link, self._place = link, 0
        self._size: int | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            if self._size is None:
                self._read(0, 0)
            offset += self._size or 0
        self._place = offset + (self._place if whence == os.SEEK_CUR else 0)
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        if self._size is not None and self._place >= self._size:
            return 0
        data = self._read(self._place, self._place + max(len(buffer), 1) - 1)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _read(self, first: int, last: int) -> bytes:
        """Returns the bytes between two places, both included; asks again if the answer breaks."""
        request = Request(self._link, headers={"Range": f"bytes={first}-{last}"})
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with urlopen(request, timeout=READ_SECONDS) as answer:
                    self._size = int(answer.headers["Content-Range"].rpartition("/")[2])
                    return answer.read()
            except HTTPError as error:
                if error.code == 416:  # the file is empty, or ends before
                    self._size = self._size or 0
                    return b""
                if error.code < 500 or attempt == ATTEMPTS:
                    raise OSError(f"the store answers {error.code} {error.reason}") from None
            except (OSError, HTTPException):
                if attempt == ATTEMPTS:
                    raise
            time.sleep(attempt)
        raise AssertionError


@contextmanager
def open_file(uri: str, mode: str = "rb", link: str = "") -> Iterator[BinaryIO]:
    """Opens a binary file to read ("rb", seekable) or write ("wb"), inside a with block.

    A written file appears when the block ends, and not at all if the block raises. link: of
    link_to, through which a process without credentials reads the file.
    """
    if link.startswith(("http:", "https:")):
        with explained(uri):
            yield cast(BinaryIO, io.BufferedReader(_Linked(link), BLOCK_BYTES))
        return
    if mode not in ("rb", "wb"):
        raise ValueError(f"mode must be 'rb' or 'wb', not '{mode}'")
    if mode == "wb" and not _in_store(uri):
        with _replacing(uri, os.replace) as file:
            yield file
        return
    system, root = filesystem(uri)
    if mode == "wb" and stores.is_other(uri):
        with explained(uri, local=False), stores.putting(uri, system, root) as file:
            yield file
        return
    options = {"block_size": BLOCK_BYTES, "cache_type": "readahead"}
    with explained(uri):
        if mode == "rb":
            file = system.open(root, mode, **options if _is_s3(uri) else {})
        else:
            file = system.open(root, mode, autocommit=False)
    with explained(uri, local=False):
        if mode == "rb":
            with file:
                yield file
            return
        try:
            yield file
            file.close()
            file.commit()
        except BaseException:
            file.closed or file.discard()
            raise


def read_bytes(uri: str) -> bytes:
    """Returns the whole content of a file."""
    system, root = filesystem(uri)
    with explained(uri):
        # One request, without asking for the size first.
        return system.cat_file(root, **{"max_concurrency": 1} if _is_s3(uri) else {})


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
    data = content.encode() if isinstance(content, str) else content
    if not _is_s3(uri):
        with open_file(uri, "wb") as file:
            file.write(data)
        return
    system, root = filesystem(uri)
    with explained(uri):
        system.pipe_file(root, data)


def write_json(uri: str, value: Any) -> None:
    write(uri, to_json(value))


def write_table(uri: str, table: pa.Table) -> None:
    """Writes a Parquet file."""
    with open_file(uri, "wb") as file:
        pq.write_table(table, file, compression="zstd")


def create(uri: str, content: bytes | str) -> None:
    """Writes a whole file if there is none; of several concurrent calls, exactly one succeeds.

    Raises FileExistsError in the others. On a file system a hard link decides; in a store,
    ``If-None-Match: *``, which the store must support (AWS, MinIO, SeaweedFS and Ceph do).
    """
    data = content.encode() if isinstance(content, str) else content
    if not _in_store(uri):
        with _replacing(uri, os.link) as file:
            file.write(data)
        return
    system, root = filesystem(uri)
    if stores.is_other(uri):
        with explained(uri):
            system.makedirs(os.path.dirname(root), exist_ok=True)
            system.pipe_file(root, data, mode="create")
        return
    bucket, key = _bucket_and_key(uri)
    token = secrets.token_hex(8)
    request = {"Bucket": bucket, "Key": key, "Body": data, "Metadata": {"created-by": token}}
    with explained(uri):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                system.call_s3("put_object", **request, IfNoneMatch="*")
                return
            except OSError as error:
                answer = getattr(error.__cause__, "response", {})
                code = answer.get("Error", {}).get("Code")
                if code == "ConditionalRequestConflict" and attempt < ATTEMPTS:
                    time.sleep(0.2 * attempt)  # another request for this key was under way
                    continue
                if code not in ("PreconditionFailed", "412"):
                    raise
                # If an answer is lost, s3fs asks again and finds its own object.
                there = system.call_s3("head_object", Bucket=bucket, Key=key)
                if there["Metadata"].get("created-by") != token:
                    raise
                return


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
    if stores.is_other(uri):
        with explained(uri):
            if system.exists(root):
                system.rm(root, recursive=True)
        return
    bucket, key = _bucket_and_key(uri)
    if not key:
        raise OSError(f"{uri}: refusing to delete a whole bucket")
    keys = [name.partition("://")[2].partition("/")[2] for name, _ in _entries(uri)]
    with explained(uri):
        for start in range(0, len(keys), DELETED_AT_ONCE):
            objects = [{"Key": key} for key in keys[start : start + DELETED_AT_ONCE]]
            # s3fs's own rm skips objects that the store refuses to delete.
            answer = system.call_s3(
                "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
            )
            for error in answer.get("Errors", ()):
                raise refused(uri, error, "DeleteObjects")


def copy(source: str, target: str) -> None:
    """Copies one file, also between a file system and a store."""
    direct = _is_s3(target) and (
        _is_s3(source) or (not _in_store(source) and _path(source).is_file())
    )
    if not direct:
        with open_file(source) as reader, open_file(target, "wb") as writer:
            shutil.copyfileobj(reader, writer, BLOCK_BYTES)
        return
    system, path = filesystem(target)
    if _in_store(source):
        with explained(source):
            system.cp_file(filesystem(source)[1], path)
    else:
        with explained(target):
            system.put_file(str(_path(source)), path)


def sha256(uri: str, link: str = "") -> str:
    """Returns the SHA-256 of a file as 64 hexadecimal digits; reads it in blocks. link: see
    open_file."""
    with open_file(uri, link=link) as file:
        return hashlib.file_digest(cast(io.BufferedReader, file), "sha256").hexdigest()


def uploads(uri: str) -> list[Upload]:
    """Lists unfinished multipart uploads to S3 under a folder."""
    if not _is_s3(uri):
        return []
    system, _ = filesystem(uri)
    bucket, key = _bucket_and_key(uri)
    scheme, begun, request = uri.partition("://")[0], [], {"Bucket": bucket, "Prefix": key}
    with explained(uri):
        while True:
            page = system.call_s3("list_multipart_uploads", **request)
            for entry in page.get("Uploads", ()):
                if not key or f"{entry['Key']}/".startswith(f"{key}/"):
                    name = f"{scheme}://{bucket}/{entry['Key']}"
                    begun.append(Upload(name, entry["UploadId"], entry["Initiated"]))
            if not page.get("IsTruncated"):
                break
            request |= {
                "KeyMarker": page["NextKeyMarker"],
                "UploadIdMarker": page["NextUploadIdMarker"],
            }
    return sorted(begun, key=lambda upload: (upload.uri, upload.upload_id))


def abort_upload(upload: Upload) -> None:
    """Frees the space of a multipart upload; it is no error if the upload has ended meanwhile."""
    system, _ = filesystem(upload.uri)
    bucket, key = _bucket_and_key(upload.uri)
    with explained(upload.uri), contextlib.suppress(FileNotFoundError):
        system.abort_mpu(bucket, key, upload.upload_id)


def filesystem(uri: str) -> tuple[Any, str]:
    """Returns (fsspec file system without cached listings, absolute path in it)."""
    if not _in_store(uri):
        from fsspec.implementations.local import LocalFileSystem

        return LocalFileSystem(), str(_path(uri).absolute())
    if stores.is_other(uri):
        return stores.other_filesystem(uri)
    bucket, key = _bucket_and_key(uri)
    return stores.s3_filesystem(), f"{bucket}/{key}"


def arrow_filesystem(uri: str) -> tuple[Any, str]:
    """Returns (pyarrow file system, path in it), for data sets and for parts of files."""
    from pyarrow import fs

    system, path = filesystem(uri)
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


# Places


def _in_store(uri: str) -> bool:
    scheme, colon, _ = uri.partition("://")
    if colon and scheme != "file" and not (_is_s3(uri) or stores.is_other(uri)):
        known = ", ".join(f"{name}://" for name in ("file", "s3", "s3a", *stores.PACKAGES))
        raise OSError(f"{uri}: unknown scheme, expected a path or {known}")
    return bool(colon) and scheme != "file"


def _is_s3(uri: str) -> bool:
    return uri.startswith(("s3://", "s3a://"))


def _path(uri: str) -> Path:
    for prefix in ("file://", "file:"):
        if uri.startswith(prefix):
            return Path(uri.removeprefix(prefix))
    return Path(uri)


def _bucket_and_key(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.partition("://")[2].partition("/")
    if not bucket:
        raise OSError(f"{uri}: names no bucket, expected s3://bucket/…")
    return bucket, key.strip("/")


def _modified(entry: dict[str, Any]) -> datetime:
    """Returns when a file was last written, from an entry of any file system."""
    names = ("mtime", "LastModified", "last_modified", "created")
    when = next(entry[name] for name in names if entry.get(name) is not None)
    return when if isinstance(when, datetime) else datetime.fromtimestamp(when, UTC)


def _entries(uri: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns (URI, fsspec's entry) of the file with this name, or of all files in that folder."""
    system, root = filesystem(uri)
    with explained(uri):
        found = system.find(root, detail=True)
        if isinstance(found, list):  # adlfs returns a list for a file
            found = {name: system.info(name) for name in found}
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
