"""Unusable input must be quarantined or refused as design section 5 says, row by row."""

import json
from itertools import chain
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

A = "据目击者描述，火势从三楼的一间厨房开始蔓延，消防员用了将近五个小时才将其扑灭。"
B = "目击的人说，火是从三楼一个厨房烧起来的，消防队花了快五个小时才扑灭。"
BROKEN = "火势从三楼的一间厨房".encode()[:-1] + "开始蔓延，消防员赶到现场。".encode()
"""Text that is not UTF-8: a character is cut in two."""

EXAMPLES = Path(__file__).parents[2] / "examples/pairs.jsonl"


def write_parquet(path: Path, columns: dict | pa.Table, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, **options)
    return path


def write_text(path: Path, *lines: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(x.encode() + b"\n" if isinstance(x, str) else x for x in lines))
    return path


def utf8_unchecked(values: list[bytes | None]) -> pa.Array:
    """Returns a string array that holds any bytes."""
    binary = pa.array(values, pa.binary())
    valid, offsets, data = binary.buffers()
    return pa.StringArray.from_buffers(len(values), offsets, data, valid, binary.null_count)


# Rows


ROWS = [
    # (reason, source, paraphrase)
    ("null", None, B),
    ("null", A, None),
    ("empty", "", B),
    ("empty", A, " \u3000\n"),
    ("too_short", "今天真冷啊。", B),
    ("too_short", A, "一二三四五六七八九十一二三四"),
    ("too_long", A, "长" * 1001),
    ("too_long", A * 2_000, B),
    ("no_han", "The bakery on the corner opens at six.", B),
    ("no_han", A, "ひらがなとカタカナだけのぶんしょうです。"),
    ("identical", A, A),
    ("identical", A, f" {A} "),
    ("undecodable", A, BROKEN),
    ("undecodable", BROKEN, "短"),  # the first reason in gaixie.udfs.text.validate.REASONS
    (None, A, B),
    (None, "一二三四五六七八九十一二三四五", "十二三四五六七八九十一二三四五"),
    (None, A, "长" * 1000),
]


@pytest.fixture(scope="module")
def quarantined(score, tmp_path_factory):
    """Runs the job on ROWS in Parquet, with their numbers."""
    folder = tmp_path_factory.mktemp("rows")
    texts = [[t.encode() if isinstance(t, str) else t for t in c] for c in zip(*ROWS, strict=True)]
    table = pa.table(
        {
            "source": utf8_unchecked(texts[1]),
            "paraphrase": utf8_unchecked(texts[2]),
            "row": pa.array(range(len(ROWS))),
            "pair_id": pa.array([f"mine {n}" for n in range(len(ROWS))]),
        }
    )
    path = write_parquet(folder / "rows.parquet", table)
    return score(folder / "out", "--input", path, "--origin", "llm")


def test_each_row_goes_to_quarantine_under_its_reason(quarantined):
    assert quarantined.code == 0, quarantined.stderr
    found = dict(zip(quarantined.quarantine["row"], quarantined.quarantine["reason"], strict=True))
    assert found == {k: reason for k, (reason, *_) in enumerate(ROWS) if reason}
    fit = [k for k, (reason, *_) in enumerate(ROWS) if reason is None]
    assert sorted(quarantined.scored["row"]) == fit
    assert quarantined.manifest["rows"]["llm"] == {
        "read": len(ROWS),
        "scored": len(fit),
        "quarantined": len(ROWS) - len(fit),
        "duplicates": 0,
    }
    assert quarantined.manifest["quarantine"]["llm"] == {
        "null": 2,
        "empty": 2,
        "too_short": 2,
        "too_long": 2,
        "no_han": 2,
        "identical": 2,
        "undecodable": 2,
    }


def test_quarantine_keeps_the_texts(quarantined):
    rows = quarantined.quarantine.set_index("row")
    assert rows.loc[10, "source"] == rows.loc[10, "paraphrase"] == A
    assert rows.loc[0, "source"] is None
    assert rows.loc[6, "paraphrase"] == "长" * 1001
    assert rows.loc[12, "paraphrase"] == r"火势从三楼的一间厨\xe6\x88开始蔓延，消防员赶到现场。"
    assert set(rows["origin"]) == {"llm"}


