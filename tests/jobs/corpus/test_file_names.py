"""Names of input files with characters of patterns or URIs must be taken literally."""

import json
from pathlib import Path

import pandas as pd

from gaixie.jobs.corpus.storage import Storage

A = "据目击者描述，火势从三楼的一间厨房开始蔓延，消防员用了将近五个小时才将其扑灭。"
B = "目击的人说，火是从三楼一个厨房烧起来的，消防队花了快五个小时才扑灭。"
NAMES = ("a[1]", "[a", "a]", "{a,b}", "{a", "a}", "a%20b", "a%", "a b", "a*", "a?")
SOME = NAMES[::3]
WRITERS = {
    "parquet": lambda rows, path: rows.to_parquet(path),
    "jsonl": lambda rows, path: rows.to_json(path, orient="records", lines=True),
    "csv": lambda rows, path: rows.to_csv(path, index=False),
    "tsv": lambda rows, path: rows.to_csv(path, index=False, sep="\t"),
}


def write_all(folder: Path) -> list[str]:
    """Writes a folder per format with files of these names, two rows each. Returns the folders."""
    folders = []
    for kind, write in WRITERS.items():
        (folder / f"{kind} [x]%41{{y}}").mkdir()
        folders.append(str(folder / f"{kind} [x]%41{{y}}"))
        for name in NAMES if kind == "csv" else SOME:
            texts = {
                "source": [f"{kind}/{name}：{A}", f"{kind}/{name}：{B}"],
                "paraphrase": [B, f'"{A}"\n'],  # as CSV, with and without quotes
            }
            write(pd.DataFrame(texts), f"{folders[-1]}/{name}.{kind}")
    return folders


def test_folders_and_what_is_in_them(score, tmp_path):
    folders = write_all(tmp_path)
    inputs = [{"path": folder, "origin": "llm"} for folder in folders]
    run = score(tmp_path / "out {1}[2] %41", "--set", f"inputs={json.dumps(inputs)}")
    assert run.code == 0, run.stderr
    assert run.manifest["rows"]["llm"]["scored"] == 2 * (len(NAMES) + 3 * len(SOME))


def test_a_name_is_a_pattern_only_where_no_such_file_exists(spark, tmp_path):
    for name in NAMES:
        (tmp_path / f"{name}.csv").write_text("source,paraphrase\n")
        [file] = Storage(spark).list_files(f"{tmp_path}/{name}.csv")
        assert file.uri == f"file:{tmp_path}/{name}.csv"


def test_patterns_stay_patterns(spark, tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("source,paraphrase\n")
    found = Storage(spark).list_files(f"{tmp_path}/{{a,[b]}}.csv")
    assert [file.uri[-5:] for file in found] == ["a.csv", "b.csv"]
