"""The tables that SPScore-zh is fitted on: settings, reading, and the rows made of them."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from udfs.features import extract
from udfs.spscore.contrasts import KINDS, edit_distance, make_contrasts
from udfs.text.normalise import normalise
from udfs.text.segment import Segmenter

SCALES = {"fine": (0.0, 5.0), "coarse": (0.0, 1.0), "unit": (0.0, 1.0)}
"""Lowest and highest score of each scale: human grades, 0 or 1, anything between 0 and 1."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Target(_Settings):
    target: float = Field(ge=0, le=1)
    weight: float = Field(1.0, ge=0)


class Others(_Settings):
    path: str
    column: str = "text"
    licence: str = "not stated"


class TableSet(_Settings):
    """One data set: graded where it has a score_column, human rewrites where it has none."""

    name: str
    licence: str = "not stated"
    path: str
    paraphrase_paths: list[str] = []
    """Plain text, a sentence a line, parallel to path; instead of columns."""
    header: list[str] | None = None
    """Column names of a CSV or TSV that has no header line."""
    source_column: str = "source"
    paraphrase_column: str = "paraphrase"
    score_column: str | None = None
    scale: Literal["fine", "coarse", "unit"] = "unit"
    remove_spaces: bool = False
    """Remove the spaces that a tokeniser left: all but those between Latin letters or digits."""
    fit_at_most: int | None = None
    """Fit on at most so many sources."""


class Config(_Settings):
    """conf/spscore.yaml; what each setting means stands there."""

    segmenter: str = "jieba"
    backend: Literal["lightgbm", "neural"] = "lightgbm"
    seeds: int = Field(3, ge=1)
    folds: int = Field(10, ge=2)
    hold_out: float = Field(0.2, gt=0, lt=1)
    parameters: dict = {}
    min_characters: int = 15
    max_characters: int = 1000
    minimum_edit_characters: int = 3
    minimum_edit_share: float = 0.1
    graded_weight: float = Field(0.5, gt=0)
    rewrite: Target = Target(target=0.9)
    contrasts: dict[str, Target] = {}
    others: Others | None = None
    sets: list[TableSet] = Field(min_length=1)
    information: list[TableSet] = []
    note: str = ""
    """What a reader of the card has to know about how these settings were chosen."""


def load_config(path: Path) -> Config:
    """Raises FileNotFoundError, or ValueError naming file, setting and what was expected."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; expected the settings of a fit (YAML)")
    try:
        config = Config.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: expected YAML ({' '.join(str(error).split())})") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ValueError(f"{path}: {where}: {first['msg']}") from None
    for kind in config.contrasts:
        if kind not in KINDS:
            raise ValueError(f"{path}: contrasts.{kind}: expected one of {', '.join(KINDS)}")
    return config


@dataclass
class Pairs:
    """Pairs of one kind of set: a table with columns set, source, paraphrase (both normalised) and
    target (0-1) for graded pairs or edits (edit distance) for rewrites; and what was left out."""

    table: pd.DataFrame
    read: dict[str, int]
    left_out: dict[str, dict[str, int]]


def read_table(path: Path, columns: list[str], header: list[str] | None = None) -> pd.DataFrame:
    """CSV, TSV, JSON lines or Parquet, by the file's ending.

    Raises FileNotFoundError, or ValueError naming file, column and what was expected.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    ending = path.suffix.lower()
    try:
        if ending == ".parquet":
            table = pd.read_parquet(path)
        elif ending in (".jsonl", ".ndjson", ".json"):
            table = pd.read_json(path, lines=True, dtype=False, convert_dates=False)
        elif ending in (".csv", ".tsv"):
            tabs = {"sep": "\t", "quoting": 3} if ending == ".tsv" else {}
            names = {"names": header, "header": None} if header else {}
            table = pd.read_csv(path, dtype=str, keep_default_na=False, **tabs, **names)
        else:
            raise ValueError(f"ending {ending!r}")
    except (ValueError, OSError, pa.ArrowInvalid) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: expected CSV, TSV, JSON lines or Parquet ({reason})") from None
    for column in columns:
        if column not in table.columns:
            found = ", ".join(map(str, table.columns))
            raise ValueError(f"{path}: no column {column!r}, expected it beside: {found}")
    if table.empty:
        raise ValueError(f"{path}: no rows")
    return table[columns]


