"""Pairs to annotate: of a published run, a release or any table of pairs, the same number of each stratum.

A stratum is an origin and a fifth of the score's range, so that rare scores are annotated as often as frequent
ones. Within a stratum the pairs with the least hash of pair_id and seed are taken, each from another group (or
source): the same ones however the table is ordered. The table is read once, in batches.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from gaixie.research.annotation.plan import Kind, Pair
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.manifest import NAME, ReleaseManifest, read_manifest
from gaixie.udfs.storage.pair_tables import read_table
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.pair_id import pair_ids
from gaixie.udfs.text.splitmix import GOLDEN, mix

OPTIONAL = ("pair_id", "origin", "group", "method", "spscore")
BANDS = 5
"""Parts of the score's range."""
SPARE = 4
"""Candidates that are kept of a stratum for each pair of the sample: some share a group."""


def sample(
    uri: str, count: int, checks: int, seed: int
) -> tuple[dict[str, Pair], dict[str, Kind], pd.DataFrame]:
    """(pairs and attention pairs by key, kinds of the latter, the sample's counts by stratum).

    checks: attention pairs, half of them copies; they are made of pairs that are not in the sample, as far
    as there are others. Raises OSError, or ValueError in one line.
    """
    candidates, there = _candidates(uri, count + checks, seed)
    if not len(candidates):
        raise ValueError(f"{uri}: no pairs, expected at least one")
    strata = [table for _, table in candidates.groupby("stratum", sort=True)]
    chosen, rest = _take(strata, count, checks)
    pairs = {row["pair_id"]: _pair(row) for row in chosen}
    kinds: dict[str, Kind] = {}
    spare = [*rest, *chosen]
    for number in range(checks):
        row, other = spare[number % len(spare)], spare[(number + 1) % len(spare)]
        kind: Kind = "unrelated" if number % 2 and other["unit"] != row["unit"] else "copy"
        key = f"{kind}-{number + 1}"
        kinds[key] = kind
        text = row["source"] if kind == "copy" else other["paraphrase"]
        pairs[key] = Pair(source=row["source"], paraphrase=text)
    sampled = pd.Series(Counter(row["stratum"] for row in chosen), dtype=int)
    counts = pd.DataFrame({"sampled": sampled, "pairs": there})
    return pairs, kinds, counts.fillna(0).astype(int)


def open_pairs(uri: str) -> ds.Dataset:
    """A run's scored pairs, those of a release, a folder of Parquet, or a table of a file."""
    folder = uri
    if storage.exists(storage.join(uri, NAME)):
        values = storage.read_json(storage.join(uri, NAME))
        if "method" in values:  # of build_pairs
            folder = storage.join(uri, "pairs")
        else:
            manifest = read_manifest(uri)
            below = (
                [manifest.build, "data"] if isinstance(manifest, ReleaseManifest) else ["scored"]
            )
            folder = storage.join(uri, *below)
    files = [file.uri for file in storage.list_files(folder)]
    if not files:
        raise FileNotFoundError(f"{uri}: no such file or folder")
    if len(files) == 1 and not files[0].endswith(".parquet"):
        with local_copy(None, files[0]) as (_, path):
            table = read_table(Path(path), ["source", "paraphrase"], optional=OPTIONAL)
        return ds.dataset(pa.Table.from_pandas(table, preserve_index=False))
    if not any(file.endswith(".parquet") for file in files):
        raise ValueError(
            f"{uri}: no Parquet files; give one file of CSV, TSV or JSON lines by its name"
        )
    system, path = storage.arrow_filesystem(folder)
    dataset = ds.dataset(
        path,
        filesystem=system,
        format="parquet",
        partitioning="hive",
    )
    for name in ("source", "paraphrase"):
        if name not in dataset.schema.names:
            there = ", ".join(dataset.schema.names)
            raise ValueError(f"{uri}: no column '{name}', expected it beside: {there}")
    return dataset


