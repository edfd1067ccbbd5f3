"""Reads rated pairs of several rounds, puts them on one scale, and splits them by group.

This is the one place that reads them: the fit of SPScore-zh and the pair encoder get the same rows,
in the same parts. conf/spscore.yaml lists the tables.

A round of rating is harsher or kinder than another. Pairs that were rated in both say by how much:
the mean difference of a batch, drawn towards the mean of all batches where it rests on few pairs.
"""

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gaixie.research.ratings.tables import numbers_of, read_table, strings_of
from gaixie.udfs.storage.settings import Strict

ROOT = Path(__file__).parents[2]
RATINGS = ("structure", "synonyms", "meaning", "fluency", "overall")
HIGHEST = 5.0
"""The highest rating; the lowest is 0."""
GOOD = 4.0
"""The least rating of meaning and of fluency of a paraphrase that a reader accepts."""
SHRINKAGE = 30
"""Pairs that the mean of all batches counts for beside those of one batch."""
PARTS = ("test", "heads", "heads", *["encoder"] * 7)
"""What each tenth of the groups is for: the test, the heads of tier full, its encoder."""
TRANSLATED = "translated"
"""The kind of pairs whose sentences are read from a table of translations."""
DRAFT = "written_draft"
"""The kind of pairs whose paraphrase a language model drafted (training/draw_drafts.py)."""
APART = "written_rewrite"
"""Kinds of pairs that begin so are never for the encoder: it learns from other groups of them."""
OPTIONAL = {"group": None, "kind": "rated", "origin": "human", "passes": 1.0, "id": None}
OPTIONAL |= {"corrected": None}
"""Columns that a table may lack, and what stands in their place (group: the source). corrected:
what a reader made of a bad paraphrase, with as few changes as it took."""


class RatedTable(Strict):
    """A table of rated pairs. ``path``: in the folder of the data, or else in the repository."""

    path: str
    weight: float = Field(default=1.0, gt=0)
    """Of a pair, against one of another table."""
    translations: str | None = None
    """A table of the sentences, if ``path`` has only their set, line and systems."""


class Rated(Strict):
    """Tables of pairs with a rating for each of RATINGS.

    Pairs of one ``group``, by default the source, fall on one side of every split. The column
    ``rater`` names a batch of a later round, which ``again`` puts on the scale of the first. Where
    a column ``coarse`` is true or 1, ratings are labels, 0 or 1.
    """

    name: str
    tables: list[RatedTable] = Field(min_length=1)
    again: list[str] = Field(default=[])
    """JSON lines of pairs of the first table that later raters rated once more (id, rater,
    ratings)."""
    licence: str = "not stated"
    raters: str = "not stated"
    score_column: str | None = None
    """One expert score instead of the five ratings (CSPC, section 3.1); every head learns it."""
    written: str | None = None
    """Kinds that begin so are reported apart: pairs written to vary."""
    written_share: float = Field(default=0.5, gt=0, lt=1)
    drafts_share: float = Field(default=0.2, gt=0)
    """Weight of the drafts of a language model, against that of all other pairs together."""
    single_pass_weight: float = Field(default=1.0, gt=0)


def find(name: str, folder: Path) -> Path:
    """Returns the path of a set: in the folder of the data or, if it lies there, the repository."""
    return ROOT / name if (ROOT / name).exists() else folder / name


def read_rated(settings: Rated, folder: Path) -> pd.DataFrame:
    """Reads all tables: source, paraphrase, group, kind, origin, passes, id, rater, weight,
    RATINGS in [0, 1] on the scale of the first round, component and part.

    Raises FileNotFoundError, or ValueError that names file, column and row at fault.
    """
    tables = [_read(table, settings, folder) for table in settings.tables]
    again = [find(name, folder) for name in settings.again]
    return on_one_scale(pd.concat(tables, ignore_index=True), again)


