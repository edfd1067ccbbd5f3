"""What the pair encoder sees, on groups, ratings and sets that it has not learned from."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from gaixie.research.pair_encoder.sets import KINDS, OWN, Sets, human_test, read_entailment
from gaixie.research.ratings.rated import DRAFT, RATINGS
from gaixie.research.ratings.tables import read_json_lines
from gaixie.udfs.meaning.pair_encoder import TASKS, PairEncoder


def evaluate(encoder: PairEncoder, sets: Sets, data: Path) -> dict[str, float]:
    """Shares of comparisons in which a paraphrase beats a wrong one; Spearman with ratings; AUC of
    OCNLI."""

    def judge(task: str, source: str, texts: Sequence[str]) -> np.ndarray:
        return encoder.predict([source] * len(texts), list(texts))[:, TASKS.index(task)]

    won: dict[str, list[np.ndarray]] = defaultdict(list)
    for name, task, source, good, bad in _comparisons(sets):
        wins = judge(task, source, good)[:, None] > judge(task, source, bad)
        won[name].append(wins.ravel())
    found = {name: float(np.mean(np.concatenate(wins))) for name, wins in won.items()}
    return found | _correlations(encoder, sets, data)


def _comparisons(sets: Sets) -> Iterator[tuple[str, str, str, list[str], list[str]]]:
    """Yields (figure, task, source, what should win, what should lose)."""
    for row in sets.test_written:
        (source, _, *good), later = row["texts"], ", later" if row["group"] >= OWN else ""
        for kind in KINDS:
            task, bad = "fluent" if kind == "salad" else "same", sets.broken[row["group"]][kind]
            yield f"{kind}, a paraphrase wins{later}", task, source, good, [bad]
    for row in sets.test_exchanged:
        for good, bad in zip(row["same"], row["roles"], strict=True):
            yield "exchanged participants, a paraphrase wins", "same", row["source"], [good], [bad]
    for row in sets.test_rewritten:
        for kind, bad in zip(row["kinds"], row["wrong"], strict=True):
            yield f"{kind}, a free rewrite wins", "same", row["source"], row["same"], [bad]
    for row in sets.test_premises:
        sides = row["entailed"], row["contradicted"]
        yield "premises, what follows wins", "same", row["premise"], *sides


def _correlations(encoder: PairEncoder, sets: Sets, data: Path) -> dict[str, float]:
    """Spearman with ratings and human scores, and AUC of entailment against contradiction."""
    found: dict[str, float] = {}
    test = sets.rated[sets.rated["part"] == "test"]
    drafts = test["kind"] == DRAFT
    written = test["kind"].str.startswith(("written", "contrast")) & ~drafts
    parts = {"real": ~written & ~drafts, "written": written, "drafts": drafts}
    for part, rows in ((name, test[inside]) for name, inside in parts.items()):
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
