"""What the reader sees, on groups, ratings and sets that it has not learned from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from gaixie.research.reader.examples import Sets
from gaixie.udfs.paraphrase.reader import Reader

KINDS = ("negation", "roles", "fact", "scope", "salad")


def evaluate(reader: Reader, sets: Sets, data: Path) -> dict[str, float]:
    """How often a paraphrase (S2 to S4) beats its counterpart; Spearman with ratings of real pairs; AUC."""
    found: dict[str, float] = {}
    groups = sets.test_written
    for kind in KINDS:
        good = [(own["texts"][0], own["texts"][k]) for own in groups for k in (2, 3, 4)]
        bad = [(own["texts"][0], sets.broken[own["group"]][kind]) for own in groups]
        reading = reader.read([*good, *bad])
        judged = reading.fluent if kind == "salad" else reading.same
        better = judged[: len(good)].reshape(-1, 3) > judged[len(good) :, None]
        found[f"{kind}, a paraphrase wins"] = float(better.mean())
    rows = [own for own in sets.test_rated if not own["kind"].startswith(("written", "contrast"))]
    reading = reader.read([(own["source"], own["paraphrase"]) for own in rows])
    for name, judged in (("meaning", reading.same), ("fluency", reading.fluent)):
        found[f"{name}, Spearman"] = float(spearmanr(judged, [own[name] for own in rows])[0])
    good_ones = [min(own["meaning"], own["fluency"]) >= 4 for own in rows]
    found["good, AUC"] = float(roc_auc_score(good_ones, reading.good))
    found["OCNLI, entailment against contradiction, AUC"] = _entailment(reader, data)
    return found


def _entailment(reader: Reader, data: Path) -> float:
    lines = (data / "ocnli.train.tsv").read_text("utf-8").splitlines()[1:]
    cells = [own for own in (line.split("\t") for line in lines) if len(own) > 2]
    cells = [own for own in cells if own[2] in ("entailment", "contradiction")]
    reading = reader.read([(own[0], own[1]) for own in cells])
    return float(roc_auc_score(np.array([own[2] == "entailment" for own in cells]), reading.same))