def _read(given: RatedTable, settings: Rated, folder: Path) -> pd.DataFrame:
    path = find(given.path, folder)
    ratings = {name: settings.score_column or name for name in RATINGS}
    texts = ["set", "line", *SYSTEMS.values()] if given.translations else ["source", "paraphrase"]
    table = read_table(
        path, [*texts, *dict.fromkeys(ratings.values())], optional=(*OPTIONAL, "rater", "coarse")
    )
    if given.translations:
        table = _translated(table, path, find(given.translations, folder))
    sides = {name: strings_of(table[name], f"{path}: column {name!r}") for name in SYSTEMS}
    rated = pd.DataFrame(sides)
    coarse = table.get("coarse", rated["source"]).astype(str).str.lower()
    highest = np.where(coarse.isin(("1", "1.0", "true")), 1.0, HIGHEST)
    expected = f"a number from 0 to {np.max(highest, initial=1):g}"
    if np.ptp(highest):
        expected += ", at most 1 where it is coarse"

    def on_scale(numbers: np.ndarray) -> np.ndarray:
        return (numbers >= 0) & (numbers <= highest)

    for name, column in ratings.items():
        where = f"{path}: column {column!r}"
        rated[name] = numbers_of(table[column], where, expected, on_scale) / highest
    for name, default in OPTIONAL.items():
        rated[name] = table.get(name, default)
    rated["group"] = table.get("group", rated["source"]).astype(str)
    rated["passes"] = rated["passes"].astype(float)
    return rated.assign(rater=table.get("rater", ""), weight=given.weight)


SYSTEMS = {"source": "system_source", "paraphrase": "system_paraphrase"}
"""The systems that translated both sentences of a rated pair of translations."""


def _translated(rated: pd.DataFrame, path: Path, translations: Path) -> pd.DataFrame:
    """Adds the sentences of rated pairs of translations of one sentence.

    translations: Parquet with set, line, translations_zh and systems, lists of equal length.
    """
    texts = pd.read_parquet(translations, columns=["set", "line", "translations_zh", "systems"])
    texts = texts[texts["set"].isin(rated["set"].unique())].explode(["translations_zh", "systems"])
    names = zip(texts["set"], texts["line"].astype(str), texts["systems"], strict=True)
    found = dict(zip(names, texts["translations_zh"], strict=True))
    rated = rated.copy()
    for side, system in SYSTEMS.items():
        named = [*zip(rated["set"], rated["line"], rated[system], strict=True)]
        if missing := [name for name in named if name not in found]:
            raise ValueError(f"{translations}: no text of {missing[0]}, which {path} names")
        rated[side] = [found[name] for name in named]
    rated["group"] = rated["set"] + " " + rated["line"]
    return rated.assign(kind=TRANSLATED, origin="parallel", passes=1.0)


def on_one_scale(rated: pd.DataFrame, again: Sequence[Path]) -> pd.DataFrame:
    """Puts later rounds on the scale of the first; adds the columns ``component`` and ``part``.

    Pairs that share a group or a source have one component, and a component has one part. again:
    as in Rated, with RATINGS from 0 to HIGHEST. rated: with RATINGS in [0, 1].
    """
    if again:
        second = pd.concat([pd.read_json(path, lines=True) for path in again])
        second[list(RATINGS)] *= 1 / HIGHEST
        offsets = round_offsets(rated, second)
        later = rated["rater"].isin(offsets.index).to_numpy()
        moved = rated.loc[later, list(RATINGS)]
        moved = moved + offsets.loc[rated.loc[later, "rater"]].to_numpy()
        rated.loc[later, list(RATINGS)] = moved.clip(0, 1)
    rated["component"] = components(rated["group"], rated["source"])
    rated["part"] = [part_of(name) for name in rated["component"]]
    rated.loc[rated["kind"].str.startswith(APART) & (rated["part"] == "encoder"), "part"] = "heads"
    return rated


def round_offsets(first: pd.DataFrame, again: pd.DataFrame) -> pd.DataFrame:
    """Returns what to add to a batch's ratings: a row for each rater, a column for each rating."""
    names = list(RATINGS)
    both = again.merge(first[["id", *names]], on="id", suffixes=("", "_first"))
    difference = both[[f"{name}_first" for name in names]].set_axis(names, axis=1) - both[names]
    by_rater = difference.groupby(both["rater"])
    share = by_rater.count() / (by_rater.count() + SHRINKAGE)
    return share * by_rater.mean() + (1 - share) * difference.mean()


def components(groups: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Returns, for each pair, the first source of all that its group or source ties it to."""
    texts = pd.Series(list(sources))
    one, other = pd.factorize(pd.Series(list(groups)))[0], pd.factorize(texts)[0]
    size = int(one.max()) + 1
    edges = coo_array((np.ones(len(one)), (one, size + other)), shape=[size + len(texts)] * 2)
    labels = connected_components(edges, directed=False)[1][one]
    return texts.groupby(labels).transform("min").tolist()


def part_of(component: str) -> str:
    """Returns the part that a component's hash gives it to."""
    return PARTS[zlib.crc32(component.encode()) % len(PARTS)]
