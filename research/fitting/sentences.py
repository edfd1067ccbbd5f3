"""The sentences that a language model and word vectors are made of: a column of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.storage.text_tables import BATCH, read_columns


def split_column(given: str) -> tuple[str, str]:
    """FILE[:COLUMN] as file and column; the colons of a URI are the file's."""
    path, colon, column = given.rpartition(":")
    if not colon or "/" in column or not column:
        return given.removesuffix(":"), "text"
    return path, column


def read_groups(file: Path, column: str, given: str) -> Iterator[list[str]]:
    """The lists of a column, or its sentences, a list of one each; nulls left out.

    given: the path as the user knows it, for messages. Raises FileNotFoundError and ValueError.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{given}: no such file")
    if file.suffix == ".parquet" and (kind := _type_of(file, column, given)):
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not (
            pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
        ):
            raise ValueError(
                f"{given}: column '{column}' is of {kind}, expected string or a list of string"
            )
        for batch in pq.ParquetFile(file).iter_batches(BATCH, columns=[column]):
            for texts in batch.column(0).to_pylist():
                yield [text for text in texts or [] if text]
        return
    for (text,) in read_columns(str(file), [column], "strict"):
        yield [text] if text else []


def _type_of(file: Path, column: str, given: str) -> pa.DataType | None:
    """The type of a column that is no string; None for strings, and where there is no column."""
    try:
        schema = pq.read_schema(file)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{given}: not a Parquet file: {str(error).splitlines()[0]}") from None
    if column not in schema.names:
        return None
    kind = schema.field(column).type
    return None if pa.types.is_string(kind) or pa.types.is_large_string(kind) else kind
