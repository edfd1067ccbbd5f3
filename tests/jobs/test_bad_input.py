"""Unusable input must be quarantined or refused as design section 5 says, row by row."""

import json
import os
from collections import Counter
from itertools import chain

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gaixie.jobs.corpus.files import find_files
from gaixie.jobs.scoring import run as steps

A = "据目击者描述，火势从三楼的一间厨房开始蔓延，消防员用了将近五个小时才将其扑灭。"
B = "目击的人说，火是从三楼一个厨房烧起来的，消防队花了快五个小时才扑灭。"
BROKEN = "火势从三楼的一间厨房".encode()[:-1] + "开始蔓延，消防员赶到现场。".encode()
"""Text that is not UTF-8: a character is cut in two."""


# Rows


ROWS = [
    # (reason, source, paraphrase); test_score_corpus.py has the other reasons
    ("null", None, B),
    ("too_long", A, "长" * 1001),
    ("too_long", A * 2_000, B),
    ("no_han", A, "ひらがなとカタカナだけのぶんしょうです。"),
    ("identical", A, f" {A} "),
    ("undecodable", A, BROKEN),
    ("undecodable", BROKEN, "短"),  # the first reason in gaixie.udfs.text.validate.REASONS
    (None, A, B),
    (None, A, "长" * 1000),
]


@pytest.fixture(scope="module")
def quarantined(score, tmp_path_factory):
    """Runs the job on ROWS in Parquet, with their numbers."""
    folder = tmp_path_factory.mktemp("rows")
    numbers = range(len(ROWS))
    columns = {"row": numbers, "pair_id": [f"mine {n}" for n in numbers]}
    for place, name in enumerate(("source", "paraphrase"), 1):
        texts = [row[place].encode() if isinstance(row[place], str) else row[place] for row in ROWS]
        columns[name] = pa.array(texts, pa.binary()).view(pa.string())  # unchecked
    table = pa.table(columns)
    pq.write_table(table, folder / "rows.parquet")
    return score(folder / "out", "--input", folder / "rows.parquet", "--origin", "llm")


def test_each_row_goes_to_quarantine_under_its_reason(quarantined):
    assert quarantined.code == 0, quarantined.stderr
    found = dict(zip(quarantined.quarantine["row"], quarantined.quarantine["reason"], strict=True))
    assert found == {k: reason for k, (reason, *_) in enumerate(ROWS) if reason}
    fit = [k for k, (reason, *_) in enumerate(ROWS) if reason is None]
    assert sorted(quarantined.scored["row"]) == fit
    accounts = {"read": 9, "scored": 2, "quarantined": 7, "duplicates": 0}
    assert quarantined.manifest["rows"]["llm"] == accounts
    reasons = Counter(reason for reason, *_ in ROWS if reason)
    assert quarantined.manifest["quarantine"]["llm"] == reasons
    rows = quarantined.quarantine.set_index("row")  # it keeps the texts
    assert rows.loc[0, "source"] is None
    assert rows.loc[1, "paraphrase"] == "长" * 1001
    assert rows.loc[5, "paraphrase"] == r"火势从三楼的一间厨\xe6\x88开始蔓延，消防员赶到现场。"
    assert set(rows["origin"]) == {"llm"}


