"""Small files of JSON lines are looked at without Spark: it would see the same."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gaixie.jobs.corpus.early import json_objects
from gaixie.jobs.corpus.settings import Input
from gaixie.udfs.storage.storage import File

LIKE_SPARK = {
    "plain": b'{"source": "a", "paraphrase": "b"}\n{"note": null, "source": "c"}\n',
    "byte order mark": b'\xef\xbb\xbf{"source": "a"}\n',
    "line ends": b'{"a": 1}\r\n\r\n{"b": [1, {"c": 2}]}\r\n{"d": {"e": 1}}',
    "numbers": b'{"a": NaN, "b": Infinity, "c": 1e400, "d": 12345678901234567890123}\n',
    "escapes": rb'{"\u6e90": "\ud83d\ude00", "b\"c": "\ud800"}' + b"\n",
}
LEFT_TO_SPARK = {
    "single quotes": b"{'a': 1}\n",
    "text behind": b'{"a": 1} and more\n',
    "no object": b'{"a": 1}\n[{"b": 1}]\n',
    "a number": b"5\n",
    "a name twice": b'{"a": 1, "a": 2}\n',
    "half a surrogate": rb'{"\ud800": 2}' + b"\n",
    "cut off": b'{"a": 1}\n{"b": "\n',
    "other encoding": '{"a": "来源"}\n'.encode("gb18030"),
}


def look(path, content: bytes):
    path.write_bytes(content)
    file = File(str(path), len(content), datetime.now(UTC))
    return json_objects([file], Input(path=str(path), origin="human"))


@pytest.mark.parametrize("case", LIKE_SPARK)
def test_the_columns_are_those_of_spark(spark, tmp_path, case):
    objects = look(tmp_path / "pairs.jsonl", LIKE_SPARK[case])
    assert objects is not None
    read = spark.read.option("primitivesAsString", True).json(str(tmp_path / "pairs.jsonl"))
    assert sorted({name for row in objects for name in row}) == read.columns


@pytest.mark.parametrize("case", LEFT_TO_SPARK)
def test_what_python_may_read_otherwise_is_left_to_spark(tmp_path, case):
    assert look(tmp_path / "pairs.jsonl", LEFT_TO_SPARK[case]) is None
