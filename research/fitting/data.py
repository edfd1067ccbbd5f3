"""What SPScore-zh is fitted on: rated pairs, human scores, written groups, and negatives.

Each kind is read by one function that returns ``Rows``. To add a table of rated pairs, with its
weight and, by its rater, its offset, list it in conf/spscore.yaml. To add another kind of rows,
write such a function, and name it in ``recipe.read_material``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import Field, model_validator

from gaixie.research.fitting.negatives import KINDS, make_negatives
from gaixie.research.pair_encoder import sets
from gaixie.research.ratings import rated as ratings
from gaixie.research.ratings import tables
from gaixie.research.ratings.rated import DRAFT, RATINGS, ROOT, Rated, components
from gaixie.udfs.meaning.core_features import Resources, extract_core
from gaixie.udfs.spscore import OUTPUTS, TIERS
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.normalise import normalise, normalise_column
from gaixie.udfs.text.segmenters import Segmenter

CONFIG = ROOT / "conf/spscore.yaml"
TAUGHT = [OUTPUTS.index(name) for name in ("meaning", "spscore")]
"""What rows without a rating teach."""
TEXTS = ["source", "paraphrase"]
Bounds = tuple[float | None, float | None, float | None, float | None, float | None]
Pair = tuple[str, str, str]
"""(source, paraphrase, kind)."""


class Human(Strict):
    """A table of pairs with one score of quality by people."""

    name: str
    path: str
    licence: str = "not stated"
    paraphrase_column: str = "paraphrase"
    score_column: str = "score"
    most: float = Field(default=1.0, gt=0)
    """The highest score; the lowest is 0."""
    weight: float = Field(default=0.1, gt=0)
    """Of all rated pairs'."""


class Negatives(Strict):
    """Settings of the negatives."""

    weight: dict[str, float] = Field(default={})
    """By tier: of all rated pairs' weight."""
    share: float = Field(default=0.25, gt=0, le=1)
    """Of the negatives, drawn at random, that a model learns from; all are held out in turn."""
    others: str | None = None
    """A table whose column ``text`` has sentences about something else."""
    bounds: dict[str, Bounds] = Field(default={})
    """For each kind of negative the bounds of its ratings."""


class Config(Strict):
    """conf/spscore.yaml; what each setting means stands there."""

    segmenter: str = "jieba"
    seeds: int = Field(default=3, ge=1)
    folds: int = Field(default=5, ge=2)
    ablation: bool = False
    """Whether the fit is repeated without each feature or family of features."""
    rated: Rated
    human: list[Human] = Field(default=[])
    known: float | None = Field(default=None, gt=0)
    """Weight of written groups and counterparts, of which most were not rated: of all rated
    pairs'."""
    negatives: Negatives = Field(default_factory=Negatives)
    penalties: dict[str, float] = Field(default={})
    never_raise: dict[str, list[str]] = Field(default={})
    never_lower: dict[str, list[str]] = Field(default={})
    parameters: dict[str, dict] = Field(default={})
    """By tier: what differs from LightGBM's settings in research/fitting/recipe.py."""
    note: str = ""
    """What a reader of the card has to know about how these settings were chosen."""

    @model_validator(mode="after")
    def _names(self) -> Config:
        unknown = {*self.penalties, *chain(*self.never_raise.values())} - {*TIERS["core"]}
        unknown |= {*chain(*self.never_lower.values())} - {*TIERS["full"]}
        unknown |= self.negatives.bounds.keys() - {*KINDS}
        if unknown:
            raise ValueError(f"{min(unknown)!r}: no column of the tier, or kind of negative")
        return self


@dataclass
class Rows:
    """Rows to fit on or to evaluate."""

    features: np.ndarray
    """Of tier core: float32, shape (rows, columns). Tier paper reads the first eight."""
    targets: np.ndarray
    """Shape (rows, 5), columns as in OUTPUTS, in [0, 1]; NaN where a row has no such target."""
    weight: np.ndarray
    groups: np.ndarray
    kinds: np.ndarray
    """Kind of the pair, or of the negative."""
    pairs: np.ndarray
    """Number of the rated pair that a negative was made from; -1 for other rows."""
    texts: np.ndarray
    """Source and paraphrase, normalised: shape (rows, 2)."""

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        targets: np.ndarray,
        weight: float | np.ndarray,
        segmenter: Segmenter,
    ) -> Rows:
        """table: columns source, paraphrase, group, kind, and, of negatives, pair."""
        return cls(
            extract(table["source"], table["paraphrase"], segmenter),
            targets,
            np.full(len(table), weight),
            table["group"].to_numpy(object),
            table["kind"].to_numpy(object),
            table.get("pair", pd.Series(-1, table.index)).to_numpy(),
            table[TEXTS].to_numpy(object),
        )

    def __len__(self) -> int:
        return len(self.weight)

    def __getitem__(self, rows) -> Rows:
        return Rows(*(column[rows] for column in vars(self).values()))

    @classmethod
    def join(cls, *parts: Rows) -> Rows:
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))


