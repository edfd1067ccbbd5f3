"""Sheets to rate: shuffled pairs that say neither where they come from nor what wrote them.

    FOLDER/sheet.tsv       id, source, paraphrase: for the raters
    FOLDER/key.json        all that is known of each row; raters must not see it
    FOLDER/guideline.md    what the ratings mean

A rater returns a table (TSV, CSV or Parquet) with the column id and one for each criterion.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from gaixie.research.ratings.tables import numbers_of, read_table

CRITERIA = ["structure", "synonyms", "meaning", "fluency", "overall"]
"""The paper's three criteria, readability, and overall quality."""
GUIDELINE = Path(__file__).with_name("guideline.md")


def write_sheet(rows: pd.DataFrame, folder: Path, seed: int) -> Path:
    """Writes sheet and key. rows: source, paraphrase, and whatever the key is to say of them."""
    if (folder / "key.json").exists():
        raise ValueError(f"{folder}: has a sheet already; use another --output")
    folder.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    rows = rows.iloc[order].reset_index(drop=True)
    rows.insert(0, "id", range(len(rows)))
    sheet = rows[["id", "source", "paraphrase"]].replace(r"[\t\r\n]+", " ", regex=True)
    sheet.to_csv(folder / "sheet.tsv", sep="\t", index=False, quoting=3)
    (folder / "guideline.md").write_bytes(GUIDELINE.read_bytes())
    rows.to_json(folder / "key.json", orient="records", force_ascii=False, indent=1)
    return folder / "sheet.tsv"


def read_key(folder: Path) -> pd.DataFrame:
    """Reads what write_sheet wrote, by id. Raises FileNotFoundError or ValueError."""
    return pd.read_json(folder / "key.json", orient="records", dtype=False).set_index("id")


def read_ratings(
    paths: Sequence[Path], key: pd.DataFrame, criteria: Sequence[str] = CRITERIA
) -> pd.DataFrame:
    """Returns columns id, rater (the file's name) and a float for each criterion.

    Raises OSError, or ValueError that names file, column and row, unless each row of the key is
    rated once at most, from 0 to 5.
    """
    tables = []
    for path in paths:
        given = read_table(path, ["id", *criteria])
        where = f"{path}: column 'id'"
        whole = numbers_of(
            given["id"], where, "an id of the sheet", lambda x: np.isin(x, key.index)
        )
        table = pd.DataFrame({"id": whole.astype(int), "rater": path.stem})
        for name in criteria:
            where = f"{path}: column {name!r}"
            table[name] = numbers_of(
                given[name], where, "a number from 0 to 5", lambda x: (x >= 0) & (x <= 5)
            )
        if (twice := table["id"].duplicated()).any():
            raise ValueError(f"{path}: id {table.loc[twice, 'id'].iloc[0]} is rated twice")
        tables.append(table)
    ratings = pd.concat(tables, ignore_index=True)
    if ratings["rater"].nunique() < len(tables):
        raise ValueError(f"{', '.join(map(str, paths))}: expected files with different names")
    return ratings
