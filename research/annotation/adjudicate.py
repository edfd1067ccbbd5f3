"""From the answers of several people to one rating of each pair, in the table that research/fit_spscore.py takes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import pandas as pd

from gaixie.research.annotation.label_studio import config, write_tasks
from gaixie.research.annotation.plan import FIELDS, IS_PARAPHRASE, NAME, RATINGS, Plan, Task
from gaixie.research.annotation.sheets import write_sheet
from gaixie.udfs.storage import storage

Rule = Literal["median", "third"]
THIRD = "third"
"""The annotator who decides."""
COLUMNS = (
    *("source", "paraphrase", *RATINGS, IS_PARAPHRASE),
    *("group", "kind", "origin", "passes", "pair_id", "spscore", "disputed", "decided_by"),
)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def adjudicate(
    plan: Plan,
    answers: pd.DataFrame,
    careless: Collection[str],
    apart: float,
    third: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A row of COLUMNS for each pair that somebody rated, in the order of the plan.

    answers: as of read_answers; those of careless annotators do not count. Ratings are medians;
    is_paraphrase is the majority's, NaN at a tie. disputed: two answers to one question are more than
    apart from each other, or is_paraphrase is a tie. third: answers that stand in place of all others.
    passes: people whose answers count.
    """
    rows = answers[(answers["kind"] == "pair") & ~answers["annotator"].isin(list(careless))]
    by_pair = rows.groupby("pair")
    fields, ratings = list(FIELDS), list(RATINGS)
    table = by_pair[fields].median()
    table[IS_PARAPHRASE] = table[IS_PARAPHRASE].where(table[IS_PARAPHRASE] != 0.5)
    spread = by_pair[ratings].max() - by_pair[ratings].min()
    table["disputed"] = (spread > apart).any(axis=1) | table[IS_PARAPHRASE].isna()
    table["passes"] = by_pair.size()
    table["decided_by"] = "median"
    if third is not None:
        decided = third.set_index("pair")[fields]
        decided = decided[decided.index.isin(table.index)]
        table.loc[decided.index, fields] = decided
        table.loc[decided.index, "decided_by"] = THIRD
        table.loc[decided.index, "passes"] += 1
    table = table.loc[[key for key in plan.pairs if key in table.index]]
    pairs = [plan.pairs[str(key)] for key in table.index]
    for name in ("source", "paraphrase", "spscore"):
        table[name] = [getattr(pair, name) for pair in pairs]
    table["group"] = [pair.group or pair.source for pair in pairs]
    table["kind"] = [pair.method or "rated" for pair in pairs]
    table["origin"] = [pair.origin or "human" for pair in pairs]
    table["pair_id"] = table.index
    table["spscore"] = table["spscore"].astype(float)
    return table.reset_index(drop=True)[list(COLUMNS)]


def undecided(table: pd.DataFrame) -> np.ndarray:
    """Which pairs wait for a third person: bool, shape (rows,)."""
    return (table["disputed"] & (table["decided_by"] != THIRD)).to_numpy(bool)


def plan_of_third(plan: Plan, table: pd.DataFrame) -> Plan:
    """What a third person has to decide."""
    keys = table.loc[undecided(table), "pair_id"]
    tasks = [
        Task(task=f"{THIRD}-{number:04d}", annotator=THIRD, pair=key, kind="pair")
        for number, key in enumerate(keys, 1)
    ]
    pairs = {key: plan.pairs[key] for key in keys}
    changes = {"pairs": pairs, "tasks": tasks, "overlap": 1, "created": now()}
    return plan.model_copy(update=changes)


def write_plan(plan: Plan, folder: str) -> list[str]:
    """Writes plan, sheets, and tasks for Label Studio; the URIs of the sheets."""
    sheets = []
    for annotator in plan.annotators:
        tasks = [task for task in plan.tasks if task.annotator == annotator]
        sheets.append(storage.join(folder, "sheets", f"{annotator}.csv"))
        storage.write(sheets[-1], write_sheet(plan, tasks))
        studio = storage.join(folder, "label_studio", f"{annotator}.json")
        storage.write(studio, write_tasks(plan, tasks))
    storage.write(storage.join(folder, "label_studio", "config.xml"), config())
    storage.write(storage.join(folder, NAME), storage.to_json(plan.model_dump()))
    return sheets