def extract(source: pd.Series, paraphrase: pd.Series, segmenter: Segmenter) -> np.ndarray:
    """Features of tier core: float32, shape (rows, columns)."""
    a, b = (normalise_column(pa.array(column, pa.string()))[0] for column in (source, paraphrase))
    return extract_core(a, b, segmenter.word_ends(a), segmenter.word_ends(b), Resources.load())


# Rated pairs


def read_rated(settings: Rated, folder: Path) -> pd.DataFrame:
    """Reads the rated pairs, normalised; pairs that share a group or a source have one group."""
    rated = ratings.read_rated(settings, folder)
    # Normalised last: the parts are hashes of the texts as they were written.
    rated[TEXTS] = rated[TEXTS].map(normalise)
    return rated.assign(group=components(rated["group"], rated["source"]))


def is_written(rated: pd.DataFrame, settings: Rated) -> np.ndarray:
    """Which pairs were written to vary: bool, shape (rows,)."""
    return rated["kind"].str.startswith(settings.written or ()).to_numpy(bool)


def rated_rows(rated: pd.DataFrame, settings: Rated, segmenter: Segmenter) -> Rows:
    """The rated pairs. Their mean weight is 1; written ones and drafts have their shares."""
    weight = np.where(rated["passes"] > 1, 1.0, settings.single_pass_weight)
    weight = weight * rated["weight"].to_numpy(float)
    drafts = (rated["kind"] == DRAFT).to_numpy(bool)
    written = is_written(rated, settings) & ~drafts
    shares = (settings.written_share, 1 - settings.written_share, settings.drafts_share)
    for part, share in zip((written, ~written & ~drafts, drafts), shares, strict=True):
        weight[part] *= share / (weight[part].sum() or 1)
    return Rows.of(rated, rated[list(RATINGS)].to_numpy(float), weight / weight.mean(), segmenter)


def groups_of(sources: pd.Series, rated: pd.DataFrame) -> list[str]:
    """The group of each source: that of its rated pairs, if it has any, so that it keeps its side
    of a split."""
    group_of = dict(zip(rated["source"], rated["group"], strict=True))
    return sources.map(group_of).fillna(sources).tolist()


# Human scores


def read_human(
    settings: Human, folder: Path, rated: pd.DataFrame, segmenter: Segmenter
) -> tuple[Rows, dict[str, float]]:
    """Rows that have a target for spscore alone, without pairs that are rated; and the line.

    The line maps a human score onto a rating: least squares over the pairs that have both. Without
    such pairs, the highest score is the highest rating.
    """
    path = folder / settings.path
    columns = ["source", settings.paraphrase_column, settings.score_column]
    table = tables.read_table(path, columns).set_axis([*TEXTS, "human"], axis=1)
    for name, column in zip(TEXTS, columns, strict=False):
        table[name] = tables.strings_of(table[name], f"{path}: column {column!r}").map(normalise)
    most, where = settings.most, f"{path}: column {settings.score_column!r}"
    expected = f"a number from 0 to {most:g}", lambda x: (x >= 0) & (x <= most)
    table["human"] = tables.numbers_of(table["human"], where, *expected) / most
    table = table.merge(rated[[*TEXTS, "overall"]], "left", on=TEXTS)
    both = table.dropna(subset="overall")
    slope, intercept = 1.0, 0.0
    if len(both) > 20:
        slope, intercept = np.polyfit(both["human"], both["overall"], 1)
    new = table[table["overall"].isna()].reset_index(drop=True)
    targets = np.full((len(new), len(OUTPUTS)), np.nan)
    targets[:, -1] = np.clip(intercept + slope * new["human"], 0, 1)
    new = new.assign(kind=settings.name, group=groups_of(new["source"], rated))
    weight = settings.weight * len(rated) / max(len(new), 1)
    line = {"rated_too": len(both), "slope": float(slope), "intercept": float(intercept)}
    return Rows.of(new, targets, weight, segmenter), line


