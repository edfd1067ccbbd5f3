"""Origins that an input has in a column: one that nobody knows is found before work starts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gaixie.jobs.corpus.paths import hadoop_path, local_path
from gaixie.jobs.errors import JobError
from gaixie.udfs.spscore.stages import ORIGINS
from gaixie.udfs.storage.storage import File


def check_origins(rows: DataFrame, files: Sequence[File], column: str) -> None:
    """Raises JobError, which names the first file of a row whose ``origin`` is none of ORIGINS.

    rows: of these files; column: what ``origin`` is called there.
    """
    known = F.col("origin").isNotNull() & F.col("origin").isin(*ORIGINS)
    unknown = rows.where(~known).select(F.input_file_name().alias("file"), "origin")
    [[first]] = unknown.select(F.min(F.struct("file", "origin"))).collect()
    if first is None:
        return
    held = "no origin in a row" if first.origin is None else f"the unknown origin {first.origin!r}"
    path = hadoop_path(unquote(first.file))
    [uri] = (file.uri for file in files if hadoop_path(file.uri) == path)
    known_as = local_path(uri) or uri
    raise JobError(
        f"{known_as}: column '{column}' holds {held}, expected one of {', '.join(ORIGINS)}"
    )