def _candidates(uri: str, count: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """The least keys of each stratum, and the pairs of each."""
    most = max(SPARE * count, 100)
    kept: dict[str, pd.DataFrame] = {}
    there: Counter[str] = Counter()
    dataset = open_pairs(uri)
    names = ["source", "paraphrase", *(n for n in OPTIONAL if n in dataset.schema.names)]
    for batch in dataset.to_batches(columns=names):
        strata, of_row, keys = _keyed(batch, seed)
        for number, stratum in enumerate(strata):
            places = np.flatnonzero(of_row == number)
            there[stratum] += len(places)
            known = kept.get(stratum)
            if known is not None and len(known) == most:
                places = places[keys[places] <= known["key"].max()]
            places = places[np.argsort(keys[places], kind="stable")[:most]]
            if len(places):
                rows = _rows(batch.take(pa.array(places)), stratum, keys[places])
                rows = rows if known is None else pd.concat([known, rows])
                kept[stratum] = rows.sort_values(["key", "pair_id"]).head(most)
    table = pd.concat(kept.values()) if kept else pd.DataFrame()
    return table, pd.Series(+there, dtype=int)


def _keyed(batch: pa.RecordBatch, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """(strata, number of each row's stratum, each row's key); -1 for a row without a text."""
    origins = _column(batch, "origin").fill_null("unknown").dictionary_encode()
    scores = np.full(batch.num_rows, np.nan)
    if "spscore" in batch.schema.names:
        scores = pd.to_numeric(batch["spscore"].to_pandas(), errors="coerce").to_numpy(float)
    band = np.where(np.isnan(scores), BANDS, np.clip(scores * BANDS, 0, BANDS - 1)).astype(int)
    spans = [f" {k / BANDS:.1f} to {(k + 1) / BANDS:.1f}" for k in range(BANDS)] + [""]
    strata = [f"{origin}{span}" for origin in origins.dictionary.to_pylist() for span in spans]
    of_row = origins.indices.to_numpy() * len(spans) + band
    texts = [batch[name].is_valid().to_numpy(False) for name in ("source", "paraphrase")]
    return strata, np.where(texts[0] & texts[1], of_row, -1), hashed(_ids(batch), seed)


def _rows(batch: pa.RecordBatch, stratum: str, keys: np.ndarray) -> pd.DataFrame:
    names = ("source", "paraphrase", "origin", "group", "method")
    rows = pd.DataFrame({name: _column(batch, name).to_pandas() for name in names})
    rows["score"] = (
        pd.to_numeric(batch["spscore"].to_pandas(), errors="coerce")
        if "spscore" in batch.schema.names
        else np.nan
    )
    rows["pair_id"], rows["key"], rows["stratum"] = _ids(batch).to_pandas(), keys, stratum
    rows["unit"] = rows["group"].fillna(rows["source"])
    return rows


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column as strings; null where there is none."""
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string())
    return batch[name].cast(pa.string())


def _ids(batch: pa.RecordBatch) -> pa.Array:
    if "pair_id" in batch.schema.names:
        return _column(batch, "pair_id")
    source, paraphrase, origin = (_column(batch, n) for n in ("source", "paraphrase", "origin"))
    return pair_ids(source, paraphrase, origin.fill_null(""))


def hashed(ids: pa.Array, seed: int) -> np.ndarray:
    """A hash of each text and the seed: uint64, evenly spread."""
    codes = pd.util.hash_array(ids.to_numpy(zero_copy_only=False), categorize=False)
    return mix(codes ^ np.uint64(seed * int(GOLDEN) % 2**64))


def _take(
    strata: list[pd.DataFrame], count: int, checks: int
) -> tuple[list[dict[Any, Any]], list[dict[Any, Any]]]:
    """Pairs of the strata in turn, the least key first, no group and no sentence twice: the sample, and
    what attention pairs are made of."""
    chosen: list[dict[Any, Any]] = []
    seen: set[str] = set()
    waiting = [iter(table.sort_values(["key", "pair_id"]).to_dict("records")) for table in strata]
    while waiting and len(chosen) < count + checks:
        for rows in [*waiting]:
            for row in rows:
                if seen.isdisjoint(units := {row["unit"], normalise(row["source"])}):
                    seen |= units
                    chosen.append(row)
                    break
            else:
                waiting.remove(rows)
    return chosen[:count], chosen[count:]


def _pair(row: dict[Any, Any]) -> Pair:
    values = {
        name: None if pd.isna(row[name]) else row[name]
        for name in ("pair_id", "source", "paraphrase", "origin", "group", "method")
    }
    return Pair.model_validate(
        values | {"spscore": None if np.isnan(row["score"]) else row["score"]}
    )
