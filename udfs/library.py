"""The library's two calls: ``gaixie.score`` and ``gaixie.paraphrase``.

    import gaixie

    gaixie.score(frame)                                    # pandas, Polars, Arrow, DuckDB, datasets
    gaixie.score([("他昨天去了北京。", "昨天他去了北京。")])  # pairs: a list of dicts comes back
    gaixie.score(sources, paraphrases)                     # two lists: the same
    gaixie.paraphrase("会议因为暴雨推迟到了下周。")

Tables pass through the Arrow C interface, so strings are not copied row by row.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from gaixie.udfs.defaults import MOST_CHARACTERS
from gaixie.udfs.spscore import OUTPUTS, SPScore
from gaixie.udfs.storage.records import whole
from gaixie.udfs.storage.tables import check_columns, named

if TYPE_CHECKING:
    from gaixie.udfs.paraphrase.paraphraser import Paraphraser

COLUMNS = ("source", "paraphrase")
TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
TABLES = "a list of pairs or of dicts, or a table of pandas, Polars, Arrow, DuckDB or datasets"


def score(
    data: Any,
    source: str | int | Iterable[str | None] = "source",
    paraphrase: str | int = "paraphrase",
    tier: str = "core",
    prefix: str = "",
) -> Any:
    """Returns data with the columns structure, synonyms, meaning, fluency and spscore, in [0, 1].

    data: a list of (source, paraphrase), which comes back as a list of dicts; or a list of dicts, a
    pandas or Polars data frame, an Arrow table, a DuckDB relation or a Hugging Face data set, which
    comes back as the same type; or a list of sources, with the list of their paraphrases as second
    argument, which come back as dicts. source, paraphrase: names of the columns; those by which
    people call them are recognised, such as 原句 and 改写. tier: paper, core or full. prefix: stands
    before the names of the new columns. A row with a null sentence has null judgements (NaN in
    pandas); so has a row with half a surrogate pair, or a sentence of more than 20,000
    characters, which a warning names.

    Raises TypeError for other data, and ValueError if a column is missing, does not hold strings,
    or has the name of a judgement, or if two lists differ in length.
    """
    for name, given, kinds in (("paraphrase", paraphrase, (str, int)), ("prefix", prefix, str)):
        if not isinstance(given, kinds):
            raise TypeError(f"{name}={given!r:.60}: expected a name; two lists are the two sides")
    if not isinstance(source, (str, int)):
        data, source = _paired(data, source), "source"
    if isinstance(data, (list, tuple, zip)) or type(data).__name__ == "generator":
        rows = _rows(data, source, paraphrase)
        header = [*rows[0]] if rows else []
        sides = named(header, (source, paraphrase))
        sides = sides if sides[0] in header else [*COLUMNS]
        texts = [*map(_strings, ([row[name] for row in rows] for name in sides), sides)]
        for number, row in enumerate(rows):
            _refuse(row, prefix, f"row {number}: key")
        judged = _judge(texts, tier, prefix).to_pylist()
        return [{**row, **judgements} for row, judgements in zip(rows, judged, strict=True)]
    is_pandas = _library(data) == "pandas" and hasattr(data, "columns")
    table = data if is_pandas else _arrow(data)
    labels = [*data.columns] if is_pandas else table.column_names
    names = [*map(str, labels)]
    check_columns("data", sides := named(names, (str(source), str(paraphrase))), names)
    texts = [*map(_strings, (table[labels[names.index(name)]] for name in sides), sides)]
    _refuse(names, prefix)
    return _joined(data, table, _judge(texts, tier, prefix))


def paraphrase(
    text: str | Sequence[str],
    n: int = 1,
    degree: int = 4,
    keep: Sequence[str] = (),
    tone: str | None = None,
) -> list[str] | list[list[str]]:
    """Returns at most n paraphrases of a text, best first; for several texts, one list each.

    The list is empty if no paraphrase is good enough. degree: from 1, a light touch, to 5, a
    rewrite. tone: 正式, 口语 or 精简, instead of a degree. keep: terms that must not change. Raises
    ValueError if an argument is out of range, or if there is no model yet (make writer).
    """
    from gaixie.udfs.paraphrase.paraphraser import Wanted

    texts = [text] if isinstance(text, str) else list(text)
    found = _paraphraser()(texts, Wanted(degree, n, tuple(keep), tone))
    answers = [[candidate.text for candidate in candidates] for candidates in found]
    return answers[0] if isinstance(text, str) else answers


_metric = cache(SPScore.load)


@cache
def _paraphraser() -> Paraphraser:
    from gaixie.udfs.paraphrase.paraphraser import Paraphraser

    return Paraphraser.load()


def _refuse(names: Iterable[str], prefix: str, what: str = "column") -> None:
    """Raises ValueError for a column that has the name of a judgement."""
    if taken := [prefix + name for name in OUTPUTS if prefix + name in names]:
        raise ValueError(f"{what} {taken[0]!r} already exists: give a prefix=, or rename it")


def _judge(texts: Sequence[pa.Array], tier: str, prefix: str) -> pa.Table:
    """Returns the judgements of [sources, paraphrases] as float32 Arrow columns, null if either
    sentence is null."""
    source, paraphrase = texts
    outputs = _metric(tier).outputs(source, paraphrase)
    columns = [pa.array(column, pa.float32(), from_pandas=True) for column in outputs.T.copy()]
    return pa.table(columns, names=[prefix + name for name in OUTPUTS])


def _paired(sources: Any, paraphrases: Any) -> list[tuple[Any, Any]]:
    sources, paraphrases = (
        side.to_pylist() if isinstance(side, (pa.Array, pa.ChunkedArray)) else list(side)
        for side in (sources, paraphrases)
    )
    if len(sources) != len(paraphrases):
        raise ValueError(f"{len(sources):,} sources, but {len(paraphrases):,} paraphrases")
    return list(zip(sources, paraphrases, strict=True))


def _rows(data: Any, source: Any, paraphrase: Any) -> list[dict[str, Any]]:
    """Returns dicts as they are, and pairs as dicts of COLUMNS."""
    rows = list(data)
    if rows and isinstance(rows[0], dict):
        wanted = named([*rows[0]], (source, paraphrase))
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise TypeError(f"row {number}: expected a dict like row 0, not {row!r:.60}")
            for name in wanted:
                if name not in row:
                    raise ValueError(f"row {number}: no key {name!r}")
        return rows
    for number, row in enumerate(rows):
        sides = list(row) if isinstance(row, Iterable) and not isinstance(row, (str, dict)) else []
        if len(sides) != 2 or not all(isinstance(one, str) or _missing(one) for one in sides):
            raise TypeError(f"row {number}: expected (source, paraphrase), not {row!r:.60}")
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def _missing(value: Any) -> bool:
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>"))


def _strings(values: Any, name: str) -> pa.Array:
    """Returns a column as Arrow strings; warns of rows that will not be judged."""
    faults: dict[int, str] = {}
    try:
        is_arrow = isinstance(values, pa.ChunkedArray)
        column = values if is_arrow else pa.array(values, from_pandas=True)
    except (UnicodeEncodeError, pa.ArrowException):
        texts = [None if _missing(value) else value for value in values]
        for number, text in enumerate(texts):
            if not isinstance(text, str | None):
                raise ValueError(f"row {number}: {name} is {text!r:.40}, not a text") from None
            if text is not None and (kept := whole(text)) != text:
                texts[number], faults[number] = kept, "half a surrogate pair"
        column = pa.array(texts, pa.string())
    if column.null_count == len(column):  # of any type
        column = pa.nulls(len(column), pa.string())
    if pa.types.is_dictionary(column.type):
        column = pa.array(column.to_pylist())
    if not any(is_text(column.type) for is_text in TEXT):
        raise ValueError(f"column {name!r} is of {column.type}, not strings")
    column = column.cast(pa.string())
    long = pc.greater(pc.utf8_length(column), MOST_CHARACTERS)
    more = f"more than {MOST_CHARACTERS:,} characters"
    faults |= dict.fromkeys(pc.indices_nonzero(long).to_pylist(), more)
    for number, fault in sorted(faults.items()):
        warnings.warn(f"row {number}: {name} has {fault}; it is not judged", stacklevel=3)
    return pc.if_else(long, None, column)


def _library(data: Any) -> str:
    """Returns the package that a table's type is from, such as pandas, polars or datasets."""
    return type(data).__module__.partition(".")[0].lstrip("_")


def _arrow(data: Any) -> pa.Table:
    if _library(data) == "datasets" and hasattr(data, "with_format"):
        if not hasattr(data, "num_rows") or isinstance(data.num_rows, dict):
            expected = "expected one split; choose it, such as ['train']"
            raise TypeError(f"{type(data).__name__}: {expected}")
        return data.with_format("arrow")[:]
    if _library(data) == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.ChunkedArray):
        with suppress(TypeError, ValueError):
            return pa.table(data)
    raise TypeError(f"{type(data).__name__}: expected {TABLES}")


def _joined(data: Any, table: Any, judged: pa.Table) -> Any:
    """Returns data, as its own type, with the judgements appended as columns."""
    library = _library(data)
    if library == "pandas":
        return data.assign(**{name: judged[name].to_numpy() for name in judged.column_names})
    if library == "datasets":
        for name in judged.column_names:
            data = data.add_column(name, judged[name].combine_chunks())
        return data
    for name in judged.column_names:
        table = table.append_column(name, judged[name])
    if library == "polars":
        made = sys.modules["polars"].from_arrow(table)
        return made.lazy() if hasattr(data, "collect") else made
    return sys.modules["duckdb"].from_arrow(table) if library == "duckdb" else table
