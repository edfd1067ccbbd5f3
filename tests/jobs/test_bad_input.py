"""Unusable input must be quarantined or refused as design section 5 says, row by row."""

import gzip
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
        "too_long": 1,
        "no_han": 2,
        "identical": 2,
        "undecodable": 2,
    }


def test_quarantine_keeps_the_texts(quarantined):
    rows = quarantined.quarantine.set_index("row")
    assert rows.loc[9, "source"] == rows.loc[9, "paraphrase"] == A
    assert rows.loc[0, "source"] is None
    assert rows.loc[6, "paraphrase"] == "长" * 1001
    assert rows.loc[11, "paraphrase"] == r"火势从三楼的一间厨\xe6\x88开始蔓延，消防员赶到现场。"
    assert set(rows["origin"]) == {"llm"}


def test_undecodable_bytes_in_text_files(score, tmp_path):
    write_text(tmp_path / "in" / "a.csv", "source,paraphrase", f"{A},{B}")
    with open(tmp_path / "in" / "a.csv", "ab") as file:
        file.write(A.encode() + b"," + BROKEN + b"\n")
    line = json.dumps({"source": A, "paraphrase": "X"}, ensure_ascii=False).encode()
    good = line.replace(b"X", B.encode())
    write_text(tmp_path / "b.jsonl", good + b"\n", line.replace(b"X", BROKEN) + b"\n")
    config = write_text(
        tmp_path / "score.yaml",
        Path("conf/score.yaml").read_text().replace("inputs: []", "")
        + "inputs:\n"
        + f"- {{path: {tmp_path}/in, origin: llm}}\n- {{path: {tmp_path}/b.jsonl, origin: human}}",
    )
    run = score(tmp_path / "out", "--config", config)
    assert run.code == 0, run.stderr
    assert run.manifest["quarantine"] == {"llm": {"undecodable": 1}, "human": {"undecodable": 1}}
    [line] = run.quarantine["malformed_line"].dropna()
    assert r'"paraphrase": "火势从三楼的一间厨\xe6\x88开始蔓延' in line


def test_malformed_lines_are_kept(score, tmp_path):
    lines = {
        "jsonl": ['{"source": "' + A, "no JSON"],
        "csv": [A, f"{A},{B},llm,{B}", f"{A},{B},{B},llm"],
        "tsv": [f"{A}\t{B}\tllm\t\t"],
    }
    good = json.dumps({"source": A, "paraphrase": B, "kind": "llm"}, ensure_ascii=False)
    write_text(tmp_path / "in.jsonl", good, *lines["jsonl"])
    write_text(tmp_path / "in.csv", "source,paraphrase,kind", f"{B},{A},llm", *lines["csv"])
    write_text(tmp_path / "in.tsv", "source\tparaphrase\tkind", *lines["tsv"])
    inputs = [{"path": f"{tmp_path}/in.{f}", "origin_column": "kind"} for f in lines]
    run = score(tmp_path / "out", "--set", f"inputs={json.dumps(inputs)}")
    assert run.code == 0, run.stderr
    assert set(run.quarantine["reason"]) == {"malformed"}
    assert sorted(run.quarantine["malformed_line"]) == sorted(chain(*lines.values()))
    rows = pd.DataFrame(run.manifest["rows"]).sum(axis=1)
    assert rows.to_dict() == {"read": 8, "scored": 2, "quarantined": 6, "duplicates": 0}
    assert set(run.manifest["rows"]) <= {"llm", "unknown"}
    assert len(run.scored) == 2


# The job stops before work starts


def refused(run, *parts: str) -> None:
    """Asserts exit code 2, one line that contains all parts, and no output."""
    assert run.code == 2, run.stderr
    for part in parts:
        assert part in run.error
    assert not run.folder.exists()


