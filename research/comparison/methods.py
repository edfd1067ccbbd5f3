"""Ways to make pairs compared: on the same sources, by what published runs say of their pairs.

A unit is a source sentence (or a group). Rates and means are over the pairs of all units; intervals
draw units with replacement, the same ones for all methods, so that differences between methods are
paired.

Source of the intervals: gaixie.udfs.metrics.bootstrap; Koehn 2004 (paired bootstrap).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from gaixie.udfs.metrics.bootstrap import Estimate, estimate_of
from gaixie.udfs.metrics.metric import ratio
from gaixie.udfs.metrics.references import Resamples
from gaixie.udfs.spscore import OUTPUTS
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import NAME, PairsManifest, check_run_id, read_run
from gaixie.udfs.text.splitmix import GOLDEN, mix

By = Literal["source", "group", "all"]
KEPT = (1, 2, 3)
"""Stages from which on a keep rate is given."""
UNSCORED = -1
"""Stage of a pair in quarantine."""
READ = ("source", "paraphrase", "group", "method", "model", *OUTPUTS)


@dataclass
class Method:
    """One way to make pairs, on the units that were chosen."""

    name: str
    runs: list[str]
    units: int
    """That it has pairs of, of those that were chosen."""
    pairs: int
    kept: dict[int, Estimate]
    """Share of the pairs that reach a stage, of those in quarantine too."""
    quarantined: Estimate
    means: dict[str, Estimate]
    """Of the outputs, over scored pairs."""
    reasons: dict[str, int]
    """Pairs in quarantine by reason."""


@dataclass
class Comparison:
    by: By
    units: int
    """That all methods have (by all: that any has); and of which a sample was drawn."""
    drawn: int
    methods: list[Method]
    differences: list[dict[str, Any]]
    """first and second method, and Estimates of the difference: spscore, its mean, and kept, the
    share that reaches stage 1."""
    examples: list[pd.DataFrame]
    """Pairs of one unit each: a row for each method, its best pair."""
    builds: dict[str, PairsManifest]
    """How the pairs were made, by folder, as far as the folders are still there."""
    signature: str


def compare(
    root: str, run_ids: Sequence[str], by: By, most: int, examples: int, samples: int, seed: int
) -> Comparison:
    """most: units to look at. Raises OSError, or ValueError in one line."""
    folders = {name: storage.join(root, "runs", check_run_id(name)) for name in run_ids}
    runs = {name: read_run(folder) for name, folder in folders.items()}
    first = runs[run_ids[0]]
    for run_id, manifest in runs.items():
        if manifest.signature != first.signature:
            raise ValueError(
                f"runs '{run_ids[0]}' and '{run_id}' have different metric signatures, so their"
                f" scores do not compare: {first.signature} and {manifest.signature}"
            )
    met: dict[str, list[np.ndarray]] = defaultdict(list)
    for run_id in run_ids:
        for batch in _batches(root, run_id, by, texts=False):
            for name, rows in batch.groupby("name"):
                met[str(name)].append(rows["unit"].unique())
    units = {name: np.unique(np.concatenate(parts)) for name, parts in met.items()}
    if len(units) < 2:
        there = ", ".join(units) or "none"
        raise ValueError(f"{root}: one method in these runs ({there}), expected two or more")
    common = reduce(np.union1d if by == "all" else np.intersect1d, units.values())
    if not len(common):
        raise ValueError(
            f"{root}: no {by} that all methods have ({', '.join(sorted(units))}); "
            "--by all compares each on its own, --by group where groups are common"
        )
    chosen = common[np.argsort(_mix(common, seed))[:most]]
    parts = [
        batch[np.isin(batch["unit"].to_numpy(), chosen)]
        for run_id in run_ids
        for batch in _batches(root, run_id, by, texts=True)
    ]
    pairs, chosen = pd.concat(parts, ignore_index=True), np.sort(chosen)
    drawn = Resamples(range(len(chosen)), samples, seed)
    tables = {str(name): rows for name, rows in pairs.groupby("name")}
    totals = {name: drawn.sums(_sums(rows, chosen)) for name, rows in tables.items()}
    methods = [_method(name, rows, totals[name]) for name, rows in tables.items()]
    methods.sort(key=lambda method: -method.means["spscore"].score)
    differences = [
        {
            "first": a,
            "second": b,
            "spscore": estimate_of(_mean(totals[a], "spscore") - _mean(totals[b], "spscore")),
            "kept": estimate_of(_rate(totals[a], 1) - _rate(totals[b], 1)),
        }
        for a, b in combinations([method.name for method in methods], 2)
    ]
    shown = [] if by == "all" else _examples(pairs, examples, seed)
    builds = _builds(run.settings.get("inputs", []) for run in runs.values())
    counts = len(common), len(chosen)
    return Comparison(by, *counts, methods, differences, shown, builds, first.signature)


def _batches(root: str, run_id: str, by: By, texts: bool) -> Iterator[pd.DataFrame]:
    """Rows of a run's tables: name of the method, unit, stage, reason; with texts all of READ."""
    for table in ("scored", "quarantine"):
        folder = storage.join(root, "runs", run_id, table)
        if not storage.exists(folder):
            continue
        system, path = storage.arrow_filesystem(folder)
        keys = pa.schema([("origin", pa.string()), ("stage", pa.int32()), ("reason", pa.string())])
        partitions = ds.partitioning(keys, flavor="hive")
        dataset = ds.dataset(path, filesystem=system, format="parquet", partitioning=partitions)
        there = dataset.schema.names
        if by == "group" and "group" not in there:
            raise ValueError(f"{folder}: no column 'group', which --by group needs")
        unit = "group" if by == "group" else "source"
        wanted = READ if texts else (unit, "method", "model")
        names = [name for name in (*wanted, "stage", "reason") if name in there]
        for batch in dataset.to_batches(columns=names):
            rows = batch.to_pandas()
            rows = rows[rows[unit].notna()]
            if rows.empty:
                continue
            rows["run"] = run_id
            rows["unit"] = pd.util.hash_array(rows[unit].to_numpy(object), categorize=False)
            rows["name"] = _names(rows, run_id)
            if table == "quarantine":
                rows["stage"] = UNSCORED
            yield rows


