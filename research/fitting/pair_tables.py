"""Tables of sentence pairs with scores, as fits and comparisons read them."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from gaixie.udfs.text.normalise import normalise


def read_table(
    path: Path,
    columns: list[str],
    header: list[str] | None = None,
    optional: tuple[str, ...] = (),
) -> pd.DataFrame:
    """CSV, TSV, JSON lines or Parquet, by the file's ending: the columns, and what there is of
    optional.

    Raises FileNotFoundError, or ValueError naming file, column and what was expected.
    """
    if not path.exists() or path.is_dir():
        raise FileNotFoundError(f"{path}: no such file")
    ending = path.suffix.lower()
    try:
        if ending == ".parquet":
            table = pd.read_parquet(path)
        elif ending in (".jsonl", ".ndjson", ".json"):
            table = pd.read_json(path, lines=True, dtype=False, convert_dates=False)
        elif ending in (".csv", ".tsv"):
            tabs: dict[str, Any] = {"sep": "\t", "quoting": 3} if ending == ".tsv" else {}
            names: dict[str, Any] = {"names": header, "header": None} if header else {}
            table = pd.read_csv(path, dtype=str, keep_default_na=False, **tabs, **names)
        else:
            raise ValueError(f"ending {ending!r}")
    except (ValueError, OSError, pa.ArrowInvalid) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: expected CSV, TSV, JSON lines or Parquet ({reason})") from None
    for column in columns:
        if column not in table.columns:
            there = ", ".join(map(str, table.columns))
            raise ValueError(f"{path}: no column {column!r}, expected it beside: {there}")
    if table.empty:
        raise ValueError(f"{path}: no rows")
    return table[[*columns, *(name for name in optional if name in table.columns)]]


def remove_spaces(text: str) -> str:
    """A text normalised, without the spaces that a tokeniser left between Chinese characters."""
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", normalise(text))


def source_hash(source: str) -> int:
    """What a source's side of every split depends on: the same on every machine."""
    return zlib.crc32(source.encode("utf-8", "surrogatepass"))
