"""Reads tables of sentences, and of pairs with scores, and splits them by source."""

import argparse
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gaixie.udfs.text.normalise import normalise


def read_table(
    path: Path, columns: list[str], header: list[str] | None = None, optional: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Reads columns, and what there is of ``optional``, from CSV, TSV, JSON lines or Parquet.

    header: the names of the columns, if the file has no line of them. Raises FileNotFoundError, or
    ValueError that names file, column and what was expected.
    """
    if not path.is_file():
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


def read_json_lines(*paths: Path) -> list[dict]:
    """Reads the objects of files of JSON lines."""
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def add_places(parser: argparse.ArgumentParser) -> None:
    """Adds --input, --output and --overwrite."""
    add = parser.add_argument
    tables = "a table of sentences, or of lists of them, and its column (text); may be repeated"
    place: dict[str, Any] = {"type": split_column, "required": True, "action": "append"}
    add("--input", **place, metavar="FILE[:COLUMN]", help=tables)
    add("--output", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    add("--overwrite", action="store_true", help="replace FOLDER if it holds such a model")


def split_column(given: str) -> tuple[Path, str]:
    """FILE[:COLUMN] as file and column."""
    path, _, column = given.partition(":")
    return Path(path), column or "text"


def read_groups(file: Path, column: str) -> Iterator[list[str]]:
    """Yields the lists of a column, or its sentences, a list of one each; nulls are left out.

    Raises OSError and ValueError, which name the file.
    """
    for value in read_table(file, [column])[column]:
        if isinstance(value, int):
            raise ValueError(f"{file}: column {column!r} has numbers, expected strings")
        texts = [value] if isinstance(value, str) else value
        missing = value is None or isinstance(value, float)
        yield [] if missing else [text for text in texts if text]


def strings_of(column: pd.Series, where: str) -> pd.Series:
    """Returns the column. Raises ValueError that names the first row that holds no string."""
    for row, text in enumerate(column, 1):
        if not isinstance(text, str):
            raise ValueError(f"{where}: row {row} has {text!r}, expected a string")
    return column


LABEL = ("0 or 1", lambda numbers: np.isin(numbers, (0, 1)))
"""What ``numbers_of`` expects of labels."""


def numbers_of(
    column: pd.Series, where: str, expected: str, right: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Returns a column as float64. Raises ValueError that names the first row that is not right."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(~right(numbers))
    if len(wrong):
        row, number, value = int(wrong[0]), numbers[wrong[0]], column.iloc[wrong[0]]
        given = repr(value) if isinstance(value, str) and np.isnan(number) else f"{number:g}"
        raise ValueError(f"{where}: row {row + 1} has {given}, expected {expected}")
    return numbers


def remove_spaces(text: str) -> str:
    """Normalises a text; removes the spaces that a tokeniser left between Chinese characters."""
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", normalise(text))


def source_hash(source: str) -> int:
    """Returns what a source's side of every split depends on: the same on every machine."""
    return zlib.crc32(source.encode("utf-8", "surrogatepass"))


def source_share(sources: Iterable[str], salt: str) -> np.ndarray:
    """Returns a hash in [0, 1) per row, equal for rows of one source: float64, shape (rows,)."""
    return np.array([source_hash(f"{salt}{text}") for text in sources], float) / 2**32
