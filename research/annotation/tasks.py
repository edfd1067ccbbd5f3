"""Plans who rates which pair, and writes the tasks for Label Studio.

The plan is a table with one row per task. It says which pair a task shows and which tasks are
checks; annotators do not see it. All tasks look alike: pairs of the sample, pairs shown a second
time, and pairs whose right answers are known.

Format: labelstud.io/guide/task_format. The configuration uses Choices, because Label Studio's
Rating has no 0.
"""

from __future__ import annotations

from itertools import combinations, cycle
from pathlib import Path

import numpy as np
import pandas as pd

from gaixie.udfs.reports import render
from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.storage import storage

RATINGS = [*JUDGEMENTS, "overall"]
"""Questions answered from 0 to 5: the paper's three criteria, readability, and overall quality."""
IS_PARAPHRASE = "is_paraphrase"
"""The question answered with 0 or 1: do both sentences say the same?"""
HIGHEST = {**dict.fromkeys(RATINGS, 5), IS_PARAPHRASE: 1}
FIELDS = [*HIGHEST]
PLAN = "plan.json"
HERE = Path(__file__).parent


def assign(
    pairs: pd.DataFrame, annotators: list[str], overlap: int, repeats: float, seed: int
) -> pd.DataFrame:
    """Returns the plan: a row for each task, with its annotator and all columns of its pair.

    Each pair whose column ``kind`` is "pair" goes to ``overlap`` annotators; every two annotators
    share about equally many. Pairs of another kind go to everybody. repeats: the share of an
    annotator's pairs that come again, at least a third of the tasks later.
    """
    draw = np.random.default_rng(seed)
    teams = draw.permutation([*combinations(annotators, overlap)])
    own: dict[str, list[int]] = {name: [] for name in annotators}
    for row, team in zip(np.flatnonzero(pairs["kind"] == "pair").tolist(), cycle(teams)):
        for name in team:
            own[name].append(row)
    checks = np.flatnonzero(pairs["kind"] != "pair").tolist()
    parts = []
    for name, rows in own.items():
        order = draw.permutation([*rows, *checks]).tolist()
        early = [row for row in order[: len(order) // 2] if row not in checks]
        for row in early[: round(repeats * len(rows))]:
            least = min(order.index(row) + max(len(rows) // 3, 1), len(order))
            order.insert(int(draw.integers(least, len(order) + 1)), row)
        part = pairs.iloc[order].assign(annotator=name)
        part.loc[part["pair"].duplicated(), "kind"] = "repeat"
        part.insert(0, "task", [f"{name}-{number:04d}" for number in range(1, len(order) + 1)])
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def write_plan(plan: pd.DataFrame, folder: str) -> list[str]:
    """Writes plan, guideline, configuration and tasks. Returns the URI of each tasks file."""
    files = []
    for name, own in plan.groupby("annotator", sort=False):
        tasks = own[["task", "source", "paraphrase"]].to_dict("records")
        files.append(storage.join(folder, "label_studio", f"{name}.json"))
        storage.write(files[-1], storage.to_json([{"data": task} for task in tasks]))
    config = render(HERE / "config.xml.j2", highest=HIGHEST)
    storage.write(storage.join(folder, "label_studio", "config.xml"), config)
    storage.write(storage.join(folder, "guideline.md"), render(HERE / "guideline.md.j2"))
    rows = plan.astype(object).where(plan.notna(), None).to_dict("records")
    storage.write(storage.join(folder, PLAN), storage.to_json(rows))
    return files


def read_plan(folder: str) -> pd.DataFrame:
    """Reads the plan that annotate.py export wrote. Raises FileNotFoundError or ValueError."""
    uri = storage.join(folder, PLAN)
    try:
        plan = pd.DataFrame(storage.read_json(uri))
    except FileNotFoundError:
        raise FileNotFoundError(f"{uri}: no such file; annotate.py export writes it") from None
    if not {"task", "annotator", "pair", "kind"} <= {*plan}:
        raise ValueError(f"{uri}: not a plan of annotate.py export")
    return plan
