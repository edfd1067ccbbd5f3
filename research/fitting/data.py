"""What SPScore-zh is fitted on: rated pairs, human scores, and negatives made from the pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import Field, model_validator

from gaixie.research.fitting.negatives import KINDS, make_negatives
from gaixie.research.fitting.pair_tables import read_table, source_hash
from gaixie.research.pair_encoder.ratings import (
    HIGHEST,
    RATINGS,
    components,
    on_one_scale,
    read_translated,
)
from gaixie.udfs.meaning.extract import Resources, extract_core
from gaixie.udfs.spscore import OUTPUTS, TIERS
from gaixie.udfs.storage.settings import Strict
from gaixie.udfs.text.normalise import normalise, normalise_column
from gaixie.udfs.text.segmenters import Segmenter

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "conf/spscore.yaml"
Bounds = tuple[float | None, float | None, float | None, float | None, float | None]


class Rated(Strict):
    """A table of pairs with a rating for each of RATINGS.

    Pairs of one ``group``, by default the source, fall on one side of every split. Where a column
    ``coarse`` is true or 1, ratings are labels, 0 or 1, beside the fine ones of other rows.
    """

    name: str
    path: str
    later: list[str] = Field(default=[])
    """Tables of later rounds of rating, with the same columns and ``rater``."""
    own: list[str] = Field(default=[])
    """More of them, which were written for this project: relative to the repository's root."""
    translated: str | None = None
    """A table of ratings, relative to the root, whose sentences stand in ``translations``: columns
    set, line, system_source, system_paraphrase, rater and the five ratings."""
    translations: str | None = None
    """Columns set, line, translations_zh and systems."""
    again: list[str] = Field(default=[])
    """JSON lines of pairs of the first table that later raters rated once more (id, rater,
    ratings): in the folder of the sets, or else relative to the root."""
    licence: str = "not stated"
    raters: str = "not stated"
    scale: float = Field(default=5.0, gt=0)
    """The highest rating; the lowest is 0."""
    score_column: str | None = None
    """One expert score instead of the five ratings (CSPC, section 3.1); every head learns it."""
    written: str | None = None
    """Kinds that begin so are reported apart: pairs written to vary."""
    written_share: float = Field(default=0.5, gt=0, lt=1)
    single_pass_weight: float = Field(default=1.0, gt=0)


class Human(Strict):
    """A table of pairs with one human score of quality, 0 to 1."""

    name: str
    path: str
    licence: str = "not stated"
    paraphrase_column: str = "paraphrase"
    score_column: str = "score"
    weight: float = Field(default=0.1, gt=0)


class Known(Strict):
    """Written groups and their counterparts, of which most were not rated (fitting/known.py)."""

    groups: str
    broken: str
    rewritten: str
    """Free rewrites and their counterparts: relative to the repository's root."""
    own_groups: str
    own_broken: str
    """As groups and broken; some of them are kept for tier full. Relative to the root, too."""
    weight: float = Field(default=0.25, gt=0)
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

    @model_validator(mode="after")
    def _known(self) -> Negatives:
        for kind in self.bounds:
            if kind not in KINDS:
                raise ValueError(f"{kind}: expected a kind of negative: {', '.join(KINDS)}")
        return self


class Config(Strict):
    """conf/spscore.yaml; what each setting means stands there."""

    segmenter: str = "jieba"
    seeds: int = Field(default=3, ge=1)
    folds: int = Field(default=5, ge=2)
    ablation: bool = False
    """Whether the fit is repeated without each feature or family of features."""
    rated: Rated
    human: Human | None = None
    known: Known | None = None
    negatives: Negatives = Field(default_factory=Negatives)
    penalties: dict[str, float] = Field(default={})
    never_raise: dict[str, list[str]] = Field(default={})
    never_lower: dict[str, list[str]] = Field(default={})
    parameters: dict[str, dict] = Field(default={})
    """By tier: what differs from LightGBM's settings in research/fitting/fit.py."""

    @model_validator(mode="after")
    def _columns(self) -> Config:
        lower = [*self.penalties, *(name for own in self.never_raise.values() for name in own)]
        higher = [name for own in self.never_lower.values() for name in own]
        for tier, named in (("core", lower), ("full", higher)):
            if unknown := [name for name in named if name not in TIERS[tier]]:
                raise ValueError(f"{unknown[0]!r}: expected a column of the tier {tier}")
        return self

    note: str = ""
    """What a reader of the card has to know about how these settings were chosen."""


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
        )

    def __len__(self) -> int:
        return len(self.weight)

    def __getitem__(self, rows) -> Rows:
        return Rows(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def join(cls, *parts: Rows) -> Rows:
        return cls(
            *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls))
        )