ONE = {"source": [A], "paraphrase": [B]}
LLM, KIND = ("--origin", "llm"), ("--origin-column", "kind")
CASE = "columns 'source' and 'Source' differ only in case: rename one"
MANY = ",".join(["source", "paraphrase", *map(str, range(5_000))]) + f"\n{A},{B}\n"
LICENCE = ONE | {"License": ["MIT"]}
REFUSED = [
    ("a.parquet", {"source": [A], "x": [B]}, LLM, "no column 'paraphrase', expected string; it ha"),
    ("a.parquet", ONE | {"paraphrase": [7]}, LLM, "column 'paraphrase' is bigint, expected string"),
    ("a.parquet", ONE | {"kind": [1.5]}, KIND, "column 'kind' is double, expected string"),
    (
        "a.parquet",
        ONE | {"SL": ["x"]},
        LLM,
        "column 'SL' has the name of a column that the job writes",
    ),
    ("a.parquet", ONE | {"fit": ["x"]}, LLM, "column 'fit' has the name of a column that the job"),
    ("a.parquet", LICENCE, (*LLM, "--license", "CC0-1.0"), "has a column 'license', but the setti"),
    ("b.csv", f"source,Source,paraphrase\n{A},{B},{B}\n", LLM, CASE),
    ("b.csv", MANY, LLM, "5,002 columns, and a run carries all of them; Java runs out of memory"),
    ("c.jsonl", json.dumps({"source": A, "target": B}), KIND, "no column 'paraphrase', expected"),
]


@pytest.mark.parametrize(("name", "content", "given", "message"), REFUSED)
def test_columns_that_are_refused(score, tmp_path, name, content, given, message):
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    else:
        write_parquet(path, content)
    refused(score(tmp_path / "out", "--input", path, *given), f"{path}: {message}")


def test_type_that_differs_between_files(score, tmp_path):
    first = {"source": [A], "paraphrase": [B], "year": [1]}
    write_parquet(tmp_path / "in" / "a.parquet", first)
    path = write_parquet(tmp_path / "in" / "b.parquet", first | {"year": ["一九九八"]})
    run = score(tmp_path / "out", "--input", tmp_path / "in", "--origin", "llm")
    refused(run, f"{path}: column 'year' is string, expected bigint", "a.parquet")

    inputs = [{"path": f"{tmp_path}/in/{f}.parquet", "origin": "llm"} for f in "ab"]
    run = score(tmp_path / "out", "--set", f"inputs={json.dumps(inputs)}")
    refused(run, f"{path}: column 'year' is string, but bigint in {tmp_path}/in/a.parquet")


def test_unknown_origin(score, tmp_path):
    table = {"source": [A] * 2, "paraphrase": [B] * 2, "kind": ["llm", "gpt"]}
    path = write_parquet(tmp_path / "in.parquet", table)
    known = "expected one of parallel, back_translation, llm, human"
    run = score(tmp_path / "out", "--input", path, "--origin", "gpt")
    refused(run, f"--input {path}: origin: unknown, {known}")
    run = score(tmp_path / "out", "--input", path, "--origin-column", "kind")
    refused(run, f"{path}: column 'kind' holds the unknown origin 'gpt', {known}")

    path = write_parquet(tmp_path / "some/a b%.parquet", table | {"kind": ["llm", None]})
    write_parquet(tmp_path / "some/a.parquet", table | {"kind": ["llm", "human"]})
    run = score(tmp_path / "out", "--input", path.parent, "--origin-column", "kind")
    refused(run, f"error: {path}: column 'kind' holds no origin in a row", known)


NOWHERE = {
    "--input {0}/*.parquet --origin llm": "{0}/*.parquet: no such file or folder",
    "--input nosuch://bucket/key --origin llm": "nosuch://bucket/key: ",
    "": "nothing to read: give --input, or inputs in the config file",
    "--input {0} --origin llm --output=": "nowhere to write: give --output, or output in the con",
}


@pytest.mark.parametrize(("line", "message"), NOWHERE.items())
def test_nothing_to_read_and_nowhere_to_write(score, tmp_path, line, message):
    run = score(tmp_path / "out", *line.format(tmp_path).split())
    refused(run, message.format(tmp_path))


EMPTY = {
    "only hidden files": {"_SUCCESS": b"x", ".a.jsonl": b"{}"},
    "no rows in Parquet": {"a.parquet": None},
    "header only": {"a.csv": b"source,paraphrase\n"},
    "blank lines": {"a.jsonl": b"\n\n"},
}


