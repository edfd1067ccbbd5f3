"""Reads the data sets that metrics are compared on, and makes ParaScore's extended sets."""

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from gaixie.research.ratings import tables
from gaixie.udfs.storage.settings import Strict

ADDED_SHARE = 0.2
"""Share of the sources that an extended set adds as candidates (ParaScore, section 5.2)."""


class DataSet(Strict):
    """Where the human scores of one set are."""

    name: str
    path: str
    language: Literal["zh", "en"] = "zh"
    header: list[str] | None = None
    """Column names of a CSV or TSV that has no header line."""
    source: str = "source"
    paraphrase: str = "paraphrase"
    reference: str | None = None
    human: str = "human"
    labels: bool = False
    """Human scores are 0 or 1."""
    remove_spaces: bool = False
    """Remove the spaces that a tokeniser left: all but those between Latin letters or digits."""
    only: dict[str, str] = Field(default={})
    """Rows whose column (key) matches a regular expression (value) from its start."""
    without: dict[str, str] = Field(default={})
    """Rows left out, likewise."""
    limit: int | None = Field(None, ge=0)
    """Rows, instead of the limit of all sets."""
    lengths: list[int] = Field(default=[])
    """The set is also reported by length of the source, cut at these characters."""
    fitted: bool = False
    extended: bool = False
    published: dict[str, float] = Field(default={})
    published_extended: dict[str, float] = Field(default={})


class Config(Strict):
    """conf/metrics.yaml; what each setting means stands there."""

    encoder: str = "models/e5-small"
    word_vectors: str = "models/word-vectors"
    metrics: dict[Literal["zh", "en"], list[str]]
    limit: int = Field(5000, ge=0)
    tune: float = Field(0.1, ge=0, lt=1)
    samples: int = Field(1000, ge=1)
    data_sets: list[DataSet] = Field(min_length=1)


def read_data_set(data_set: DataSet, folder: Path, limit: int = 0) -> pd.DataFrame:
    """Returns columns source, paraphrase, reference (if there is one), human, added.

    The rows that extend a set come last, with added true. Of a set with more than ``limit`` rows,
    whole sources are chosen by a hash (0: all rows are kept).

    Raises FileNotFoundError, or ValueError that names file, column and row: for a human score that
    is not a number, or not 0 or 1 in a set of labels, and for a sentence that is not a string.
    """
    path = folder / data_set.path
    columns = {"source": data_set.source, "paraphrase": data_set.paraphrase}
    if data_set.reference:
        columns["reference"] = data_set.reference
    chosen = (*data_set.only, *data_set.without)
    rows = tables.read_table(path, [*columns.values(), data_set.human, *chosen], data_set.header)
    for kept, patterns in ((True, data_set.only), (False, data_set.without)):
        for column, pattern in patterns.items():
            rows = rows[rows[column].astype(str).str.match(pattern) == kept]
    rows = rows.reset_index(drop=True)
    table = pd.DataFrame({name: rows[column] for name, column in columns.items()})
    for name, column in columns.items():
        tables.strings_of(table[name], f"{path}: column {column!r}")
        if data_set.remove_spaces:
            table[name] = table[name].map(tables.remove_spaces)
    expected = tables.LABEL if data_set.labels else ("a number", np.isfinite)
    where = f"{path}: column {data_set.human!r}"
    table["human"] = tables.numbers_of(rows[data_set.human], where, *expected)
    table["added"] = False
    if limit and len(table) > limit:
        share = tables.source_share(table["source"], "limit")
        table = table[share < np.sort(share)[limit]].reset_index(drop=True)
    if not data_set.extended:
        return table
    share = tables.source_share(table["source"], "added")
    own = table[share < ADDED_SHARE].drop_duplicates("source").assign(human=0.0, added=True)
    return pd.concat([table, own.assign(paraphrase=own["source"])], ignore_index=True)
