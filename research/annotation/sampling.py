"""Samples pairs to annotate, equally many of each stratum, from a run, a release or a table.

A stratum is an origin and a fifth of the score's range, so rare scores are annotated as often as
frequent ones. Within a stratum, the pairs with the smallest hash of pair_id and seed are taken, no
two from one group or source. So the order of the table does not matter. It is read once, in
batches.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from gaixie.research.ratings.tables import read_table
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import local_copy
from gaixie.udfs.storage.manifest import NAME
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.pair_id import pair_ids

TEXTS, OPTIONAL = ["source", "paraphrase"], ["pair_id", "origin", "group", "method", "spscore"]
SPANS = {k: f" {k / 5:.1f} to {(k + 1) / 5:.1f}" for k in range(5)}
"""Names of the fifths of the score's range."""
SPARE = 4
"""Candidates to keep per stratum for each pair of the sample, because some share a group."""


def sample(uri: str, count: int, checks: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns (the sampled pairs followed by attention pairs, the sample's counts by stratum).

    The pairs have columns pair (a key), kind ("pair", "copy" or "unrelated"), and the table's.
    count: pairs to sample. checks: attention pairs to add; half are copies, half two unrelated
    sentences, made from pairs outside the sample if there are enough. Raises OSError, or ValueError
    with one line.
    """
    candidates, there = _candidates(uri, max(SPARE * (count + checks), 100), seed)
    if candidates.empty:
        raise ValueError(f"{uri}: no pairs, expected at least one")
    candidates["size"] = candidates["stratum"].map(there)
    candidates = candidates.sort_values(["size", "key", "pair_id"]).drop_duplicates("unit")
    candidates = candidates[~candidates["source"].map(normalise).duplicated()]
    turn = candidates.groupby("stratum").cumcount()
    drawn = candidates.assign(turn=turn).sort_values(["turn", "stratum"])
    chosen, rest = drawn[:count], drawn[count : count + checks]
    spare = [*rest[TEXTS].to_numpy(), *chosen[TEXTS].to_numpy()]
    rows = []
    for number in range(checks):
        (source, _), (_, other) = (spare[(number + k) % len(spare)] for k in range(2))
        kind = "unrelated" if number % 2 and len(spare) > 1 else "copy"
        rows.append((f"{kind}-{number + 1}", kind, source, source if kind == "copy" else other))
    pairs = chosen[[*TEXTS, *OPTIONAL]].assign(pair=chosen["pair_id"], kind="pair")
    made = pd.DataFrame(rows, columns=["pair", "kind", *TEXTS], dtype=object)
    counts = pd.DataFrame({"sampled": chosen["stratum"].value_counts(), "pairs": pd.Series(there)})
    pairs = pd.DataFrame([*pairs.to_dict("records"), *made.to_dict("records")])
    return pairs, counts.fillna(0).astype(int).sort_index()


def open_pairs(uri: str) -> ds.Dataset:
    """Opens the pairs of a run or a release, a folder of Parquet, or a file with a table."""
    folder = uri
    if storage.exists(storage.join(uri, NAME)):
        manifest = storage.read_json(storage.join(uri, NAME))
        below = [manifest["build"], "data"] if "build" in manifest else ["scored"]
        folder = storage.join(uri, *(["pairs"] if "method" in manifest else below))
    files = [file.uri for file in storage.list_files(folder)]
    if not files:
        raise FileNotFoundError(f"{uri}: no such file or folder")
    if len(files) == 1 and not files[0].endswith(".parquet"):
        with local_copy(None, files[0]) as (_, path):
            table = read_table(Path(path), TEXTS, optional=tuple(OPTIONAL))
        return ds.dataset(pa.Table.from_pandas(table, preserve_index=False))
    system, path = storage.arrow_filesystem(folder)
    dataset = ds.dataset(path, filesystem=system, format="parquet", partitioning="hive")
    for name in TEXTS:
        if name not in dataset.schema.names:
            there = ", ".join(dataset.schema.names)
            raise ValueError(f"{uri}: no column '{name}', expected it beside: {there}")
    return dataset


def _candidates(uri: str, most: int, seed: int) -> tuple[pd.DataFrame, Counter[str]]:
    """Returns the rows with the smallest keys of each stratum, and how many pairs each has."""
    dataset, there = open_pairs(uri), Counter[str]()
    names = [name for name in (*TEXTS, *OPTIONAL) if name in dataset.schema.names]
    kept: list[pd.DataFrame] = []
    for batch in dataset.to_batches(columns=names):
        rows = _keyed(batch.to_pandas(), seed)
        there.update(rows["stratum"].tolist())
        rows = pd.concat([*kept, rows]).sort_values(["key", "pair_id"])
        kept = [rows.groupby("stratum").head(most)]
    return kept[0] if kept else pd.DataFrame(), there


def _keyed(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Returns rows that have both texts, with their stratum, unit (group or source) and key."""
    rows = rows.reindex(columns=[*TEXTS, *OPTIONAL]).dropna(subset=TEXTS)
    texts = [*TEXTS, *OPTIONAL[:-1]]
    rows[texts] = rows[texts].astype(object)
    rows["spscore"] = pd.to_numeric(rows["spscore"], errors="coerce")
    band = (5 * rows["spscore"]).clip(0, 4).floordiv(1).map(SPANS).fillna("")
    rows["stratum"] = rows["origin"].fillna("unknown").astype(str) + band
    if rows["pair_id"].isna().any():
        columns = (rows["source"], rows["paraphrase"], rows["origin"].fillna(""))
        ids = pair_ids(*(pa.array(column.astype(str), pa.string()) for column in columns))
        rows["pair_id"] = rows["pair_id"].fillna(pd.Series(ids.to_pylist(), rows.index))
    rows["unit"] = rows["group"].fillna(rows["source"])
    hashed = pd.util.hash_array(rows["pair_id"].to_numpy(), hash_key=f"{seed % 10**16:016}")
    return rows.assign(key=hashed)