def read_rated(settings: Rated, folder: Path) -> pd.DataFrame:
    """Columns source, paraphrase (normalised), group, kind, origin, passes, part, and RATINGS in
    [0, 1].

    Ratings of later rounds are put on the scale of the first; pairs that share a group or a source
    have one group. Raises FileNotFoundError, or ValueError naming file, column and row at fault.
    """
    paths = [folder / name for name in (settings.path, *settings.later)]
    paths += [ROOT / name for name in settings.own]
    tables = [_read_rated(settings, path) for path in paths]
    if settings.translated and settings.translations:
        tables.append(read_translated(ROOT / settings.translated, folder / settings.translations))
        tables[-1][list(RATINGS)] /= HIGHEST
    rated = pd.concat(tables, ignore_index=True)
    here = [(ROOT / name).exists() for name in settings.again]
    again = [(ROOT if own else folder) / n for own, n in zip(here, settings.again, strict=True)]
    rated = on_one_scale(rated, again, highest=1.0)
    # Normalised last: the encoder's parts are hashes of the texts as they were written.
    rated[["source", "paraphrase"]] = rated[["source", "paraphrase"]].map(normalise)
    return rated.assign(group=components(rated["group"], rated["source"]))


def _read_rated(settings: Rated, path: Path) -> pd.DataFrame:
    ratings = {name: settings.score_column or name for name in RATINGS}
    columns = ["source", "paraphrase", *dict.fromkeys(ratings.values())]
    optional = ("group", "kind", "origin", "passes", "id", "rater", "coarse")
    table = read_table(path, columns, optional=optional)
    rated = pd.DataFrame(
        {name: _strings(table[name], f"{path}: column {name!r}") for name in columns[:2]}
    )
    coarse = table.get("coarse", rated["source"]).astype(str).str.lower()
    highest = np.where(coarse.isin(("1", "1.0", "true")), 1.0, settings.scale)
    for name, column in ratings.items():
        rated[name] = _ratings(table[column], highest, f"{path}: column {column!r}") / highest
    rated["group"] = table.get("group", rated["source"]).astype(str)
    for name, default in (("kind", "rated"), ("origin", "human"), ("rater", ""), ("id", None)):
        rated[name] = table.get(name, default)
    rated["passes"] = table.get("passes", pd.Series(1, table.index)).astype(float)
    return rated


def is_written(rated: pd.DataFrame, settings: Rated) -> np.ndarray:
    """Which pairs were written to vary: bool, shape (rows,)."""
    if not settings.written:
        return np.zeros(len(rated), bool)
    return rated["kind"].str.startswith(settings.written).to_numpy()


def rated_weight(rated: pd.DataFrame, settings: Rated) -> np.ndarray:
    """Mean 1; the written pairs have their share of the whole."""
    weight = np.where(rated["passes"] > 1, 1.0, settings.single_pass_weight)
    written = is_written(rated, settings)
    if written.any() and not written.all():
        weight[written] *= settings.written_share / weight[written].sum()
        weight[~written] *= (1 - settings.written_share) / weight[~written].sum()
    return weight / weight.mean()


def rated_rows(rated: pd.DataFrame, settings: Rated, segmenter: Segmenter) -> Rows:
    targets = rated[list(RATINGS)].to_numpy(float)
    return Rows.of(rated, targets, rated_weight(rated, settings), segmenter)


def read_human(
    settings: Human, folder: Path, rated: pd.DataFrame, segmenter: Segmenter
) -> tuple[Rows, dict[str, float]]:
    """Rows that have a target for spscore alone, without pairs that are rated; and the line.

    The line maps a human score onto a rating: least squares over the pairs that have both. A source
    that is rated keeps its group.
    """
    path = folder / settings.path
    columns = ["source", settings.paraphrase_column, settings.score_column]
    table = read_table(path, columns).set_axis(["source", "paraphrase", "human"], axis=1)
    wheres = [f"{path}: column {name!r}" for name in columns]
    for name, where in zip(table.columns[:2], wheres, strict=False):
        table[name] = _strings(table[name], where).map(normalise)
    table["human"] = _ratings(table["human"], 1.0, wheres[2])
    known = rated[["source", "paraphrase", "overall"]]
    table = table.merge(known, "left", on=["source", "paraphrase"])
    both = table.dropna(subset="overall")
    slope, intercept = (
        np.polyfit(both["human"], both["overall"], 1) if len(both) > 20 else (0.6, 0.0)
    )
    new = table[table["overall"].isna()].reset_index(drop=True)
    targets = np.full((len(new), len(OUTPUTS)), np.nan)
    targets[:, -1] = np.clip(intercept + slope * new["human"], 0, 1)
    group_of = dict(zip(rated["source"], rated["group"], strict=True))
    new["group"] = [group_of.get(source, source) for source in new["source"]]
    weight = settings.weight * len(rated) / max(len(new), 1)
    line = {"rated_too": len(both), "slope": float(slope), "intercept": float(intercept)}
    return Rows.of(new.assign(kind=settings.name), targets, weight, segmenter), line


