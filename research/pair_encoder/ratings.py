"""Reads rated pairs of several rounds, puts them on one scale, and splits them by group.

A round of rating is harsher or kinder than another. Pairs that were rated in both say by how much:
the mean difference of a batch, drawn towards the mean of all batches where it rests on few pairs.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

RATINGS = ("structure", "synonyms", "meaning", "fluency", "overall")
HIGHEST = 5.0
SHRINKAGE = 30
"""Pairs that the mean of all batches counts for beside those of one batch."""
PARTS = ("test", "heads", "heads", *["encoder"] * 7)
"""What each tenth of the groups is for: the test, the heads of tier full, its encoder."""
TRANSLATED = "translated"
SYSTEMS = {"source": "system_source", "paraphrase": "system_paraphrase"}
APART = "written_rewrite"
"""Kinds of pairs that begin so are never for the encoder: it learns from other groups of them."""


def read_ratings(paths: Sequence[Path]) -> pd.DataFrame:
    """Reads files of JSON lines into one table for ``on_one_scale``."""
    tables = [pd.read_json(path, lines=True, dtype={"group": str}) for path in paths]
    return pd.concat(tables, ignore_index=True)


def read_translated(path: Path, translations: Path) -> pd.DataFrame:
    """Reads rated pairs of translations of one sentence, which set, line and systems name.

    path: TSV with the columns set, line, SYSTEMS, rater and RATINGS. translations: Parquet with
    set, line, translations_zh and systems. Raises ValueError that names file, column and row.
    """
    rated = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    for name in ("set", "line", *SYSTEMS.values(), "rater", *RATINGS):
        if name not in rated:
            raise ValueError(f"{path}: no column {name!r}")
    for name in RATINGS:
        numbers = pd.to_numeric(rated[name], errors="coerce")
        wrong = np.flatnonzero(~numbers.between(0, HIGHEST))
        if len(wrong):
            raise ValueError(
                f"{path}: column {name!r}: row {wrong[0] + 1} has {rated[name][wrong[0]]!r}, "
                f"expected a number from 0 to {HIGHEST:g}"
            )
        rated[name] = numbers
    texts = pd.read_parquet(translations, columns=["set", "line", "translations_zh", "systems"])
    texts = texts[texts["set"].isin(rated["set"].unique())].explode(["translations_zh", "systems"])
    names = zip(texts["set"], texts["line"].astype(str), texts["systems"], strict=True)
    found = dict(zip(names, texts["translations_zh"], strict=True))
    for side, system in SYSTEMS.items():
        named = [*zip(rated["set"], rated["line"], rated[system], strict=True)]
        if missing := [name for name in named if name not in found]:
            raise ValueError(f"{translations}: no text of {missing[0]}, which {path} names")
        rated[side] = [found[name] for name in named]
    rated["group"] = rated["set"] + " " + rated["line"]
    return rated.assign(kind=TRANSLATED, origin="parallel", passes=1.0)


def on_one_scale(
    rated: pd.DataFrame, again: Sequence[Path], highest: float = HIGHEST
) -> pd.DataFrame:
    """The ratings of later rounds on the scale of the first; new columns ``component`` and
    ``part``.

    Pairs that share a group or a source have one component, and a component has one part. again:
    JSON lines of pairs of the first round that later raters rated once more (id, rater, RATINGS
    from 0 to HIGHEST). rated: its RATINGS are from 0 to highest.
    """
    if again:
        second = pd.concat([pd.read_json(path, lines=True) for path in again])
        second[list(RATINGS)] *= highest / HIGHEST
        offsets = round_offsets(rated, second)
        own = rated["rater"].isin(offsets.index).to_numpy()
        shifted = rated.loc[own, list(RATINGS)] + offsets.loc[rated.loc[own, "rater"]].to_numpy()
        rated.loc[own, list(RATINGS)] = shifted.clip(0, highest)
    rated["component"] = components(rated["group"], rated["source"])
    rated["part"] = [part_of(name) for name in rated["component"]]
    apart = rated["kind"].str.startswith(APART) & (rated["part"] == "encoder")
    rated.loc[apart, "part"] = "heads"
    return rated


def round_offsets(first: pd.DataFrame, again: pd.DataFrame) -> pd.DataFrame:
    """What to add to a batch's ratings: a row for each rater, a column for each of RATINGS."""
    names = list(RATINGS)
    both = again.merge(first[["id", *names]], on="id", suffixes=("", "_first"))
    difference = both[[f"{name}_first" for name in names]].set_axis(names, axis=1) - both[names]
    by_rater = difference.groupby(both["rater"])
    share = by_rater.count() / (by_rater.count() + SHRINKAGE)
    return share * by_rater.mean() + (1 - share) * difference.mean()


def components(groups: Iterable[str], sources: Iterable[str]) -> list[str]:
    """For each pair the first source of all pairs that its group or source ties it to."""
    texts = pd.Series(list(sources))
    one, other = pd.factorize(pd.Series(list(groups)))[0], pd.factorize(texts)[0]
    size = int(one.max()) + 1
    edges = coo_array((np.ones(len(one)), (one, size + other)), shape=[size + len(texts)] * 2)
    labels = connected_components(edges, directed=False)[1][one]
    return texts.groupby(labels).transform("min").tolist()


def part_of(component: str) -> str:
    """The part that a component's hash gives it to."""
    return PARTS[zlib.crc32(component.encode()) % len(PARTS)]


def read_json_lines(*paths: Path) -> list[dict]:
    """Reads the objects of files of JSON lines."""
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