@pytest.mark.parametrize("files", EMPTY.values(), ids=EMPTY)
def test_empty_input(score, tmp_path, files):
    folder = tmp_path / "in"
    folder.mkdir()
    for name, data in files.items():
        if data is None:
            no_rows = pa.table({"source": [A], "paraphrase": [B]}).slice(1)
            write_parquet(folder / name, no_rows)
        else:
            (folder / name).write_bytes(data)
    run = score(tmp_path / "out", "--input", folder, "--origin", "llm")
    assert run.code == 2
    error = run.stderr.strip().splitlines()[-1]
    assert str(folder) in error
    assert "expected at least one" in error or "no JSON object" in error
    assert not run.folder.exists()


def test_unreadable_file(score, tmp_path):
    path = write_text(tmp_path / "a.parquet", "source,paraphrase", f"{A},{B}")
    run = score(tmp_path / "out", "--input", path, "--origin", "llm")
    refused(run, f"{path}: not a readable Parquet file: ")

    path = write_text(tmp_path / "pairs.xlsx", "PK")
    run = score(tmp_path / "out", "--input", path, "--origin", "llm")
    refused(
        run,
        f"{path}: the name does not end in a known format, expected .parquet, .jsonl, .csv or .tsv",
    )

    line = json.dumps({"source": A, "paraphrase": B}).encode() + b"\n"
    packed = gzip.compress(b"".join(line.replace(b"A", b"%d" % k) for k in range(2000)))
    for name in ("cut.jsonl.gz", "cut.csv.gz"):
        path = tmp_path / name
        path.write_bytes(packed[:-30])
        run = score(tmp_path / "out", "--input", path, "--origin", "llm")
        assert run.code == 2, run.stderr
        assert str(path) in run.stderr.splitlines()[-1]


def test_files_of_different_headers(score, tmp_path):
    write_text(tmp_path / "in" / "a.csv", "source,paraphrase", f"{A},{B}")
    path = write_text(tmp_path / "in" / "b.csv", "paraphrase,source", f"{B},{A}")
    run = score(tmp_path / "out", "--input", tmp_path / "in", "--origin", "llm")
    assert run.code == 2
    assert f"{path}: its header differs from that of the other files" in run.stderr.splitlines()[-1]
    assert not (run.folder / "manifest.json").exists()


def test_other_files_of_a_folder_are_passed_over(score, tmp_path):
    write_parquet(tmp_path / "in" / "a.parquet", {"source": [A], "paraphrase": [B]})
    for name in ("README.md", "readme.txt", "_SUCCESS", "sub/notes.docx", "z.xlsx"):
        write_text(tmp_path / "in" / name, "about these pairs")
    run = score(tmp_path / "out", "--input", tmp_path / "in", "--origin", "llm")
    assert run.code == 0, run.stderr
    line = f"{tmp_path}/in: 1 parquet files; skipped 4 others: README.md, readme.txt, notes.docx, …"
    assert line in run.stderr.splitlines()
    assert run.manifest["inputs"][0]["files"] == 1
    assert len(run.scored) == 1


def test_pair_id_of_the_input_is_carried_under_another_name(score, tmp_path):
    table = {"source": [A], "paraphrase": [B], "pair_id": ["mine"]}
    path = write_parquet(tmp_path / "a.parquet", table)
    run = score(tmp_path / "out", "--input", path, "--origin", "llm")
    assert run.code == 0, run.stderr
    assert f"{path}: the run carries its column 'pair_id' as 'input_pair_id'" in run.stderr
    assert run.scored["input_pair_id"].tolist() == ["mine"]
    assert len(run.scored["pair_id"][0]) == 32
    path = write_parquet(tmp_path / "b.parquet", table | {"input_pair_id": ["too"]})
    run = score(tmp_path / "out", "--input", path, "--origin", "llm", run_id="b")
    refused(run, f"{path}: column 'pair_id' has the name of a column that the job writes")


# Settings


