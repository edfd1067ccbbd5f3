"""The stores that udfs/storage/storage.py reads and writes, as file systems of fsspec."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, BinaryIO, cast

ATTEMPTS = 5
CONNECT_SECONDS = 5
READ_SECONDS = 60
PACKAGES = {"gs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "hdfs": "pyarrow"}
"""Schemes of other stores than S3, and the packages that know them."""


def is_other(uri: str) -> bool:
    return uri.partition("://")[0] in PACKAGES


def other_filesystem(uri: str) -> tuple[Any, str]:
    """(file system, path in it) of a store other than S3, whose listings are not cached.

    Raises OSError where its package is missing, or does not know who asks.
    """
    from fsspec.core import url_to_fs

    package = PACKAGES[uri.partition("://")[0]]
    try:
        return url_to_fs(uri, use_listings_cache=False)
    except ImportError:
        raise OSError(f"{uri}: needs a package that is missing: pip install {package}") from None
    except (OSError, ValueError) as error:
        hint = "; hdfs:// needs Hadoop's native client" if package == "pyarrow" else ""
        raise OSError(f"{uri}: {str(error).splitlines()[0]}{hint}") from None


@contextmanager
def putting(uri: str, system: Any, path: str) -> Iterator[BinaryIO]:
    """Opens a file of this host that is put to a store once the block has ended.

    On HDFS it takes its name there by a rename, for a file shows while it is written.
    """
    with tempfile.NamedTemporaryFile() as file:
        yield cast(BinaryIO, file)
        file.flush()
        if not uri.startswith("hdfs:"):
            system.put_file(file.name, path)
            return
        part = f"{os.path.dirname(path)}/.{os.path.basename(path)}.part"
        system.makedirs(os.path.dirname(path), exist_ok=True)
        system.put_file(file.name, part)
        system.mv(part, path)


def s3_filesystem() -> Any:
    """The file system of S3, one for each process and set of variables."""
    return _s3_filesystem(_environment())


def _environment() -> tuple[Any, ...]:
    return os.getpid(), *sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))


@lru_cache(maxsize=8)
def _s3_filesystem(environment: tuple[Any, ...]) -> Any:
    from s3fs import S3FileSystem

    own_endpoint = any(map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")))
    settings = {
        "signature_version": "s3v4",  # of links too, which some stores take no other way
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
        "s3": {"addressing_style": "path" if own_endpoint else "auto"},
        "max_pool_connections": 32,
    }
    options = {"config_kwargs": settings, "use_listings_cache": False}
    return S3FileSystem(**options, skip_instance_cache=True)
