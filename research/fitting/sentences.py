"""The sentences that a language model and word vectors are made of: a column of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage.text_tables import BATCH, read_columns


def split_column(given: str) -> tuple[Path, str]:
    """FILE[:COLUMN] as file and column."""
    path, _, column = given.partition(":")
    return Path(path), column or "text"


def read_groups(file: Path, column: str) -> Iterator[list[str]]:
    """The lists of a column, or its sentences, a list of one each; nulls left out.

    Raises OSError and ValueError, which name the file.
    """
    if file.suffix == ".parquet" and _is_list(file, column):
        for batch in pq.ParquetFile(file).iter_batches(BATCH, columns=[column]):
            for texts in batch.column(0).to_pylist():
                yield [text for text in texts or [] if text]
        return
    for (text,) in read_columns(str(file), [column], "strict"):
        yield [text] if text else []


def _is_list(file: Path, column: str) -> bool:
    schema = pq.read_schema(file)
    return column in schema.names and pa.types.is_list(schema.field(column).type)