def _names(rows: pd.DataFrame, run_id: str) -> pd.Series:
    """Method and model of each row; the run where the pairs do not say how they were made."""
    if "method" not in rows:
        return pd.Series(run_id, index=rows.index)
    names = rows["method"].fillna(run_id).astype(str)
    if "model" in rows:
        model = rows["model"].fillna("").astype(str)
        names = names.where(model == "", names + " " + model)
    return names


def _mix(units: np.ndarray, seed: int) -> np.ndarray:
    """An order of units that the seed decides."""
    return mix(units ^ np.uint64(seed * int(GOLDEN) % 2**64))


_COUNTS = ("pairs", "quarantined", *KEPT)


def _sums(rows: pd.DataFrame, chosen: np.ndarray) -> np.ndarray:
    """What is added up of each unit: shape (units, counts and outputs)."""
    stage = rows["stage"].to_numpy()
    scored = stage != UNSCORED
    values = [np.ones(len(rows)), ~scored, *(stage >= least for least in KEPT)]
    values += [np.where(scored, rows[name].astype(float), 0.0) for name in OUTPUTS]
    places = np.searchsorted(chosen, rows["unit"].to_numpy())
    return np.stack([np.bincount(places, v, minlength=len(chosen)) for v in values], axis=1)


def _rate(totals: np.ndarray, what: str | int) -> np.ndarray:
    return ratio(totals[:, _COUNTS.index(what)], totals[:, 0])


def _mean(totals: np.ndarray, output: str) -> np.ndarray:
    column = totals[:, len(_COUNTS) + OUTPUTS.index(output)]
    return ratio(column, totals[:, 0] - totals[:, 1])


def _method(name: str, rows: pd.DataFrame, totals: np.ndarray) -> Method:
    reasons: list[str] = rows["reason"].dropna().tolist() if "reason" in rows else []
    return Method(
        name,
        sorted(set(rows["run"])),
        rows["unit"].nunique(),
        len(rows),
        {least: estimate_of(_rate(totals, least)) for least in KEPT},
        estimate_of(_rate(totals, "quarantined")),
        {output: estimate_of(_mean(totals, output)) for output in OUTPUTS},
        dict(Counter(reasons)),
    )


def _examples(pairs: pd.DataFrame, count: int, seed: int) -> list[pd.DataFrame]:
    """The best pair of each method for some units of which all have a scored one."""
    scored = pairs[pairs["stage"] != UNSCORED]
    best = scored.sort_values(["spscore", "paraphrase"]).groupby(["unit", "name"]).tail(1)
    complete = best.groupby("unit")["name"].nunique()
    units = complete[complete == pairs["name"].nunique()].index.to_numpy(np.uint64)
    chosen = units[np.argsort(_mix(units, seed + 1))[:count]]
    return [best[best["unit"] == unit].sort_values("name") for unit in chosen]


def _builds(inputs: Any) -> dict[str, PairsManifest]:
    """Manifests of the folders of build_pairs that runs read, by folder."""
    found = {}
    for given in (given for run in inputs for given in run):
        folder = given["path"].rstrip("/").removesuffix("/pairs")
        with suppress(OSError, ValueError):  # no folder of build_pairs, or gone
            built = storage.read_json(storage.join(folder, NAME))
            found[folder] = PairsManifest.model_validate(built)
    return found