def test_malformed_lines_are_kept(score, tmp_path, monkeypatch):
    """Names of columns may hold a dot or a backtick."""
    lines = {
        "jsonl": ['{"source": "' + A, "no JSON"],
        "csv": [A, f"{A},{B},llm,{B}", f"{A},{B},{B},llm"],
        "tsv": [f"{A}\t{B}\tllm\t\t"],
    }
    good = {"source": A, "paraphrase": B, "kind": "llm", "meta.id": 7, "`x`": float("nan")}
    good = json.dumps(good, ensure_ascii=False)
    broken = good.encode().replace(B.encode(), BROKEN)
    texts = {
        "jsonl": [good, *lines["jsonl"], broken],
        "csv": ["source,paraphrase,kind", f"{B},{A},llm", *lines["csv"]],
        "tsv": ["source\tparaphrase\tkind", *lines["tsv"], f"{B}\t{A}甲\tllm"],
    }
    texts["csv"].append(A.encode() + b"," + BROKEN + b",human")
    for kind, of_file in texts.items():
        rows = [row if isinstance(row, bytes) else row.encode() for row in of_file]
        (tmp_path / f"in.{kind}").write_bytes(b"\n".join(rows))
    inputs = [{"path": f"{tmp_path}/in.{f}", "origin_column": "kind"} for f in lines]
    given = (tmp_path / "out", "--set", f"inputs={json.dumps(inputs)}")
    run = score(*given, "--max-quarantined", 0.5)
    assert run.code == 2
    assert "rows are in quarantine; nothing was published; see" in run.stderr
    assert "Not published: 8 of 11 rows" in (run.folder / "report.html").read_text("utf-8")
    with monkeypatch.context() as patch:  # while the run reads, somebody touches a file

        def touched(path: str):
            os.utime(tmp_path / "in.csv")
            return find_files(path)

        patch.setattr(steps, "find_files", touched)
        run = score(*given)
    assert run.code == 2
    assert "in.csv: changed while it was read; nothing was published" in run.stderr
    run = score(*given, "--resume")
    assert run.code == 0, run.stderr
    malformed = run.quarantine.query("reason == 'malformed'")
    assert sorted(malformed["malformed_line"]) == sorted(chain(*lines.values()))
    assert {*malformed["input_file"]} == {f"file:{tmp_path}/in.{kind}" for kind in lines}
    undecodable = run.quarantine.query("reason == 'undecodable'")
    assert set(undecodable["origin"]) == {"llm", "human"}
    assert not undecodable["malformed_line"].notna().any()
    found = "火势从三楼的一间厨\ufffd<e6><88>开始蔓延，消防员赶到现场。"
    assert set(undecodable["paraphrase"]) == {found}
    rows = pd.DataFrame(run.manifest["rows"]).sum(axis=1)
    assert rows.to_dict() == {"read": 11, "scored": 3, "quarantined": 8, "duplicates": 0}
    assert set(run.manifest["rows"]) <= {"llm", "human", "unknown"}
    assert run.scored[["meta.id", "`x`"]].dropna().to_numpy().tolist() == [["7", "NaN"]]


def test_a_run_is_an_ordinary_input(score, quarantined, tmp_path):
    again = score(tmp_path / "out", "--input", quarantined.folder)
    assert again.code == 0, again.stderr
    assert again.scored["input_pair_id"].tolist() == quarantined.scored["input_pair_id"].tolist()
    pd.testing.assert_frame_equal(quarantined.scored, again.scored, check_like=True)


# Settings

REFUSED = {
    "": "nothing to read",
    "--input {1}": "origin",
    "{1} --input {0} --origin llm": "paraphrase",
    "--input {0} --origin gpt": "origin",
    "--input {1} --origin llm --model /none": "/none/spscore.json: no such file",
    "--input {1} --origin llm --tier paper": "a model of tier core, not paper",
    "--set min_characters=2000": "min_characters",
    "--max-characters 10": "--max-characters: settings: min_characters is above",
    "--set cuts.llm.scores=[0.5,0.4,0.6]": "cuts",
    '--set inputs=[{{"path":"a","origin":"llm","origin_column":"b"}}]': "inputs",
    "--set nonsense=1": "nonsense",
}
"""For each command line, what its error names."""


def test_what_is_refused_leaves_nothing(score, tmp_path):
    bad, good = tmp_path / "a.csv", tmp_path / "b.csv"
    bad.write_text(f"source,words\n{A},{B}\n", "utf-8")
    good.write_text(f"source,paraphrase\n{A},{B}\n", "utf-8")
    for line, named in REFUSED.items():
        run = score(tmp_path / "out", *line.format(bad, good).split())
        assert run.code == 2, line
        [error] = run.stderr.splitlines()
        assert error.startswith("score_corpus: error: ")
        assert named in error, line
        assert not run.folder.exists()