# Written groups: a counterpart was written to be wrong in one way, and pairs of its kind were rated


def known_rows(
    pairs: Iterable[Pair], weight: float, rated: pd.DataFrame, segmenter: Segmenter
) -> Rows:
    """Rows of the pairs whose kind was rated; the kind's mean is their target, for ``meaning`` and
    ``spscore`` alone. weight: of all of them, against that of all rated pairs."""
    table = pd.DataFrame([*pairs], columns=[*TEXTS, "kind"])
    table = table[table["kind"].isin(set(rated["kind"]))]
    table[TEXTS] = table[TEXTS].map(normalise)
    means = rated.groupby("kind")[list(RATINGS)].mean()
    targets = np.full((len(table), len(OUTPUTS)), np.nan)
    targets[:, TAUGHT] = means.loc[table["kind"]].to_numpy()[:, TAUGHT]
    table["group"] = groups_of(table["source"], rated)
    return Rows.of(table, targets, weight * len(rated) / max(len(table), 1), segmenter)


def pairs_for_core(folder: Path) -> Iterator[Pair]:
    """Of the groups that came with the data, and of the free rewrites; held-out ones stay out."""
    yield from _of_groups(folder, lambda group: not sets.held_out(group))
    for row in tables.read_json_lines(sets.HERE / sets.REWRITTEN[0]):
        if not sets.held_out(row["group"]):
            for text in row["same"]:
                yield row["source"], text, "written_rewrite"
            for kind, text in zip(row["kinds"], row["wrong"], strict=True):
                yield row["source"], text, f"written_rewrite_{kind}"


def pairs_for_full() -> Iterator[Pair]:
    """Of groups that the pair encoder has not learned from."""
    return _of_groups(sets.HERE, sets.for_heads)


def _of_groups(folder: Path, wanted: Callable[[int], bool]) -> Iterator[Pair]:
    broken = {row["group"]: row for row in tables.read_json_lines(folder / sets.BROKEN)}
    for row in tables.read_json_lines(folder / sets.GROUPS):
        if row["group"] in broken and wanted(row["group"]):
            source, *others = row["texts"]
            for number, text in enumerate(others, 1):
                yield source, text, f"written_S{number}"
            for kind in sets.KINDS:
                yield source, broken[row["group"]][kind], f"written_{kind}"


# Negatives


def negatives_of(
    rated: pd.DataFrame, folder: Path, settings: Negatives, segmenter: Segmenter, seed: int = 0
) -> pd.DataFrame:
    """Columns source, paraphrase, kind, pair (row of rated): every negative of every rated pair."""
    others = sorted(set(rated["source"]))
    if settings.others:
        column = tables.read_table(folder / settings.others, ["text"])["text"].dropna()
        sample = column.sample(min(20_000, len(column)), random_state=0).map(normalise)
        others = [text for text in sample if 15 <= len(text) <= 100]
    texts = sorted(set(rated["source"]) | set(rated["paraphrase"]))
    tags = dict(zip(texts, segmenter.tag(texts), strict=True)).__getitem__
    negatives = []
    pairs = zip(rated["source"], rated["paraphrase"], strict=True)
    for row, (source, paraphrase) in enumerate(pairs):
        other = others[tables.source_hash(f"{seed}{source}{paraphrase}") % len(others)]
        made = make_negatives(source, paraphrase, other, tags, seed, list(settings.bounds))
        negatives += [(source, text, kind, row) for kind, text in made.items()]
    return pd.DataFrame(negatives, columns=[*TEXTS, "kind", "pair"])


def negative_rows(
    rated: pd.DataFrame, negatives: pd.DataFrame, settings: Negatives, segmenter: Segmenter
) -> Rows:
    """The negatives; each rating is that of the rated pair, bounded as the settings say."""
    of_pair = rated[list(RATINGS)].to_numpy(float)[negatives["pair"]]
    bounds = np.array([settings.bounds[kind] for kind in negatives["kind"]], float)  # None is NaN
    # A negative made from the source starts as a copy of it: it keeps everything it does not lose.
    from_source = ~negatives["kind"].str.startswith("own_").to_numpy()
    of_pair[from_source] = (1.0, 1.0, 1.0, 1.0, 1.0)
    # A fault costs a poor paraphrase something too.
    of_pair[~from_source, -1] *= 0.8
    table = negatives.assign(group=rated["group"].to_numpy(object)[negatives["pair"]])
    return Rows.of(table, np.fmin(bounds, of_pair), 1.0, segmenter)
