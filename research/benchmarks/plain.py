"""The baseline of the benchmarks: the job's work in readable Python, with jieba and lightgbm.

It computes every feature by its definition (tests/support/plain_*.py), cuts words with jieba, and
predicts with LightGBM's own Boosters, in one process per core. It reads and writes Parquet as the
job does.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.udfs.features import FEATURES
from gaixie.udfs.meaning.extract import CORE_FEATURES, Resources
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.spscore.penalties import PENALISED, penalty
from gaixie.udfs.spscore.stages import stage
from gaixie.udfs.text.normalise import normalise

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/support"))
import plain_facts
import plain_features
import plain_language_model
import plain_surface
import plain_vectors

CUTS = (0.45, 0.55, 0.65)


def score_rows(rows: list[dict], cutter, model: SPScore, boosters: dict) -> list[dict]:
    """Validates and scores pairs one by one; drops those the job would quarantine."""
    kept, features = [], []
    for row in rows:
        a, b = normalise(row["source"] or ""), normalise(row["paraphrase"] or "")
        if min(len(a), len(b)) < 15 or max(len(a), len(b)) > 1000 or a == b:
            continue
        if not all(any("\u4e00" <= character <= "\u9fff" for character in text) for text in (a, b)):
            continue
        words = cutter(a), cutter(b)
        found = plain_features.reference(a, b, *words)
        if model.tier == "core":
            families = (
                plain_surface.reference(a, b, *words),
                plain_facts.reference(a, b, *words),
                plain_vectors.reference(*words, Resources.load().vectors),
                plain_language_model.reference(a, b, Resources.load().language_model),
            )
            values = [value for family in families for value in family.values()]
            found |= dict(zip(CORE_FEATURES[len(FEATURES) :], values, strict=True))
        features.append([found[name] for name in model.columns])
        identity = "\x1f".join([row["source"], row["paraphrase"], "parallel"]).encode()
        own = {name: found[name] for name in FEATURES}
        kept.append({"pair_id": hashlib.md5(identity).hexdigest(), **row, **own})
    if not kept:
        return kept
    known = dict(zip(model.columns, np.array(features, float).T, strict=True))
    for name, head in model.heads.items():
        values = np.column_stack([known[column] for column in head.columns])
        predicted = [booster.predict(values, num_threads=1) for booster in boosters[name]]
        known[name] = np.clip(np.mean(predicted, axis=0), 0, 1)
        if name in PENALISED:
            known[name] *= penalty(np.float32(features), model.columns, model.penalties)
    for place, row in enumerate(kept):
        row |= {name: float(known[name][place]) for name in OUTPUTS}
        row["stage"] = int(stage(np.float32(row["spscore"]), CUTS))
    return kept


def _work(job: tuple[list[dict], str, str | None]) -> float:
    import jieba
    import lightgbm

    rows, path, model = job
    jieba.setLogLevel(60)
    jieba.initialize()
    metric = SPScore.load(model)
    boosters = {
        name: [lightgbm.Booster(model_str=text) for text in head.model.texts]
        for name, head in metric.heads.items()
    }
    score_rows(rows[:20], jieba.lcut, metric, boosters)
    started = time.perf_counter()
    kept = score_rows(rows, jieba.lcut, metric, boosters)
    seen: dict[str, dict] = {row["pair_id"]: row for row in kept}
    pq.write_table(pa.Table.from_pylist(list(seen.values())), path)
    return time.perf_counter() - started


def pairs_per_s(pairs: Path, output: Path, rows: int, model: str | None = None) -> float:
    """Returns pairs per second with one process per core, without the start of the processes."""
    table = pq.read_table(sorted(pairs.glob("*.parquet"))[0]).slice(0, rows).to_pylist()
    cores = len(os.sched_getaffinity(0))
    output.mkdir(parents=True, exist_ok=True)
    jobs = [(table[k::cores], str(output / f"plain-{k}.parquet"), model) for k in range(cores)]
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        seconds = pool.map(_work, jobs, chunksize=1)
    return len(table) / max(seconds)
