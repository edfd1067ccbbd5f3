"""Who annotates which pair: the plan of an annotation, which annotators do not see.

plan.json lies beside the sheets and leads from a task of a sheet back to its pair. Tasks look alike, whatever
they are there for: a pair of the sample, the same pair a second time, or a pair whose right answers are known.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import ValidationError

from gaixie.udfs.spscore import JUDGEMENTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.settings import Strict

RATINGS = (*JUDGEMENTS, "overall")
"""What is answered from 0 to SCALE: the paper's three criteria, readability, and the whole."""
IS_PARAPHRASE = "is_paraphrase"
"""What is answered by 0 or 1: whether both sentences say the same."""
FIELDS = (*RATINGS, IS_PARAPHRASE)
SCALE = 5
NAME = "plan.json"

Kind = Literal["pair", "repeat", "copy", "unrelated"]
CHECKS = ("copy", "unrelated")
"""Kinds of attention pairs: source and paraphrase are one sentence, or say nothing of each other."""


class Pair(Strict):
    """A pair of the sample, or an attention pair."""

    source: str
    paraphrase: str
    pair_id: str | None = None
    origin: str | None = None
    group: str | None = None
    method: str | None = None
    spscore: float | None = None


class Task(Strict):
    """A line of an annotator's sheet."""

    task: str
    annotator: str
    pair: str
    """Key of the pair in the plan."""
    kind: Kind


class Plan(Strict):
    source: str
    """What the pairs were sampled from."""
    created: str
    seed: int
    overlap: int
    pairs: dict[str, Pair]
    tasks: list[Task]

    @property
    def annotators(self) -> list[str]:
        return list(dict.fromkeys(task.annotator for task in self.tasks))


def read_plan(folder: str) -> Plan:
    """The plan of a folder that annotate.py export wrote. Raises OSError, or ValueError in one line."""
    uri = storage.join(folder, NAME)
    try:
        return Plan.model_validate(storage.read_json(uri))
    except FileNotFoundError:
        raise FileNotFoundError(f"{uri}: no such file; annotate.py export writes it") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{uri}: not a plan: {where}: {first['msg']}") from None


def assign(
    pairs: list[str],
    checks: dict[str, Kind],
    annotators: list[str],
    overlap: int,
    repeats: float,
    seed: int,
) -> list[Task]:
    """The tasks of all sheets, each sheet in its own order.

    pairs: keys of the sample; each goes to overlap annotators, all of whom get as many, and meet each
    other as often as can be. checks: kind by key; everybody gets all of them. repeats: share of an
    annotator's pairs that come again, a third of the sheet later at least.
    """
    draw = np.random.default_rng(seed)
    load = np.zeros(len(annotators))
    met = np.zeros((len(annotators), len(annotators)))
    own: list[list[str]] = [[] for _ in annotators]
    for key in pairs:
        chosen: list[int] = []
        for _ in range(overlap):
            free = [k for k in range(len(annotators)) if k not in chosen]
            tie = draw.random(len(annotators))
            chosen.append(min(free, key=lambda k: (load[k], met[k, chosen].sum(), tie[k])))
            load[chosen[-1]] += 1
        for k in chosen:
            own[k].append(key)
            met[k, [other for other in chosen if other != k]] += 1
    tasks = []
    for annotator, keys in zip(annotators, own, strict=True):
        order: list[tuple[str, Kind]] = [(key, "pair") for key in keys]
        order += checks.items()
        order = [order[k] for k in draw.permutation(len(order))]
        early = [key for key, kind in order[: len(order) // 2] if kind == "pair"]
        for key in early[: round(repeats * len(keys))]:
            first = next(place for place, (other, _) in enumerate(order) if other == key)
            least = min(first + max(len(keys) // 3, 1), len(order))
            order.insert(int(draw.integers(least, len(order) + 1)), (key, "repeat"))
        tasks += [
            Task(task=f"{annotator}-{number:04d}", annotator=annotator, pair=key, kind=kind)
            for number, (key, kind) in enumerate(order, 1)
        ]
    return tasks
