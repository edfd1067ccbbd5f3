"""What the pair encoder sees, on groups, ratings and sets that it has not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from gaixie.research.pair_encoder.sets import KINDS, OWN, Sets, human_test, read_entailment
from gaixie.research.ratings.rated import RATINGS
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder


def evaluate(encoder: PairEncoder, sets: Sets, data: Path) -> dict[str, float]:
    """Shares of comparisons in which a paraphrase beats a wrong one; Spearman with ratings; AUC of
    OCNLI."""

    def judge(task: str, source: str, texts: Sequence[str]) -> np.ndarray:
        return encoder.predict([source] * len(texts), list(texts))[:, TASKS.index(task)]

    def wins(task: str, source: str, good: Sequence[str], bad: Sequence[str]) -> np.ndarray:
        return (judge(task, source, good)[:, None] > judge(task, source, bad)).ravel()

    found: dict[str, float] = {}
    for suffix, groups in (
        ("", [row for row in sets.test_written if row["group"] < OWN]),
        (", later", [row for row in sets.test_written if row["group"] >= OWN]),
    ):
        for kind in KINDS:
            task = "fluent" if kind == "salad" else "same"
            won = [
                wins(task, row["texts"][0], row["texts"][2:5], [sets.broken[row["group"]][kind]])
                for row in groups
            ]
            found[f"{kind}, a paraphrase wins{suffix}"] = float(np.mean(won))
    won = [
        judge("same", row["source"], row["same"]) > judge("same", row["source"], row["roles"])
        for row in sets.test_exchanged
    ]
    found["exchanged participants, a paraphrase wins"] = float(np.mean(np.concatenate(won)))
    for kind in KINDS[:-1]:
        won = []
        for row in sets.test_rewritten:
            kinds = zip(row["wrong"], row["kinds"], strict=True)
            if wrong := [text for text, name in kinds if name == kind]:
                won.append(wins("same", row["source"], row["same"], wrong))
        found[f"{kind}, a free rewrite wins"] = float(np.mean(np.concatenate(won)))
    won = [
        wins("same", row["premise"], row["entailed"], row["contradicted"])
        for row in sets.test_premises
    ]
    found["premises, what follows wins"] = float(np.mean(np.concatenate(won)))
    return found | _correlations(encoder, sets, data)


def _correlations(encoder: PairEncoder, sets: Sets, data: Path) -> dict[str, float]:
    """Spearman with ratings and human scores, and AUC of entailment against contradiction."""
    found: dict[str, float] = {}
    test = sets.rated[sets.rated["part"] == "test"]
    written = test["kind"].str.startswith(("written", "contrast"))
    for part, rows in (("real", test[~written]), ("written", test[written])):
        predicted = encoder.predict(rows["source"].tolist(), rows["paraphrase"].tolist())
        for k, name in enumerate(RATINGS):
            found[f"{name}, {part}, Spearman"] = float(spearmanr(predicted[:, k], rows[name])[0])
    human = read_json_lines(data / "bq_para.dev.jsonl")
    human = [row for row in human if human_test(row["source"])]
    sides = [row["source"] for row in human], [row["candidate"] for row in human]
    scores = encoder.predict(*sides)[:, TASKS.index("human")]
    found["BQ-Para, Spearman"] = float(spearmanr(scores, [row["human"] for row in human])[0])
    table = read_entailment(data / "ocnli.train.tsv")
    same = encoder.predict(table["premise"].tolist(), table["hypothesis"].tolist())
    auc = roc_auc_score(table["label"] == "entailment", same[:, TASKS.index("same")])
    return found | {"OCNLI, entailment against contradiction, AUC": float(auc)}
