"""Samples pairs to rate, equally many of each stratum, from a run, a release or a table.

A stratum is an origin and a fifth of the score's range, so rare scores are rated as often as
frequent ones. Within a stratum, the pairs with the smallest hash of their texts and the seed are
taken, no two from one group or source, so the order of the table does not matter.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from gaixie.research.ratings.tables import read_table
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import MANIFEST

TEXTS = ["source", "paraphrase"]
OPTIONAL = ["origin", "group", "method", "spscore"]
SPARE = 4
"""Candidates of a stratum for each pair of the sample, because some share a group."""


def sample(uri: str, count: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the sampled pairs (TEXTS and OPTIONAL), and the counts of each stratum.

    Raises OSError, or ValueError with one line.
    """
    kept, there = pd.DataFrame(), Counter[str]()
    for batch in open_pairs(uri).to_batches(batch_size=100_000):
        rows = _keyed(batch.to_pandas(), seed)
        there.update(rows["stratum"].tolist())
        rows = pd.concat([kept, rows]).sort_values(["key", *TEXTS])
        kept = rows.groupby("stratum").head(max(SPARE * count, 100))
    if kept.empty:
        raise ValueError(f"{uri}: no pairs, expected at least one")
    kept["size"] = kept["stratum"].map(there)
    kept = kept.sort_values(["size", "key", *TEXTS]).drop_duplicates("group")
    kept = kept.drop_duplicates("source")
    turn = kept.groupby("stratum").cumcount()
    chosen = kept.assign(turn=turn).sort_values(["turn", "stratum"])[:count]
    sampled = chosen["stratum"].value_counts()
    counts = pd.DataFrame({"sampled": sampled, "there are": pd.Series(there)})
    return chosen[[*TEXTS, *OPTIONAL]], counts.fillna(0).astype(int).sort_index()


def open_pairs(uri: str) -> ds.Dataset:
    """Opens the pairs of a run or a release, a folder of Parquet, or a file with a table."""
    folder = uri
    if storage.exists(storage.join(uri, MANIFEST)):
        manifest = storage.read_json(storage.join(uri, MANIFEST))
        below = [manifest["build"], "data"] if "build" in manifest else ["scored"]
        folder = storage.join(uri, *(["pairs"] if "method" in manifest else below))
    elif "://" not in uri and Path(uri).suffix not in ("", ".parquet"):
        table = read_table(Path(uri), TEXTS, optional=tuple(OPTIONAL))
        return ds.dataset(pa.Table.from_pandas(table, preserve_index=False))
    system, path = storage.arrow_filesystem(folder)
    dataset = ds.dataset(path, filesystem=system, format="parquet", partitioning="hive")
    for name in TEXTS:
        if name not in dataset.schema.names:
            there = ", ".join(dataset.schema.names)
            raise ValueError(f"{uri}: no column {name!r}, expected it beside: {there}")
    return dataset


def _keyed(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Returns the rows that have both texts, with their stratum, group (or source) and key."""
    rows = rows.reindex(columns=[*TEXTS, *OPTIONAL]).dropna(subset=TEXTS)
    rows["spscore"] = pd.to_numeric(rows["spscore"], errors="coerce")
    fifth = (5 * rows["spscore"]).clip(0, 4).floordiv(1)
    span = fifth.map({k: f" {k / 5:.1f} to {(k + 1) / 5:.1f}" for k in range(5)}).fillna("")
    rows["stratum"] = rows["origin"].astype(object).fillna("unknown").astype(str) + span
    rows["group"] = rows["group"].astype(object).fillna(rows["source"])
    texts = (rows["source"] + "\x1f" + rows["paraphrase"]).to_numpy(object)
    return rows.assign(key=pd.util.hash_array(texts, hash_key=f"{seed % 10**16:016}"))
