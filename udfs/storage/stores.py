"""Opens the stores that udfs/storage/storage.py reads and writes, as fsspec file systems."""

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
"""Schemes of stores other than S3, and the packages that support them."""


def is_other(uri: str) -> bool:
    return uri.partition("://")[0] in PACKAGES


def other_filesystem(uri: str) -> tuple[Any, str]:
    """Returns (file system, path in it) of a store other than S3, without cached listings.

    Raises OSError if its package is missing or finds no credentials.
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
    """Opens a local file that is uploaded to a store when the block ends.

    On HDFS a rename publishes it, because a file there is visible while it is written.
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
    """Returns the file system of S3, one for each process and set of variables."""
    return _s3_filesystem(_environment())


def _environment() -> tuple[Any, ...]:
    return os.getpid(), *sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))


@lru_cache(maxsize=8)
def _s3_filesystem(environment: tuple[Any, ...]) -> Any:
    from s3fs import S3FileSystem

    own_endpoint = any(map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")))
    settings = {
        "signature_version": "s3v4",  # for links too: some stores accept no other
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
        "s3": {"addressing_style": "path" if own_endpoint else "auto"},
        "max_pool_connections": 32,
    }
    options = {"config_kwargs": settings, "use_listings_cache": False}
    return S3FileSystem(**options, skip_instance_cache=True)