def negatives_of(
    rated: pd.DataFrame, folder: Path, settings: Negatives, segmenter: Segmenter, seed: int = 0
) -> pd.DataFrame:
    """Columns source, paraphrase, kind, pair (row of rated): every negative of every rated pair."""
    others = sorted(set(rated["source"]))
    if settings.others:
        column = read_table(folder / settings.others, ["text"])["text"].dropna()
        sample = column.sample(min(20_000, len(column)), random_state=0).map(normalise)
        others = [text for text in sample if 15 <= len(text) <= 100]
    texts = sorted(set(rated["source"]) | set(rated["paraphrase"]))
    tags = dict(zip(texts, segmenter.tag(texts), strict=True)).__getitem__
    negatives = []
    for row, (source, paraphrase) in enumerate(
        zip(rated["source"], rated["paraphrase"], strict=True)
    ):
        other = others[source_hash(f"{seed}{source}{paraphrase}") % len(others)]
        made = make_negatives(source, paraphrase, other, tags, seed, list(settings.bounds))
        negatives += [(source, text, kind, row) for kind, text in made.items()]
    return pd.DataFrame(negatives, columns=["source", "paraphrase", "kind", "pair"])


def negative_rows(
    rated: pd.DataFrame, negatives: pd.DataFrame, settings: Negatives, segmenter: Segmenter
) -> Rows:
    """The negatives; each rating is that of the rated pair, bounded as the settings say."""
    own = rated[list(RATINGS)].to_numpy(float)[negatives["pair"]]
    bounds = {
        kind: [np.inf if bound is None else bound for bound in row]
        for kind, row in settings.bounds.items()
    }
    targets = np.array([bounds[kind] for kind in negatives["kind"]], float)
    # A negative made from the source starts as a copy of it: it keeps everything it does not lose.
    from_source = ~negatives["kind"].str.startswith("own_").to_numpy()
    own[from_source] = (1.0, 1.0, 1.0, 1.0, 1.0)
    # A fault costs a poor paraphrase something too.
    own[~from_source, -1] *= 0.8
    groups = rated["group"].to_numpy(object)[negatives["pair"]]
    return Rows.of(negatives.assign(group=groups), np.minimum(targets, own), 1.0, segmenter)


def extract(source: pd.Series, paraphrase: pd.Series, segmenter: Segmenter) -> np.ndarray:
    """Features of tier core: float32, shape (rows, columns)."""
    a, b = (normalise_column(pa.array(column, pa.string()))[0] for column in (source, paraphrase))
    return extract_core(a, b, segmenter.word_ends(a), segmenter.word_ends(b), Resources.load())


def _strings(column: pd.Series, where: str) -> pd.Series:
    wrong = [text for text in column if not isinstance(text, str)]
    if wrong:
        raise ValueError(f"{where} holds {wrong[0]!r}, expected strings")
    return column


def _ratings(column: pd.Series, highest: float | np.ndarray, where: str) -> np.ndarray:
    expected = f"a number from 0 to {np.max(highest, initial=1):g}"
    if np.size(highest) and np.ptp(highest):
        expected += ", at most 1 where it is coarse"
    return numbers_of(column, where, expected, lambda x: (x >= 0) & (x <= highest))


def numbers_of(
    column: pd.Series, where: str, expected: str, right: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """A column as numbers: float64. Raises ValueError that names the first row that is not
    right."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(~right(numbers))
    if len(wrong):
        row, number, value = int(wrong[0]), numbers[wrong[0]], column.iloc[wrong[0]]
        words = isinstance(value, str) and np.isnan(number)
        given = repr(value) if words else f"{number:g}"
        raise ValueError(f"{where}: row {row + 1} has {given}, expected {expected}")
    return numbers
