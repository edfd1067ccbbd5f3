"""Files by URI, for jobs and training alike: manifests, releases, checkpoints.

A URI is a local path, file://, s3:// or s3a:// (the two mean the same). Credentials come from the
environment's default chain alone (variables, profile, role), the endpoint of a store other than
AWS from AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.

Whatever is written appears complete or not at all. A store that is busy or drops a connection is
asked again a few times; wrong credentials and missing buckets fail at once. Everything here raises
OSError with one line that names the URI and what to mend: FileNotFoundError, FileExistsError,
PermissionError (credentials or rights), ConnectionError (nothing answers), or OSError itself.
boto3 and s3fs are imported where a URI needs them.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

ATTEMPTS = 5
CONNECT_SECONDS = 5
READ_SECONDS = 60
BLOCK_BYTES = 8 * 2**20
"""What a read from a store fetches ahead."""


@dataclass(frozen=True)
class File:
    uri: str
    size: int
    """Bytes."""
    modified: datetime


@dataclass(frozen=True)
class Upload:
    """A multipart upload that was begun and not ended: it takes space and shows in no listing."""

    uri: str
    upload_id: str
    started: datetime


def join(uri: str, *parts: str) -> str:
    return "/".join([uri.rstrip("/"), *parts])


def spark_uri(uri: str) -> str:
    """The URI as Spark knows it: s3:// as s3a://."""
    return f"s3a://{uri[5:]}" if uri.startswith("s3://") else uri


def exists(uri: str) -> bool:
    """Whether there is a file, or a folder with something in it."""
    if not _in_store(uri):
        return _path(uri).exists()
    return any(not entry["Key"].endswith("/") for entry in _entries(uri))


def list_files(uri: str) -> list[File]:
    """Files of a file or folder, all levels, in order of their URIs; none where nothing is."""
    if not _in_store(uri):
        root = _path(uri)
        with _explained(uri):
            if not root.is_dir():
                return [_local_file(uri, root)] if root.exists() else []
            found = [path for path in root.rglob("*") if not path.is_dir()]
            files = [
                _local_file(join(uri, path.relative_to(root).as_posix()), path) for path in found
            ]
        return sorted(files, key=lambda file: file.uri)
    scheme, bucket = uri.partition("://")[0], _bucket_and_key(uri)[0]
    return [
        File(f"{scheme}://{bucket}/{entry['Key']}", entry["Size"], entry["LastModified"])
        for entry in _entries(uri)
        if not entry["Key"].endswith("/")  # what some writers leave to mark a folder
    ]


def children(uri: str) -> list[str]:
    """Names of the files and folders directly below a folder, in order.

    Some stores, like file systems, keep folders of which all files were deleted.
    """
    if not _in_store(uri):
        with _explained(uri):
            return sorted(path.name for path in _path(uri).iterdir()) if exists(uri) else []
    client, bucket, key = _place(uri)
    prefix, names = _folder(key), set()
    with _explained(uri):
        pages = client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=bucket, Prefix=prefix, Delimiter="/"):
            names.update(entry["Key"] for entry in page.get("Contents", ()))
            names.update(entry["Prefix"] for entry in page.get("CommonPrefixes", ()))
    return sorted({name[len(prefix) :].rstrip("/") for name in names} - {""})


@contextmanager
def open_file(uri: str, mode: str = "rb") -> Iterator[BinaryIO]:
    """A binary file to read ("rb", seekable) or write ("wb"), inside a with block.

    What is written is there once the block ends; where the block raises, nothing is.
    """
    if mode not in ("rb", "wb"):
        raise ValueError(f"mode must be 'rb' or 'wb', not '{mode}'")
    if not _in_store(uri):
        if mode == "wb":
            with _replacing(uri, os.replace) as file:
                yield file
            return
        with _explained(uri):
            file = _path(uri).open("rb")
        with file:
            yield file
        return
    system, path = filesystem(uri)
    with _explained(uri):
        if mode == "rb":
            file = system.open(path, "rb", block_size=BLOCK_BYTES, cache_type="readahead")
        else:
            file = system.open(path, "wb", autocommit=False)
    with _explained(uri, local=False):
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
    if not _in_store(uri):
        with _explained(uri):
            return _path(uri).read_bytes()
    from botocore.exceptions import HTTPClientError, IncompleteReadError

    client, bucket, key = _place(uri)
    left = ATTEMPTS
    with _explained(uri):
        while True:
            answer = client.get_object(Bucket=bucket, Key=key)
            try:
                return answer["Body"].read()
            except (HTTPClientError, IncompleteReadError):  # broke off, where boto3 asks no more
                left -= 1
                if not left:
                    raise


def read_json(uri: str) -> Any:
    """Raises OSError where the file is no JSON."""
    try:
        return json.loads(read_bytes(uri))
    except ValueError as error:
        raise OSError(f"{uri}: not JSON: {error}") from None


