"""The sentences that a language model and word vectors are made of: a column of a table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gaixie.research.ratings.tables import read_table


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
        if isinstance(value, str):
            yield [value] if value else []
        elif value is None or isinstance(value, float):
            yield []
        elif isinstance(value, int):
            raise ValueError(f"{file}: column {column!r} has numbers, expected strings")
        else:
            yield [text for text in value if text]
