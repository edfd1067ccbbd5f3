"""The files of an input must be read or named: files listed = read + left out."""

import os
from contextlib import nullcontext

import pytest

from gaixie.jobs.corpus.files import check_apart, choose_files, find_files, folder_columns
from gaixie.jobs.corpus.input import Input
from gaixie.udfs.command_line import UserError

ROW = "source,paraphrase\n甲,乙\n"


def make(folder, *names, text=ROW):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def find(folder, name="") -> tuple[list[str], list[str]]:
    """Returns the paths below a folder of the data files, and of the others."""
    data, others = find_files(f"{folder}/{name}".rstrip("/"))
    start = f"file:{folder}/"
    return [f.uri.removeprefix(start) for f in data], [uri.removeprefix(start) for uri in others]


def test_each_file_is_data_or_named(tmp_path):
    make(tmp_path, "a.csv", "对/b.csv", "c d%20[1].csv", "x 10:00.csv")
    make(tmp_path, "_b.csv", ".hidden", "_temporary/c.csv", ".a.csv.crc")
    (tmp_path / "empty.csv").touch()
    os.mkfifo(tmp_path / "pipe")
    data, others = find(tmp_path)
    assert data == ["a.csv", "c d%20[1].csv", "x 10:00.csv", "对/b.csv"]
    assert others == [".a.csv.crc", ".hidden", "_b.csv", "_temporary/c.csv", "empty.csv", "pipe"]
    assert find(tmp_path, "_b.csv") == (["_b.csv"], [])


def test_links(tmp_path):
    """A folder is read once, whichever links lead to it; a link that leads nowhere is refused."""
    make(tmp_path, "in/a.csv", "in/v/w/c.csv", "real/b.csv", "other.csv")
    folder = tmp_path / "in"
    links = {"current": ".", "latest": ".", "up": "..", "z": "../real", "y": "../real"}
    links |= {"other.csv": "../other.csv", ".#lock": "nobody@nowhere", "_now": "v/w"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    data, others = find(folder)
    assert data == ["a.csv", "other.csv", "v/w/c.csv", "y/b.csv"]
    assert others == [".#lock", "_now", "current", "latest", "up", "z"]
    for target in ("gone.csv", "b.csv"):
        (folder / "b.csv").symlink_to(target)
        with pytest.raises(UserError, match=rf"in/b\.csv: a link to {target}"):
            find_files(str(folder))
        (folder / "b.csv").unlink()
    check_apart(f"{tmp_path}/out", [str(folder)])  # up is not read
    with pytest.raises(UserError, match=r"lies in the input .*/in/[yz]: "):
        check_apart(f"{tmp_path}/real", [str(folder)])
    (folder / "l\udcff").symlink_to(".")
    for call in (find_files, lambda path: check_apart(path, [])):
        with pytest.raises(UserError, match=r"l\\xff.*': the name is not UTF-8"):
            call(f"{folder}/l\udcff")


NAMES = ("a[1]", "[a", "a]", "{a,b}", "{a", "a}", "a%20b", "a%", "a b", "a*", "a?")


def test_a_name_is_a_pattern_only_where_no_such_file_exists(tmp_path):
    make(tmp_path, *(f"{name}.csv" for name in NAMES), "b.csv", "c.csv", "y/z/d.tsv")
    for name in NAMES:
        assert find(tmp_path, f"{name}.csv")[0] == [f"{name}.csv"]
    assert find(tmp_path, "{[bc].csv,nowhere,**/d.tsv}")[0] == ["b.csv", "c.csv", "y/z/d.tsv"]
    with pytest.raises(UserError, match="no such file or folder"):
        find_files(str(tmp_path / "*.parquet"))


def test_the_output_of_a_job_stands_for_its_table(tmp_path):
    make(tmp_path, "made/pairs/a.csv", "made/quarantine/reason=x/b.csv")
    (tmp_path / "made/manifest.json").write_text('{"gaixie": "1"}')
    assert find(tmp_path, "made")[0] == ["made/pairs/a.csv"]
    make(tmp_path, "killed/_work/started.json", "killed/pairs/origin=llm/stage=1/b.csv")
    for path in ("killed", "killed/pairs", "{made,killed}", "killed/pairs/origin=llm/stage=1"):
        with pytest.raises(UserError, match=r"killed.*: not published"):
            find_files(str(tmp_path / path))


def test_columns_in_the_names_of_folders(tmp_path):
    name = "in/origin=llm/day=007%2F中/a.csv"
    make(tmp_path, name)
    uri = f"file:{tmp_path}/{name}"
    expected = {"origin": "llm", "day": "007/中"}
    assert folder_columns(uri, f"{tmp_path}/in") == expected
    assert folder_columns(uri, f"{tmp_path}/{{in,out}}/*=llm") == expected
    assert folder_columns(uri, f"{tmp_path}/in/origin=llm") == {"day": "007/中"}
    assert folder_columns(uri, f"{tmp_path}/in/../in") == expected
    assert folder_columns("s3a://b/k=__HIVE_DEFAULT_PARTITION__/a", "s3://b") == {"k": None}


FOLDERS = {
    "a.parquet README.md readme.txt b.parquet": ("parquet", "a.parquet b.parquet"),
    "a.txt README.md": ("tsv", "a.txt"),
    "a.jsonl b.ndjson.gz c.JSON": ("jsonl", "a.jsonl b.ndjson.gz c.JSON"),
    "jsonl: pairs.data a.csv": ("jsonl", "pairs.data"),
    "csv: a.csv b.parquet": ("csv", "a.csv"),
    "tsv: a.csv": ("tsv", "a.csv"),
    "README.md": None,
    "a.csv b.csv c.parquet d.md": None,
}


@pytest.mark.parametrize(("names", "expected"), FOLDERS.items())
def test_the_files_of_the_format(tmp_path, names, expected):
    kind, _, listed = names.rpartition(": ")
    make(tmp_path, *listed.split())
    data, _ = find_files(str(tmp_path))
    settings = Input(path="in", origin="llm", format=kind or None)
    with nullcontext() if expected else pytest.raises(UserError, match="--format"):
        kind, chosen = choose_files(settings, data)
        assert (kind, " ".join(file.uri.rpartition("/")[2] for file in chosen)) == expected


LIES = "lies in the input"
APART = [
    ("in/out", "in", LIES),
    ("in/out", "in/*", LIES),
    ("a/b/out", "a/{b,c}", LIES),
    ("s3a://bucket/in/out", "s3a://bucket/", LIES),
    ("file:///tmp/in/out", "/tmp/in", LIES),
    ("in/out", "in/**/*.parquet", LIES),
    ("in/out", "", "an empty path"),
    ("a/b/out", "a/?/out/runs", "where jobs write"),
    ("s3a://b/o", "s3a://b/o/runs", "where jobs write"),
    ("out", "out/runs/a/scored", None),
    (".", "pairs.csv", None),  # beside the written files
    ("data", "data/*.parquet", None),
    ("inside", "in", None),
    ("s3a://bucket/in/out", "s3a://another/in", None),
    ("s3a://in/out", "in", None),
]


@pytest.mark.parametrize(("output", "path", "message"), APART)
def test_an_output_apart_from_its_inputs(output, path, message):
    with pytest.raises(UserError, match=message) if message else nullcontext():
        check_apart(output, ["elsewhere", path])
