"""What the pair encoder sees, on groups, ratings and sets that it has not learned from."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from gaixie.research.pair_encoder.sets import KINDS, OWN, Sets, human_test
from gaixie.research.ratings.rated import RATINGS
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder


def evaluate(encoder: PairEncoder, sets: Sets, data: Path) -> dict[str, float]:
    """How often a paraphrase (S2 to S4) beats its counterpart; Spearman with ratings; AUC of
    OCNLI."""

    def of(task: str, pairs: list[tuple[str, str]]) -> np.ndarray:
        return encoder.predict(*zip(*pairs, strict=True))[:, TASKS.index(task)]

    found: dict[str, float] = {}
    for kind, (suffix, groups) in product(KINDS, _parts(sets)):
        good = [(own["texts"][0], own["texts"][k]) for own in groups for k in (2, 3, 4)]
        bad = [(own["texts"][0], sets.broken[own["group"]][kind]) for own in groups]
        judged = of("fluent" if kind == "salad" else "same", [*good, *bad])
        better = judged[: len(good)].reshape(-1, 3) > judged[len(good) :, None]
        found[f"{kind}, a paraphrase wins{suffix}"] = float(better.mean())
    wins = [
        of("same", [(row["source"], text) for text in row["same"]])
        > of("same", [(row["source"], text) for text in row["roles"]])
        for row in sets.test_exchanged
    ]
    found["exchanged participants, a paraphrase wins"] = float(np.mean(wins))
    for kind in KINDS[:-1]:
        won: list[bool] = []
        for row in sets.test_rewritten:
            same = of("same", [(row["source"], text) for text in row["same"]])
            chosen = [
                own for own, name in zip(row["wrong"], row["kinds"], strict=True) if name == kind
            ]
            if chosen:
                wrong = of("same", [(row["source"], text) for text in chosen])
                won += (same[:, None] > wrong).ravel().tolist()
        found[f"{kind}, a free rewrite wins"] = float(np.mean(won))
    test = sets.rated[sets.rated["part"] == "test"]
    written = test["kind"].str.startswith(("written", "contrast"))
    for part, rows in (("real", test[~written]), ("written", test[written])):
        predicted = encoder.predict(rows["source"].tolist(), rows["paraphrase"].tolist())
        for k, name in enumerate(RATINGS):
            found[f"{name}, {part}, Spearman"] = float(spearmanr(predicted[:, k], rows[name])[0])
    human = read_json_lines(data / "bq_para.dev.jsonl")
    human = [row for row in human if human_test(row["source"])]
    scores = of("human", [(row["source"], row["candidate"]) for row in human])
    found["BQ-Para, Spearman"] = float(spearmanr(scores, [row["human"] for row in human])[0])
    statements = [
        of("same", [(row["premise"], text) for text in (*row["entailed"], *row["contradicted"])])
        for row in sets.test_premises
    ]
    wins = [(own[:2, None] > own[None, 2:]).mean() for own in statements]
    found["premises, what follows wins"] = float(np.mean(wins))
    found["OCNLI, entailment against contradiction, AUC"] = _entailment(of, data)
    return found


def _parts(sets: Sets) -> list[tuple[str, list[dict[str, Any]]]]:
    """The groups that came with the data, then those that were written here later."""
    given = [row for row in sets.test_written if row["group"] < OWN]
    return [("", given), (", later", [row for row in sets.test_written if row["group"] >= OWN])]


def _entailment(of, data: Path) -> float:
    lines = (data / "ocnli.train.tsv").read_text("utf-8").splitlines()[1:]
    cells = [own for own in (line.split("\t") for line in lines) if len(own) > 2]
    cells = [own for own in cells if own[2] in ("entailment", "contradiction")]
    judged = of("same", [(own[0], own[1]) for own in cells])
    return float(roc_auc_score(np.array([own[2] == "entailment" for own in cells]), judged))