def map_scores(scores: pd.Series, scale: str, where: str) -> np.ndarray:
    """Scores mapped to [0, 1]: fine divides by 5, coarse and unit stay as they are.

    Raises ValueError, with ``where`` (file and column) and the first row at fault, for what is not
    a number of the scale.
    """
    low, high = SCALES[scale]
    numbers = pd.to_numeric(scores, errors="coerce").to_numpy(float)
    wrong = ~((numbers >= low) & (numbers <= high))
    expected = f"a number from {low:g} to {high:g}"
    if scale == "coarse":
        wrong |= (numbers != 0) & (numbers != 1)
        expected = "0 or 1"
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{where}: row {row + 1} has {scores.iloc[row]!r}, expected {expected} (scale {scale})"
        )
    return numbers / high


def read_set(each: TableSet, data: Path) -> pd.DataFrame:
    """Columns source, paraphrase, and target where the set is graded. Nothing is left out yet."""
    path = data / each.path
    if each.paraphrase_paths:
        sources = _lines(path)
        parts = []
        for name in each.paraphrase_paths:
            lines = _lines(data / name)
            if len(lines) != len(sources):
                raise ValueError(
                    f"{data / name}: {len(lines)} lines, expected {len(sources)} as in {path}"
                )
            parts.append(pd.DataFrame({"source": sources, "paraphrase": lines}))
        return pd.concat(parts, ignore_index=True)
    columns = [each.source_column, each.paraphrase_column]
    table = read_table(path, columns + [each.score_column] * bool(each.score_column), each.header)
    pairs = pd.DataFrame({"source": table[columns[0]], "paraphrase": table[columns[1]]})
    for column, name in zip(pairs.columns, columns, strict=True):
        wrong = [v for v in pairs[column] if not isinstance(v, str) and not pd.isna(v)]
        if wrong:
            raise ValueError(f"{path}: column {name!r} holds {wrong[0]!r}, expected strings")
    if each.score_column:
        where = f"{path}: column {each.score_column!r}"
        pairs["target"] = map_scores(table[each.score_column], each.scale, where)
    return pairs


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    return path.read_text(encoding="utf-8").splitlines()


def read_pairs(config: Config, data: Path) -> tuple[Pairs, Pairs]:
    """(graded pairs, rewrites) of all sets, normalised; what is left out is counted by reason.

    Rewrites keep their near-copies here, told apart by :func:`is_rewrite`.
    """
    found: tuple[list, list] = ([], [])
    counts: tuple[dict, dict] = ({}, {})
    reasons: tuple[dict, dict] = ({}, {})
    for each in config.sets:
        table = read_set(each, data)
        rewrites = not each.score_column
        left_out = reasons[rewrites][each.name] = {}
        counts[rewrites][each.name] = len(table)

        def keep(table, good, reason, left_out=left_out):
            if not good.all():
                left_out[reason] = int((~good).sum())
            return table[good]

        table = keep(table, table[["source", "paraphrase"]].notna().all(axis=1), "null")
        tidy = remove_spaces if each.remove_spaces else normalise
        table = table.assign(
            source=table["source"].map(tidy), paraphrase=table["paraphrase"].map(tidy)
        )
        table = keep(table, (table["source"] != "") & (table["paraphrase"] != ""), "empty")
        if rewrites:
            lengths = table["source"].str.len()
            inside = lengths.between(config.min_characters, config.max_characters)
            table = keep(table, inside, "outside the length limits")
            table = keep(table, table["source"] != table["paraphrase"], "identical")
            table = keep(table, ~table.duplicated(["source", "paraphrase"]), "duplicate")
            pairs = zip(table["source"], table["paraphrase"], strict=True)
            table = table.assign(edits=[edit_distance(a, b) for a, b in pairs])
        found[rewrites].append(table.assign(set=each.name))
    graded, rewritten = (
        Pairs(
            pd.concat(found[k], ignore_index=True) if found[k] else pd.DataFrame(columns=empty),
            counts[k],
            reasons[k],
        )
        for k, empty in enumerate(
            (["source", "paraphrase", "target", "set"], ["source", "paraphrase", "edits", "set"])
        )
    )
    return graded, rewritten