def to_json(value: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def write(uri: str, content: bytes | str) -> None:
    """Writes a whole file over whatever was there."""
    data = content.encode() if isinstance(content, str) else content
    if not _in_store(uri):
        with _replacing(uri, os.replace) as file:
            file.write(data)
        return
    client, bucket, key = _place(uri)
    with _explained(uri):
        client.put_object(Bucket=bucket, Key=key, Body=data)


def write_json(uri: str, value: Any) -> None:
    write(uri, to_json(value))


def create(uri: str, content: bytes | str) -> None:
    """Writes a whole file if there is none; of several that try at once, exactly one does.

    Raises FileExistsError for the others. On a file system a hard link decides, in a store
    ``If-None-Match: *``, which the store must know (AWS, MinIO, SeaweedFS and Ceph do).
    """
    data = content.encode() if isinstance(content, str) else content
    if not _in_store(uri):
        with _replacing(uri, os.link) as file:
            file.write(data)
        return
    client, bucket, key = _place(uri)
    token = secrets.token_hex(8)
    request = {"Bucket": bucket, "Key": key, "Body": data, "Metadata": {"created-by": token}}
    with _explained(uri):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                client.put_object(**request, IfNoneMatch="*")
                return
            except client.exceptions.ClientError as error:
                code = error.response["Error"]["Code"]
                if code == "ConditionalRequestConflict" and attempt < ATTEMPTS:
                    time.sleep(0.2 * attempt)  # another request for this key was under way
                    continue
                if code not in ("PreconditionFailed", "412"):
                    raise
                # An answer that was lost makes the client ask again, and find its own object.
                found = client.head_object(Bucket=bucket, Key=key)
                if found["Metadata"].get("created-by") != token:
                    raise
                return


def delete(uri: str) -> None:
    """Deletes a file or a folder with all that is in it; nothing happens where nothing is."""
    if not _in_store(uri):
        path = _path(uri)
        with _explained(uri):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return
    client, bucket, key = _place(uri)
    if not key:
        raise OSError(f"{uri}: a whole bucket is not deleted here")
    keys = [entry["Key"] for entry in _entries(uri)]
    with _explained(uri):
        for start in range(0, len(keys), 1000):
            batch = [{"Key": key} for key in keys[start : start + 1000]]
            answer = client.delete_objects(Bucket=bucket, Delete={"Objects": batch, "Quiet": True})
            for error in answer.get("Errors", ()):
                raise client.exceptions.ClientError({"Error": error}, "DeleteObjects")


def copy(source: str, target: str) -> None:
    """Copies one file, also between a file system and a store; a store's own copies stay there."""
    if not _in_store(target) or not (_in_store(source) or _path(source).is_file()):
        with open_file(source) as reader, open_file(target, "wb") as writer:
            shutil.copyfileobj(reader, writer, BLOCK_BYTES)
        return
    client, bucket, key = _place(target)
    if _in_store(source):
        _, from_bucket, from_key = _place(source)
        with _explained(source):
            client.copy({"Bucket": from_bucket, "Key": from_key}, bucket, key)
        return
    with open_file(source) as reader, _explained(target):
        client.upload_fileobj(reader, bucket, key)  # in parts and threads


def sha256(uri: str) -> str:
    """SHA-256 of a file as 64 hexadecimal digits; reads it in blocks."""
    with open_file(uri) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def uploads(uri: str) -> list[Upload]:
    """Multipart uploads under a folder that were begun and not ended; a file system has none."""
    if not _in_store(uri):
        return []
    client, bucket, key = _place(uri)
    scheme, found = uri.partition("://")[0], []
    with _explained(uri):
        pages = client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=bucket, Prefix=key):
            for entry in page.get("Uploads", ()):
                if entry["Key"] == key or entry["Key"].startswith(_folder(key)):
                    place = f"{scheme}://{bucket}/{entry['Key']}"
                    found.append(Upload(place, entry["UploadId"], entry["Initiated"]))
    return sorted(found, key=lambda upload: (upload.uri, upload.upload_id))


def abort_upload(upload: Upload) -> None:
    """Frees what a multipart upload took; one that has ended in the meantime is no error."""
    client, bucket, key = _place(upload.uri)
    with _explained(upload.uri):
        try:
            client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload.upload_id)
        except client.exceptions.NoSuchUpload:
            return


def storage_options(uri: str) -> dict[str, Any]:
    """What fsspec, pandas and datasets take as storage_options to read a URI as this file does."""
    if not _in_store(uri):
        return {}
    return {"config_kwargs": _settings(), "use_listings_cache": False}


def filesystem(uri: str) -> tuple[Any, str]:
    """(fsspec file system, absolute path in it), for pyarrow and others; listings are not cached."""
    if not _in_store(uri):
        from fsspec.implementations.local import LocalFileSystem

        return LocalFileSystem(), str(_path(uri).absolute())
    bucket, key = _bucket_and_key(uri)
    return _s3_filesystem(_environment()), f"{bucket}/{key}"


# Places