def test_malformed_lines_are_kept(score, tmp_path):
    """Names of columns may hold a dot or a backtick."""
    lines = {
        "jsonl": ['{"source": "' + A, "no JSON"],
        "csv": [A, f"{A},{B},llm,{B}", f"{A},{B},{B},llm"],
        "tsv": [f"{A}\t{B}\tllm\t\t"],
    }
    good = {"source": A, "paraphrase": B, "kind": "llm", "meta.id": 7, "`x`": float("nan")}
    broken = json.dumps(good | {"paraphrase": "X"}, ensure_ascii=False).encode()
    good = json.dumps(good, ensure_ascii=False)
    broken = broken.replace(b"X", BROKEN) + b"\n"
    write_text(tmp_path / "in.jsonl", good, *lines["jsonl"], broken)
    bytes_of = A.encode() + b"," + BROKEN + b",human\n"
    write_text(
        tmp_path / "in.csv", "source,paraphrase,kind", f"{B},{A},llm", *lines["csv"], bytes_of
    )
    write_text(tmp_path / "in.tsv", "source\tparaphrase\tkind", *lines["tsv"], f"{B}\t{A}甲\tllm")
    inputs = [{"path": f"{tmp_path}/in.{f}", "origin_column": "kind"} for f in lines]
    run = score(tmp_path / "out", "--set", f"inputs={json.dumps(inputs)}")
    assert run.code == 0, run.stderr
    malformed = run.quarantine.query("reason == 'malformed'")
    assert sorted(malformed["malformed_line"]) == sorted(chain(*lines.values()))
    undecodable = run.quarantine.query("reason == 'undecodable'")
    assert set(undecodable["origin"]) == {"llm", "human"}
    assert not undecodable["malformed_line"].notna().any()
    found = "火势从三楼的一间厨\ufffd<e6><88>开始蔓延，消防员赶到现场。"
    assert set(undecodable["paraphrase"]) == {found}
    rows = pd.DataFrame(run.manifest["rows"]).sum(axis=1)
    assert rows.to_dict() == {"read": 11, "scored": 3, "quarantined": 8, "duplicates": 0}
    assert set(run.manifest["rows"]) <= {"llm", "human", "unknown"}
    assert run.scored[["meta.id", "`x`"]].dropna().to_numpy().tolist() == [["7", "NaN"]]


def refused(run, *parts: str) -> None:
    """Asserts exit code 2, one line that contains all parts, and no output."""
    assert run.code == 2, run.stderr
    for part in parts:
        assert part in run.error
    assert not run.folder.exists()


def test_what_is_refused_leaves_nothing(score, tmp_path):
    path = write_text(tmp_path / "a.csv", "source,words", f"{A},{B}")
    for given in ((), ("--input", path), ("--input", path, "--origin", "gpt")):
        run = score(tmp_path / "out", *given)
        assert run.code == 2
        assert run.error
        assert not run.folder.exists()


def test_a_run_is_an_ordinary_input(score, quarantined, tmp_path):
    again = score(tmp_path / "out", "--input", quarantined.folder)
    assert again.code == 0, again.stderr
    assert again.scored["input_pair_id"].tolist() == quarantined.scored["input_pair_id"].tolist()
    pd.testing.assert_frame_equal(quarantined.scored, again.scored, check_like=True)


# Settings


SETTINGS = (
    "min_characters=2000",
    "cuts.llm.scores=[0.5, 0.4, 0.6]",
    "inputs=[{path: a, origin: gpt}]",
    "inputs=[{path: a, origin: llm, origin_column: b}]",
    "unit_mb=-1",
    "segmenter=word",
    "nonsense=1",
)


def test_bad_settings(score, tmp_path):
    for assignment in SETTINGS:
        refused(score(tmp_path, "--set", assignment), assignment.split("=")[0].split(".")[0])


def test_missing_model(score, tmp_path):
    given = ("--input", EXAMPLES, "--origin", "llm", "--model", tmp_path / "none")
    refused(score(tmp_path, *given), f"{tmp_path}/none/spscore.json: no such file")
    tier = ("--input", EXAMPLES, "--origin", "llm", "--tier", "paper")
    refused(score(tmp_path, *tier), "a model of tier core, not paper")