SETTINGS = {
    "min_characters=2000": "min_characters is above max_characters",
    "cuts.llm.scores=[0.5, 0.4, 0.6]": "cuts.llm: cut points must ascend within 0 and 1, not [0.5",
    "cuts.llm.quantiles=[0, 0.4, 0.6]": "cuts.llm: cut points must be either scores or quantiles",
    "cuts={gpt: {scores: [0, 0.4, 0.6]}}": "cuts.gpt",
    "inputs=[{path: a, origin: gpt}]": "inputs.0.origin: ",
    "inputs=[{path: a}]": "needs either an origin or an origin_column",
    "unit_mb=-1": "unit_mb: Input should be greater than 0 (given: -1)",
    "segmenter=word": "segmenter: expected jieba or ltp:NAME_OR_FOLDER",
    "csv.encoding=klingon": "csv.encoding: unknown encoding, expected one such as utf-8, gb18030",
    "since=yesterday": "since: expected a time such as 2026-11-24",
    "tier=best": "tier: ",
}


@pytest.mark.parametrize(("assignment", "message"), SETTINGS.items())
def test_bad_settings(score, tmp_path, assignment, message):
    run = score(tmp_path, "--set", "cuts.llm.scores=[0, 0.1, 0.2]", "--set", assignment)
    refused(run, message)


def test_missing_model(score, tmp_path):
    given = ("--input", EXAMPLES, "--origin", "llm", "--model", tmp_path / "none")
    refused(score(tmp_path, *given), f"{tmp_path}/none/spscore.json: no such file")

    (tmp_path / "spscore.json").write_text('{"format": 1}')
    given = ("--input", EXAMPLES, "--origin", "llm", "--model", tmp_path)
    refused(score(tmp_path, *given), "spscore.json: an SPScore-zh 0.1 model")


def test_a_model_of_another_tier(score, model, tmp_path):
    given = ("--input", EXAMPLES, "--origin", "llm", "--tier", "paper")
    refused(score(tmp_path, *given), f"{model}: a model of tier core, not paper")


# Corrupt Parquet among good files


@pytest.fixture(scope="module")
def damaged_pages(grow, tmp_path_factory) -> Path:
    """Returns a folder with one good file and damaged ones.

    Damage: indices that a dictionary lacks, found only when values are read; a changed byte in a
    page with a checksum; a missing footer.
    """
    folder = tmp_path_factory.mktemp("pages")
    table = grow(1200)
    for k, name in enumerate("abcd"):
        path = folder / f"{name}.parquet"
        options = {"compression": "none", "write_page_checksum": name == "c"}
        write_parquet(path, table.slice(300 * k, 300), **options)
        data = bytearray(path.read_bytes())
        column = pq.read_metadata(path).row_group(0).column(1)
        assert column.path_in_schema == "source"
        end = column.dictionary_page_offset + column.total_compressed_size
        if name == "b":
            data[end - 200 : end] = b"\xff" * 200
        elif name == "c":
            data[column.dictionary_page_offset + 2000] ^= 0x01
        elif name == "d":
            del data[-100:]
        path.write_bytes(data)
    return folder


def test_damaged_pages_are_named(score, damaged_pages, tmp_path):
    for name in "bc":
        path = damaged_pages / f"{name}.parquet"
        run = score(tmp_path / "out", "--input", path, "--origin-column", "origin")
        assert run.code == 2, run.stderr
        last = run.stderr.splitlines()[-1]
        assert last == f"score_corpus: error: file:{path}: cannot be read to its end: corrupt"


def test_damaged_pages_are_set_aside_and_counted(score, damaged_pages, tmp_path):
    given = ("--input", damaged_pages, "--origin-column", "origin")
    given += ("--on-corrupt-file", "quarantine")
    run = score(tmp_path / "out", *given)
    assert run.code == 0, run.stderr
    assert sorted(run.scored["n"]) == [*range(300)]
    [source] = run.manifest["inputs"]
    assert {Path(uri).name for uri in source["corrupt_files"]} == {
        f"{name}.parquet" for name in "bcd"
    }
    assert {Path(uri).name: rows for uri, rows in source["corrupt_rows"].items()} == {
        "b.parquet": 300,
        "c.parquet": 300,
    }
    text = "3 of 4 input files with about 600 rows and those of 1 files without a readable footer"
    assert f"set aside: {text}; the manifest names them" in run.stdout.splitlines()[-1]
    assert text in (run.folder / "report.html").read_text()
    table = [line.split() for line in run.stdout.splitlines() if str(damaged_pages) in line]
    assert [str(damaged_pages), "3", "600", "1"] in table
