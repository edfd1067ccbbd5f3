"""Files that are not what they seem: each row must be counted, and unreadable parts named."""

import datetime
import decimal
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gaixie.jobs.corpus.json_lines import row_of

A = "据目击者描述，火势从三楼的一间厨房开始蔓延，消防员用了将近五个小时才将其扑灭。"
B = "目击的人说，火是从三楼一个厨房烧起来的，消防队花了快五个小时才扑灭。"
GOOD = f'{{"source": "{A}", "paraphrase": "{B}", "note": 1.50, "more": {{"a": 1, "a": [2]}}}}'
UNDECODABLE = GOOD.replace("扑灭。", "扑灭\\ud83d。", 1)
MALFORMED = [
    "[]",
    f"[{GOOD}]",
    f"[{GOOD}, {GOOD}]",
    GOOD.replace(f'"{A}"', f'["{A}"]'),
    GOOD.replace('"note"', '"source"'),
    GOOD.removesuffix("}") + ",}",
    '"text"',
]


def score_file(score, path: Path, *given):
    run = score(path.parent / "out", "--input", path, "--origin", "llm", *given)
    assert run.code == 0, run.stderr
    return run


def test_json_lines(score, tmp_path):
    """JSON oddities must not lose rows: half a surrogate pair, arrays, a list as text, a repeated
    key."""
    emoji = GOOD.replace("火势", "火势\\ud83d\\ude00")
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([GOOD, UNDECODABLE, *MALFORMED, emoji, " ", ""]))
    run = score_file(score, path)
    assert run.manifest["rows"]["llm"]["read"] == 3 + len(MALFORMED)
    assert run.manifest["quarantine"]["llm"] == {"undecodable": 1, "malformed": len(MALFORMED)}
    assert sorted(run.quarantine["malformed_line"].dropna()) == sorted(MALFORMED)
    assert run.scored["note"].tolist() == ["1.50"] * 2
    assert run.scored["more"].tolist() == ['{"a": 1, "a": [2]}'] * 2
    assert sum("😀" in source for source in run.scored["source"]) == 1


def test_lines_by_line_are_those_of_spark(score, tmp_path):
    """A file read line by line must give Spark's rows, and one more for the line that Spark cannot
    read."""
    odd = {"source": None, "note": [1, {"b": None}], "paraphrase": 7, "more": False}
    lines = [GOOD, json.dumps(odd), "{}", f"{GOOD} and more", '{"source": "x', "3", "null"]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("\n".join([*lines, "[]"]))
    runs = [score_file(score, tmp_path / f"{k}.jsonl", "--run-id", k) for k in "ab"]
    rows = [run.folder.with_name(k) for k, run in zip("ab", runs, strict=True)]
    found = []
    for folder in rows:
        tables = [pq.read_table(path).to_pylist() for path in sorted(folder.rglob("*.parquet"))]
        found.append({json.dumps(row, sort_keys=True) for table in tables for row in table})
    assert len(found[1] - found[0]) == 1  # the odd line
    assert found[0] <= found[1]


@pytest.mark.parametrize("text", ['{"a" 1}', '{"a": 1', "{1: 2}", "", "x", '{"a": 1,}'])
def test_what_is_no_object_is_malformed(text):
    assert row_of(text.encode(), ["a"], []) == [None, text.encode()]


def test_types_of_parquet_that_spark_does_not_know(score, tmp_path):
    """Columns of types that Spark lacks must be skipped by name; pandas writes nanosecond times."""
    columns = {
        "source": [A],
        "paraphrase": [B],
        "time": pa.array([1], pa.timestamp("ns")),
        "half": pa.array([np.float16(1)]),
        "clock": pa.array([datetime.time(1)], pa.time64("us")),
        "huge": pa.array([decimal.Decimal("1.00")], pa.decimal256(50, 2)),
        "note": ["kept"],
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    run = score_file(score, path)
    assert run.scored["note"].tolist() == ["kept"]
    for name in ("time", "half", "clock", "huge"):
        assert f"{path}: skipped column '{name}': Spark cannot read " in run.stderr
    given = ("--input", path, "--origin", "llm", "--source-column", "time")
    run = score(tmp_path / "out", *given, run_id="b")
    assert run.code == 2
    assert "column 'time' is " in run.error


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_byte_order_mark_of_gb18030(score, tmp_path, kind):
    text = f"source,paraphrase\n{A},{B}\n" if kind == "csv" else GOOD
    path = tmp_path / f"a.{kind}"
    path.write_text("\ufeff" + text, "gb18030")
    run = score_file(score, path, "--encoding", "gb18030")
    assert run.scored["source"].tolist() == [A]


def test_files_that_are_refused(score, tmp_path):
    """Files must be refused with one line: an unknown compression, a repeated column, a binary."""
    table, given = tmp_path / "a.parquet", ("--origin", "llm", "--on-corrupt-file", "quarantine")
    pq.write_table(pa.table({"source": [A], "paraphrase": [B]}), table, compression="brotli")
    twice, binary = tmp_path / "a.csv", tmp_path / "b.csv"
    twice.write_text(f"source,source,paraphrase\n{A},{A},{B}\n")
    binary.write_bytes(b"PK\x03\x04\x00\x1b[31m\x00" * 20)
    for path, said in {
        table: "compressed with brotli, which this Spark cannot read",
        twice: f"{twice}: two columns are named 'source': rename one",
        binary: "it looks like a binary file",
    }.items():
        run = score(tmp_path / "out", "--input", path, *given)
        last = run.stderr.splitlines()[-1]
        assert (run.code, last.isprintable()) == (2, True)
        assert said in last
