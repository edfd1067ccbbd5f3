"""CSV and TSV as people and programs write them must give the right records or be malformed."""

import csv
import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

A = "据目击者描述，火势从三楼的一间厨房开始蔓延，消防员用了将近五个小时才将其扑灭。"
B = "目击的人说，火是从三楼一个厨房烧起来的，消防队花了快五个小时才扑灭。"
HEAD = ["source", "paraphrase", "note"]
BREAKS = [
    [f"{A}{k}", f"{B[:10]}\n{B[10:]}{k}" if k % 2 else f"{B}{k}", f'"甲", "乙\n{k}"']
    for k in range(6)
]
"""Records with line breaks, delimiters and quotes inside."""
DOUBLED = [[f"{A}{k}", f"{B}他说：“{k}”", f'"甲"，"乙{k}"'] for k in range(6)]
"""Records with quotes, but no line breaks or delimiters inside."""
STRAY = [[f"{A}{k}", f"{B}{k}", '"没有关上' if k == 2 else f'5" {k}'] for k in range(6)]
"""Records as the web has them, with quotes that quote nothing."""


def written(path: Path, rows: list[list[str]], delimiter: str = ",", **options) -> Path:
    """Writes a file with Python's csv module. Returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encoding = options.pop("encoding", "utf-8")
    with open(path, "w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter, **options).writerows([HEAD, *rows])
    return path


def plain(path: Path, rows: list[list[str]], delimiter: str) -> Path:
    path.write_text("\n".join(delimiter.join(row) for row in [HEAD, *rows]) + "\n")
    return path


FILES = {
    "csv": (written, "a.csv", BREAKS, ","),
    "packed csv": (written, "d.csv", BREAKS, ","),
    "quotes in csv": (written, "b.csv", DOUBLED, ","),
    "stray in csv": (plain, "c.csv", STRAY, ","),
    "quoted tsv": (written, "a.quoted.tsv", BREAKS, "\t"),
    "quotes in quoted tsv": (written, "b.quoted.tsv", DOUBLED, "\t"),
    "stray in tsv": (plain, "c.tsv", STRAY, "\t"),
    "quotes of the web in tsv": (plain, "d.tsv", [[A, f'"{B}"', '"好"吗']], "\t"),
}


@pytest.fixture(scope="module")
def read(score, tmp_path_factory) -> dict[str, list]:
    """Returns the rows of each of FILES from one run that reads them all."""
    folder = tmp_path_factory.mktemp("delimited")
    for number, (kind, (write, name, rows, delimiter)) in enumerate(FILES.items()):
        path = folder / name.partition(".")[2] / name
        path.parent.mkdir(exist_ok=True)
        write(path, [[f"{number}：{row[0]}", *row[1:]] for row in rows], delimiter)
        if kind.startswith("packed"):
            path.with_name(f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    kinds = {"csv": {}, "tsv": {}, "quoted.tsv": {"quote": '"'}}
    inputs = [{"path": f"{folder}/{k}", "origin": "llm", "csv": form} for k, form in kinds.items()]
    run = score(folder / "out", "--set", f"inputs={json.dumps(inputs)}")
    assert run.code == 0, run.stderr
    assert not len(run.quarantine), run.quarantine
    found: dict[str, list] = {kind: [] for kind in FILES}
    for row in run.scored.sort_values("source").itertuples():
        number, _, source = row.source.partition("：")
        found[[*FILES][int(number)]].append([source, row.paraphrase, row.note])
    rows = run.manifest["rows"]["llm"]
    assert rows["read"] == rows["scored"] == sum(len(rows) for _, _, rows, _ in FILES.values())
    return found


@pytest.mark.parametrize("kind", FILES)
def test_records_are_those_that_were_written(read, kind):
    _, _, rows, _ = FILES[kind]
    if kind == "stray in csv":  # only the unclosed quote is lost
        rows = [[*row[:2], row[2].removeprefix('"')] for row in rows]
    assert read[kind] == rows


def test_malformed_records_beside_line_breaks(score, tmp_path):
    path = written(tmp_path / "in" / "a.csv", [*BREAKS, [A], [B, A, "x", "y"]])
    run = score(tmp_path / "out", "--input", path, "--origin", "llm")
    assert run.code == 0, run.stderr
    assert run.manifest["rows"]["llm"] == {
        "read": 8,
        "scored": 6,
        "quarantined": 2,
        "duplicates": 0,
    }
    assert sorted(run.quarantine["malformed_line"].str.strip()) == sorted([A, f"{B},{A},x,y"])


def test_settings_of_quote_and_delimiter(score, tmp_path):
    path = written(tmp_path / "a.csv", BREAKS, ";", quotechar="'")
    given = ("--origin", "llm", "--set", "csv.delimiter=;", "--set", 'csv.quote="\'"')
    run = score(tmp_path / "out", "--input", path, *given)
    assert run.code == 0, run.stderr
    assert sorted(run.scored["note"]) == sorted(row[2] for row in BREAKS)
    path = plain(tmp_path / "b.csv", [[A, f'"{B}"', ""]], ",")
    given = ("--input", path, "--origin", "llm", "--set", "csv.quote=''")
    run = score(tmp_path / "out", *given, run_id="b")
    assert run.scored["paraphrase"].tolist() == [f'"{B}"']


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16"])
def test_another_encoding(score, tmp_path, encoding):
    path = written(tmp_path / "in" / "a.csv", BREAKS, encoding=encoding)
    given = ("--input", path.parent, "--origin", "llm")
    if encoding == "gb18030":
        refused = score(tmp_path / "out", *given, "--on-corrupt-file", "quarantine")
        assert refused.code == 2
        last = refused.stderr.splitlines()[-1]
        assert last.startswith(
            f"score_corpus: error: file:{path}: it is not UTF-8: give its encoding"
        )
        assert "--encoding gb18030" in last
        assert not (refused.folder / "manifest.json").exists()
    run = score(tmp_path / "out", *given, "--encoding", encoding, run_id="b")
    assert run.code == 0, run.stderr
    expected = pd.DataFrame(BREAKS, columns=HEAD).sort_values("source", ignore_index=True)
    found = run.scored[HEAD].sort_values("source", ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_json_lines_in_another_encoding(score, tmp_path):
    line = json.dumps({"source": A, "paraphrase": B}, ensure_ascii=False)
    (tmp_path / "a.jsonl").write_bytes(f"{line}\n".encode("gb18030"))
    given = ("--input", tmp_path / "a.jsonl", "--origin", "llm")
    assert "give its encoding" in score(tmp_path / "out", *given).stderr.splitlines()[-1]
    run = score(tmp_path / "out", *given, "--encoding", "GB18030")
    assert run.code == 0, run.stderr
    assert run.scored["source"].tolist() == [A]


@pytest.mark.parametrize(("where", "encoding"), [("early", "utf-8"), ("late", "gb18030")])
def test_a_quote_that_is_never_closed(score, tmp_path, encoding, where):
    """An unclosed quote must stop the job with its line, or the rows after it become one field.

    It stands among records that do span lines.
    """
    path = written(tmp_path / "a.csv", BREAKS)
    text = path.read_text()
    broken = f'{A},"{B}开了，,\n'
    rows = "".join(f"{A}{k},{B},\n" for k in range(150))
    if where == "early":  # the next quote closes it, after more lines than a field may have
        text = f"{','.join(HEAD)}\n{broken}{rows}" + text.partition("\n")[2]
    else:
        text += f"{broken}{rows[: len(rows) // 30]}"
    path.write_text(text, encoding)
    number = text[: text.index(f'"{B}开了')].count("\n") + 1
    run = score(tmp_path / "out", "--input", path, "--origin", "llm", "--encoding", encoding)
    assert run.code == 2, run.stderr
    assert f"file:{path}, line {number}: a quote opens a field of " in run.stderr.splitlines()[-1]
    assert not (run.folder / "manifest.json").exists()
