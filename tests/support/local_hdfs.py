"""fsspec's hdfs:// without a cluster: its class on top of pyarrow's local file system."""

import fsspec
import pyarrow.fs
from fsspec.implementations.arrow import ArrowFSWrapper


class LocalHdfs(ArrowFSWrapper):
    """fsspec's file system for hdfs://, without the connection to a name node."""

    protocol = "hdfs"

    def __init__(self, host: str = "", port: int = 0, **options) -> None:
        super().__init__(pyarrow.fs.LocalFileSystem(), **options)

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        return {"host": path.removeprefix("hdfs://").partition("/")[0]}


def use() -> None:
    fsspec.register_implementation("hdfs", LocalHdfs, clobber=True)