def remove_spaces(text: str) -> str:
    """A text normalised, without the spaces that a tokeniser left between Chinese characters."""
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", normalise(text))


def is_rewrite(rewrites: pd.DataFrame, config: Config) -> np.ndarray:
    """Which rewrites differ enough from their source to be called one: bool, shape (rows,)."""
    edits = rewrites["edits"].to_numpy(int)
    lengths = rewrites["source"].str.len().to_numpy(int)
    enough = edits >= config.minimum_edit_characters
    return enough | (edits >= config.minimum_edit_share * lengths)


def source_hash(source: str) -> int:
    """What a source's side of every split depends on: the same on every machine."""
    return zlib.crc32(source.encode("utf-8", "surrogatepass"))


def is_held_out(sources: pd.Series, share: float) -> np.ndarray:
    """Which rows belong to the held-out sources: bool, shape (rows,)."""
    return np.array([source_hash(s) % 1000 < share * 1000 for s in sources], bool)


def limit_sources(rewrites: pd.DataFrame, config: Config) -> pd.DataFrame:
    """The rewrites of at most ``fit_at_most`` sources of each set, chosen by hash."""
    parts = []
    for each in config.sets:
        part = rewrites[rewrites["set"] == each.name]
        if each.fit_at_most is not None:
            # Another order than that of is_held_out, so that one choice does not decide the other.
            order = sorted(set(part["source"]), key=lambda s: (source_hash(s[::-1]), s))
            part = part[part["source"].isin(order[: each.fit_at_most])]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def read_others(config: Config, data: Path) -> list[str]:
    """Normalised sentences within the length limits from which unrelated ones are drawn."""
    if config.others is None:
        return []
    table = read_table(data / config.others.path, [config.others.column])
    texts = table[config.others.column].dropna()
    texts = texts.sample(min(20_000, len(texts)), random_state=0)
    return [
        text
        for text in map(normalise, texts)
        if config.min_characters <= len(text) <= config.max_characters
    ]


def with_contrasts(
    rewrites: pd.DataFrame,
    kinds: list[str],
    others: list[str],
    segmenter: Segmenter,
    seed: int = 0,
) -> pd.DataFrame:
    """One row for each rewrite (kind ``rewrite``) and each of its contrasts.

    Columns set, source, paraphrase, kind, pair (number of the rewrite), edits. Half of the
    unrelated sentences come from ``others``, half from the other sources of the same table.
    """
    words: dict[str, list[str]] = {}
    texts = sorted(set(rewrites["source"]) | set(rewrites["paraphrase"]))
    words.update(zip(texts, segmenter.cut(texts), strict=True))
    sources = sorted(set(rewrites["source"]))
    rows = []
    columns = (rewrites[name] for name in ("set", "source", "paraphrase", "edits"))
    for pair, (name, source, paraphrase, edits) in enumerate(zip(*columns, strict=True)):
        rows.append((name, source, paraphrase, "rewrite", pair, edits))
        stock = others if others and (source_hash(source) + pair + seed) % 2 else sources
        place = source_hash(f"{seed}{source}{paraphrase}") % len(stock)
        other = stock[place] if stock[place] != source else stock[place - 1]
        made = make_contrasts(source, paraphrase, other, words.__getitem__, seed, kinds)
        rows += [(name, source, text, kind, pair, edits) for kind, text in made.items()]
    return pd.DataFrame(rows, columns=["set", "source", "paraphrase", "kind", "pair", "edits"])


def extract_table(table: pd.DataFrame, segmenter: Segmenter) -> np.ndarray:
    """The eight features of a table's pairs: float32, shape (rows, 8)."""
    return extract(
        pa.array(table["source"], pa.string()),
        pa.array(table["paraphrase"], pa.string()),
        segmenter,
    )
