"""Every kind of text file must be read back as written, and errors must be one line."""

import csv
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.storage.text_tables import count_rows, read_columns, read_lines, writing

NAMES = ["source", "paraphrase"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ROWS = st.lists(st.tuples(TEXTS, TEXTS | st.none()), max_size=6)


@given(ROWS)
def test_jsonl_and_parquet_come_back(tmp_path_factory, rows):
    table = pa.table(
        [pa.array(column, pa.string()) for column in zip(*rows, strict=True)] or [[], []],
        pa.schema(dict.fromkeys(NAMES, pa.string())),
    )
    folder = tmp_path_factory.mktemp("rows")
    for name in ("a.jsonl", "a.parquet"):
        with writing(str(folder / name), table.schema) as write:
            write(table)
        assert [*read_columns(str(folder / name), NAMES)] == rows
        assert [b for (b,) in read_columns(str(folder / name), ["paraphrase"])] == [
            b for _, b in rows
        ]


@given(st.lists(TEXTS.filter(lambda text: not {*text} & {"\0", "\r"}), min_size=1, max_size=6))
def test_csv_as_python_writes_it(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("rows") / "a.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([NAMES, *([text, "好"] for text in texts)])
    assert [*read_columns(str(path), NAMES)] == [(text, "好") for text in texts]
    assert count_rows(str(path), NAMES) == len(texts)


def test_tsv_has_a_row_a_line(tmp_path):
    path = str(tmp_path / "a.tsv")
    table = pa.table({"source": ['一"\t二\n三', None], "score": [0.5, None]})
    with writing(path, table.schema) as write:
        write(table)
    assert [*read_columns(path, ["score", "source"])] == [("0.500000", '一" 二 三'), ("", "")]


def test_bytes_that_are_not_utf8(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("一\n".encode() + b"\xff\xe4\n")
    name = str(path)
    assert [*read_lines(name)] == ["一", "��"]
    assert [text for (text,) in read_columns(name, [], "surrogateescape")] == ["一", "\udcff\udce4"]
    with pytest.raises(ValueError, match=r"a\.txt, line 2: not UTF-8 \(invalid start byte\)"):
        [*read_lines(name, "strict")]


def test_what_makes_no_row(tmp_path):
    """A byte order mark, empty lines between JSON objects and an empty table must make no row."""
    (tmp_path / "a.jsonl").write_text('\ufeff{"source": "一"}\n\n{"source": null}\n', "utf-8")
    assert [*read_columns(str(tmp_path / "a.jsonl"), ["source"])] == [("一",), (None,)]
    for name in ("a.tsv", "a.csv", "a.txt"):
        (tmp_path / name).write_bytes(b"")
        assert [*read_columns(str(tmp_path / name), ["source"])] == []


def test_a_lone_surrogate_in_json(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"source": "一\ud800"}), "utf-8")
    [(text,)] = read_columns(str(path), ["source"])
    assert text.startswith("一�")
    assert text.isprintable()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"source\tb\n", "a.tsv: no column 'paraphrase', it has: source, b"),
        ("a.jsonl", b'{"source": "a"}', "a.jsonl, line 1: no column 'paraphrase', it has: source"),
        ("a.jsonl", b"\n[]", "a.jsonl, line 2: expected a JSON object"),
        ("a.jsonl", b'{"source": 1, "paraphrase": ""}', "line 1: 'source' is 1, not a string"),
        ("a.parquet", b"PAR1", "a.parquet: not a Parquet file"),
        ("n.parquet", b"", "column 'source' is of int64, expected string"),
        ("a.docx", b"", "a.docx: expected a file of .txt, .tsv,"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    if name == "n.parquet":
        pq.write_table(pa.table({name: [1] for name in NAMES}), tmp_path / name)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        [*read_columns(str(tmp_path / name), NAMES)]
    assert "\n" not in str(error.value)
