"""Footers of Parquet files that Java need not read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gaixie.jobs.corpus.inputs import _local_footer
from gaixie.udfs.storage.storage import File


def footer(path: Path) -> tuple[str, int, int] | None:
    return _local_footer(File(f"file:{path}", path.stat().st_size, datetime.now(UTC)))


def test_files_of_one_schema_are_told_from_others(tmp_path):
    texts = pa.table({"source": ["a", "b", "c"]})
    pq.write_table(texts, tmp_path / "a [1]%41.parquet", row_group_size=2)
    pq.write_table(texts.slice(0, 1), tmp_path / "b.parquet")
    pq.write_table(texts.cast(pa.schema({"source": pa.binary()})), tmp_path / "c.parquet")
    (tmp_path / "d.parquet").write_bytes(b"PAR1 and no more")
    a, b, c, d = (footer(path) for path in sorted(tmp_path.iterdir()))
    assert a is not None
    assert b is not None
    assert c is not None
    assert (a[1:], b[1:]) == ((3, 2), (1, 1))
    assert a[0] == b[0] != c[0]
    assert d is None  # Java says what is wrong with it
    assert _local_footer(File("s3a://bucket/a.parquet", 1, datetime.now(UTC))) is None
