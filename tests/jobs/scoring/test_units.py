"""Files must be divided into units of a size: several small ones, or spans of a large one."""

from datetime import UTC, datetime

import pytest
from pyspark.sql.types import StructType

from gaixie.jobs.corpus.input import Input
from gaixie.jobs.corpus.reading import PART_BYTES, InputFiles, text_pieces
from gaixie.jobs.scoring import units
from gaixie.jobs.scoring.report import close_accounts
from gaixie.jobs.scoring.units import divide, row_key
from gaixie.udfs.command_line import UserError
from gaixie.udfs.storage.storage import File


def source(kind: str, *sizes: int, row_groups: int = 1) -> InputFiles:
    files = [File(f"file:/{n}.{kind}", size, datetime.now(UTC)) for n, size in enumerate(sizes)]
    given = Input(path="/", origin="llm")
    pieces = text_pieces(files, given.csv.form(kind))
    pieces = {file.uri: row_groups for file in files} if kind == "parquet" else pieces
    return InputFiles(given, kind, files, [], [], StructType(), pieces, {}, False)


SPANS = [
    ("parquet", 2_500_000, 5, [(0, 2), (2, 3), (3, 5)]),
    ("parquet", 2_500_000, 2, [(0, 1), (1, 2)]),
    ("parquet", 2_500_000, 1, [None]),
    ("jsonl", 2_500_000, 1, [None]),
    ("jsonl", 2 * PART_BYTES, 1, [(0, PART_BYTES), (PART_BYTES, 2 * PART_BYTES)]),
]


@pytest.mark.parametrize(("kind", "size", "row_groups", "spans"), SPANS)
def test_spans_of_one_file(kind, size, row_groups, spans):
    found = divide([source(kind, size, row_groups=row_groups)], 1)
    assert [unit.span for unit in found] == spans
    assert [unit.number for unit in found] == [*range(len(spans))]
    assert all(len(unit.files) == 1 for unit in found)


def test_small_files_share_a_unit(monkeypatch):
    inputs = [source("csv", 400_000, 400_000, 400_000), source("csv", 1)]
    found = divide(inputs, 1)
    assert [len(unit.files) for unit in found] == [2, 1, 1]
    assert [unit.number for unit in found] == [0, 1, 2]
    monkeypatch.setattr(units, "MOST_UNITS", 2)
    with pytest.raises(UserError, match="--unit-mb"):
        divide(inputs, 1)


def test_row_keys_of_the_last_unit(spark):
    rows = spark.range(0, 6, 1, 3).select(row_key(units.MOST_UNITS - 1).alias("key")).collect()
    first = (units.MOST_UNITS - 1) << 47
    assert [row.key for row in rows] == [
        first + (task << 30) + k for task in range(3) for k in (0, 1)
    ]


def test_accounts_of_an_origin_that_was_not_read():
    with pytest.raises(RuntimeError, match=r"origin llm: .* read=0 scored=1"):
        close_accounts({}, {"llm": {1: 1}}, {}, {})
