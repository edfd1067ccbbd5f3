"""The library's three calls: ``gaixie.score``, ``gaixie.compare`` and ``gaixie.paraphrase``.

    import gaixie

    gaixie.score([("他昨天去了北京。", "昨天他去了北京。")])       # a list of dicts
    gaixie.score(frame)                          # pandas, Polars, Arrow, DuckDB or datasets
    gaixie.compare(ours, theirs)                 # two systems on the same sources
    gaixie.paraphrase("会议因为暴雨推迟到了下周。")

Tables pass through the Arrow C interface, so strings are not copied row by row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gaixie.udfs.spscore import OUTPUTS, SPScore

if TYPE_CHECKING:
    import pandas as pd

    from gaixie.udfs.paraphrase.paraphraser import Paraphraser

COLUMNS = ("source", "paraphrase")
TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
TABLES = "a list of pairs or of dicts, or a table of pandas, Polars, Arrow, DuckDB or datasets"


def score(
    data: Any, source: str = "source", paraphrase: str = "paraphrase", tier: str = "core"
) -> Any:
    """Returns data with the columns structure, synonyms, meaning, fluency and spscore, in [0, 1].

    data: a list of (source, paraphrase), which comes back as a list of dicts; or a list of dicts, a
    pandas or Polars data frame, an Arrow table, a DuckDB relation or a Hugging Face data set, which
    comes back as the same type. source, paraphrase: names of its columns. tier: paper, core or full
    (see SPScore.load). A row with a null sentence has null judgements (NaN in pandas).

    Raises TypeError for other data, and ValueError if a column is missing, does not hold strings,
    or has the name of a judgement.
    """
    if _is_list(data):
        rows, source, paraphrase = _rows(data, source, paraphrase)
        judged = _judge(*_columns(rows, source, paraphrase), tier).to_pylist()
        return [{**row, **own} for row, own in zip(rows, judged, strict=True)]
    table = _arrow(data)
    columns = _columns(table, source, paraphrase)
    if taken := [name for name in OUTPUTS if name in table.column_names]:
        raise ValueError(f"column {taken[0]!r} already exists: drop or rename it")
    return _joined(data, table, _judge(*columns, tier))


def compare(
    a: Any, b: Any, source: str = "source", paraphrase: str = "paraphrase", tier: str = "core"
) -> pd.DataFrame:
    """Compares two systems on the same sources, in the same order.

    a, b: data that score accepts. Returns a row for each judgement: the means of a and b, the
    difference b - a with its 95 % interval and p (paired t test), and the share of pairs on which b
    is higher. Raises what score raises, and ValueError if the sources differ.
    """
    import pandas as pd
    from scipy.stats import ttest_rel

    sides = [_rows(data, source, paraphrase) if _is_list(data) else data for data in (a, b)]
    (ours, one), (theirs, other) = (
        _columns(*side) if isinstance(side, tuple) else _columns(_arrow(side), source, paraphrase)
        for side in sides
    )
    if ours.to_pylist() != theirs.to_pylist():
        raise ValueError(f"the sources differ: {len(ours):,} and {len(theirs):,}, or their order")
    judged = [_judge(ours, texts, tier).to_pandas() for texts in (one, other)]
    rows = {}
    for name in OUTPUTS:
        both = pd.DataFrame({"a": judged[0][name], "b": judged[1][name]}).dropna()
        test = ttest_rel(both["b"], both["a"])
        interval = test.confidence_interval()
        rows[name] = {
            "a": both["a"].mean(),
            "b": both["b"].mean(),
            "difference": (both["b"] - both["a"]).mean(),
            "low": interval.low,
            "high": interval.high,
            "p": test.pvalue,
            "b is higher": (both["b"] > both["a"]).mean(),
        }
    return pd.DataFrame(rows).T


def paraphrase(
    text: str | Sequence[str],
    n: int = 1,
    degree: int = 5,
    keep: Sequence[str] = (),
    seed: int = 0,
) -> list[str] | list[list[str]]:
    """Returns at most n paraphrases of a text, best first; for several texts, one list each.

    The list is empty if no paraphrase is good enough. degree: from 1, a light touch, to 5, as much
    change as the checks allow. keep: terms that must not change. Raises ValueError if n or degree
    is out of range.
    """
    from gaixie.udfs.paraphrase.paraphraser import Wanted

    texts = [text] if isinstance(text, str) else list(text)
    found = _paraphraser()(texts, Wanted(degree, n, tuple(keep), seed))
    answers = [[one.text for one in own] for own in found]
    return answers[0] if isinstance(text, str) else answers


@cache
def _metric(tier: str) -> SPScore:
    return SPScore.load(tier)


@cache
def _paraphraser() -> Paraphraser:
    from gaixie.udfs.paraphrase.paraphraser import Paraphraser

    return Paraphraser.load()


def _judge(source: Any, paraphrase: Any, tier: str) -> pa.Table:
    """Returns the judgements as float32 Arrow columns, null if either sentence is null."""
    outputs = _metric(tier).outputs(source, paraphrase)
    columns = [pa.array(own, pa.float32(), from_pandas=True) for own in outputs.T.copy()]
    return pa.table(columns, names=list(OUTPUTS))


def _is_list(data: Any) -> bool:
    return isinstance(data, (list, tuple, zip)) or type(data).__name__ == "generator"


def _rows(data: Any, source: str, paraphrase: str) -> tuple[list[dict[str, Any]], str, str]:
    """Returns a list of dicts or of pairs as dicts, and the keys of the two sentences."""
    rows = list(data)
    if rows and all(isinstance(row, dict) for row in rows):
        return rows, source, paraphrase
    for number, row in enumerate(rows):
        if isinstance(row, (str, dict)) or not _is_pair(row):
            raise TypeError(f"row {number}: expected (source, paraphrase), not {row!r:.60}")
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows], *COLUMNS


def _columns(
    rows: pa.Table | list[dict[str, Any]], source: str, paraphrase: str
) -> tuple[Any, Any]:
    """Returns the two columns as Arrow strings."""
    found = []
    for name in (source, paraphrase):
        if isinstance(rows, list):
            for number, row in enumerate(rows):
                if name not in row:
                    raise ValueError(f"row {number}: no key {name!r}")
            found.append(pa.array([row[name] for row in rows], pa.string()))
            continue
        if name not in rows.column_names:
            raise ValueError(f"no column {name!r}, it has: {', '.join(rows.column_names)}")
        kind = rows.schema.field(name).type
        if not any(is_text(kind) for is_text in TEXT):
            raise ValueError(f"column {name!r} is of {kind}, not strings")
        found.append(rows[name].cast(pa.string()))
    return found[0], found[1]


def _is_pair(row: Any) -> bool:
    sides = list(row) if isinstance(row, Iterable) else []
    return len(sides) == 2 and all(side is None or isinstance(side, str) for side in sides)


def _library(data: Any) -> str:
    """Returns the package that a table's type is from, such as pandas, polars or datasets."""
    return type(data).__module__.partition(".")[0].lstrip("_")