def _in_store(uri: str) -> bool:
    scheme, colon, _ = uri.partition("://")
    if colon and scheme not in ("s3", "s3a", "file"):
        raise OSError(f"{uri}: unknown scheme, expected a path, file://, s3:// or s3a://")
    return bool(colon) and scheme != "file"


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


def _folder(key: str) -> str:
    return f"{key}/" if key else ""


def _local_file(uri: str, path: Path) -> File:
    status = path.stat()
    return File(uri, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


@contextmanager
def _replacing(uri: str, publish: Callable[[Path, Path], None]) -> Iterator[BinaryIO]:
    """A hidden file beside uri that takes its name once the block has ended."""
    path = _path(uri)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with _explained(uri):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = part.open("xb")
        with file:
            yield file
            with _explained(uri):
                file.flush()
                os.fsync(file.fileno())
        with _explained(uri):
            publish(part, path)
    finally:
        part.unlink(missing_ok=True)


# The store


def _environment() -> tuple:
    """What a client depends on: kept clients serve one process and one set of variables."""
    return os.getpid(), *sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))


def _settings() -> dict[str, Any]:
    own_endpoint = any(map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")))
    return {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
        "s3": {"addressing_style": "path" if own_endpoint else "auto"},
        "max_pool_connections": 32,
    }


@lru_cache(maxsize=8)
def _client(environment: tuple) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.session.Session().client("s3", config=Config(**_settings()))


@lru_cache(maxsize=8)
def _s3_filesystem(environment: tuple) -> Any:
    from s3fs import S3FileSystem

    return S3FileSystem(**storage_options("s3://"), skip_instance_cache=True)


def _place(uri: str) -> tuple[Any, str, str]:
    """(client, bucket, key)."""
    bucket, key = _bucket_and_key(uri)
    with _explained(uri):
        return _client(_environment()), bucket, key


def _entries(uri: str) -> Iterator[dict[str, Any]]:
    """Listed objects: the one of this key, then those in the folder of that name, by key."""
    client, bucket, key = _place(uri)
    with _explained(uri):
        if key:  # sorts before all that begin with it
            page = client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
            yield from (entry for entry in page.get("Contents", ()) if entry["Key"] == key)
        pages = client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=bucket, Prefix=_folder(key)):
            yield from page.get("Contents", ())


# Errors

WRONG_CREDENTIALS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "InvalidClientTokenId",
    "AuthorizationHeaderMalformed",
    "RequestTimeTooSkewed",
}


@contextmanager
def _explained(uri: str, local: bool = True) -> Iterator[None]:
    """Makes what boto3, s3fs and the file system raise one line that names the URI.

    local: also errors of the file system, which in a caller's own block may be about another file.
    """
    try:
        yield
    except Exception as error:
        cause = error.__cause__ if isinstance(error, OSError) and error.__cause__ else error
        if type(cause).__module__.partition(".")[0] in ("botocore", "boto3", "s3transfer"):
            raise _store_error(uri, cause) from None
        ours = str(error).startswith(f"{uri}: ")
        if local and isinstance(error, OSError) and not ours:
            raise _file_error(uri, error) from None
        raise


def _file_error(uri: str, error: OSError) -> OSError:
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"{uri}: no such file or folder")
    if isinstance(error, FileExistsError):
        return FileExistsError(f"{uri}: is already there")
    return type(error)(f"{uri}: {(error.strerror or str(error)).splitlines()[0]}")


def _store_error(uri: str, error: Exception) -> OSError:
    from botocore import exceptions as boto

    first_line = (str(error).splitlines() or [""])[0]
    if isinstance(error, boto.ClientError):
        details = error.response.get("Error", {})
        code, message = str(details.get("Code", "")), details.get("Message", "")
        if code == "NoSuchBucket":
            return FileNotFoundError(f"{uri}: no such bucket; create it, or mend the name")
        if code in ("NoSuchKey", "NoSuchUpload", "NotFound", "404"):
            return FileNotFoundError(f"{uri}: no such object")
        if code in ("PreconditionFailed", "ConditionalRequestConflict", "412"):
            return FileExistsError(f"{uri}: is already there")
        if code in WRONG_CREDENTIALS:
            return PermissionError(
                f"{uri}: the store does not accept the credentials ({code}); check "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile or role in use"
            )
        if code in ("AccessDenied", "AllAccessDisabled", "Forbidden", "403"):
            return PermissionError(
                f"{uri}: access denied ({error.operation_name}); check the credentials in use "
                "and what they may do there"
            )
        return OSError(f"{uri}: {code}: {(message.splitlines() or [first_line])[0]}")
    credentials = (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
    )
    if isinstance(error, (*credentials, boto.ProfileNotFound, boto.SSOError)):
        return PermissionError(
            f"{uri}: no credentials ({first_line}); set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or run under a role"
        )
    if isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        return ConnectionError(
            f"{uri}: the store cannot be reached ({first_line}); check AWS_ENDPOINT_URL_S3 "
            "and the network"
        )
    return OSError(f"{uri}: {first_line}")