def _arrow(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if _library(data) == "datasets" and hasattr(data, "with_format"):
        if not hasattr(data, "num_rows") or isinstance(data.num_rows, dict):
            raise TypeError(
                f"{type(data).__name__}: expected one split; choose it, such as ['train']"
            )
        return data.with_format("arrow")[:]
    if _library(data) == "pandas" and hasattr(data, "columns"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.ChunkedArray):
        try:
            return pa.table(data)
        except (TypeError, ValueError):
            pass
    if hasattr(data, "collect") and _library(data) == "polars":
        return _arrow(data.collect())
    raise TypeError(f"{type(data).__name__}: expected {TABLES}")


def _joined(data: Any, table: pa.Table, judged: pa.Table) -> Any:
    """Returns data, as its own type, with the judgements appended as columns."""
    library = _library(data)
    if library == "pandas":
        return data.assign(**{name: judged[name].to_numpy() for name in OUTPUTS})
    if library == "datasets":
        for name in OUTPUTS:
            data = data.add_column(name, judged[name].combine_chunks())
        return data
    for name in OUTPUTS:
        table = table.append_column(name, judged[name])
    if library == "polars":
        made = sys.modules["polars"].from_arrow(table)
        return made.lazy() if hasattr(data, "collect") else made
    return sys.modules["duckdb"].from_arrow(table) if library == "duckdb" else table
