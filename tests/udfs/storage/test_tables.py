"""Tables must be read alike wherever they are, and whatever a file holds must be in a row."""

import csv
import io
import json
import lzma
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaixie.udfs.storage.records import FIELD_LINES, Delimited, json_records, likely_encoding
from gaixie.udfs.storage.tables import Form, Part, TableError, header_of, kind_of, read, scan
from gaixie.udfs.storage.text_columns import count_rows, read_columns, read_lines, writing

NAMES = ["source", "paraphrase"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
A, B = "火从三楼烧起来。", "三楼先着的火。"


def rows_of(path: Path, form: Form | None = None, part: Part | None = None) -> list:
    """Returns the rows of a file; of a malformed record its text."""
    form = form or Form(str(kind_of(path.name)))
    batches = read(part or Part(str(path)), header_of(str(path), form), form)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [row.pop("malformed_line") or row for row in rows]


def read_csv(lines: str, quote: str = '"') -> list:
    table = Delimited(io.StringIO(lines, newline=""), ",", quote)
    width = len(table.header())
    return [cells if cells is not None else text for _, cells, text in table.records(width)]


# CSV


@pytest.mark.parametrize(
    ("lines", "records"),
    [
        # A quote that is closed on another line, and one that is never closed.
        ('1,2,"开\n3,4,5" x\n', [["1", "2", "开"], ["3", "4", '5" x']]),
        ('1,"开,\n3,4,5\n6,7,8\n', ['1,"开,', ["3", "4", "5"], ["6", "7", "8"]]),
        ('1,"甲\n乙",3\n4,5,6\n', [["1", "甲\n乙", "3"], ["4", "5", "6"]]),
        ("1,2\n3,4,5,6\n", ["1,2", "3,4,5,6"]),  # too few and too many
        ('1,"他说""好""",3\n1,5" 长,3\n', [["1", '他说"好"', "3"], ["1", '5" 长', "3"]]),
        ("\n1,2,3\n\r\n,,\n", [["1", "2", "3"], ["", "", ""]]),  # blank lines, empty cells
    ],
)
def test_quotes_never_swallow_rows(lines, records):
    assert read_csv("a,b,c\n" + lines) == records


def test_a_field_of_many_lines_is_read_line_by_line():
    inside = "\n".join("x" * FIELD_LINES)
    assert len(read_csv(f'a,b\n1,"{inside}"\n')) == 1
    assert len(read_csv(f'a,b\n1,"{inside}\n"\n')) == FIELD_LINES + 1


@given(st.text(st.sampled_from('甲乙,"\n'), max_size=40))
def test_every_character_of_csv_is_in_one_record(text):
    records = read_csv("a,b\n" + text)
    joined = "".join(r if isinstance(r, str) else "".join(r) for r in records)
    assert (joined.count("甲"), joined.count("乙")) == (text.count("甲"), text.count("乙"))


@given(st.lists(TEXTS.filter(lambda text: not {*text} & {"\0", "\r"}), min_size=1, max_size=6))
def test_csv_as_python_writes_it(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("rows") / "a.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([NAMES, *([text, "好"] for text in texts)])
    assert [*read_columns(str(path), NAMES)] == [(text or None, "好") for text in texts]
    assert count_rows(str(path), NAMES) == len(texts)


@given(st.lists(st.text(st.sampled_from("甲a,"), max_size=6), max_size=8), st.integers(1, 9))
def test_parts_of_a_file_are_the_file(tmp_path_factory, lines, size):
    path = tmp_path_factory.mktemp("rows") / "a.csv"
    path.write_text("\n".join(["x,y", *lines]), "utf-8")
    form, places = Form("csv"), [*range(0, path.stat().st_size, size), None]
    parts = [Part(str(path), a or 0, b) for a, b in pairwise(places)]
    assert [row for part in parts for row in rows_of(path, form, part)] == rows_of(path)
    assert sum(scan(part, form).rows for part in parts) == len(rows_of(path))


@pytest.mark.parametrize(("encoding", "end"), [("utf-16", "\n"), ("utf-8", "\r")])
def test_the_first_part_has_all_lines_of_a_file_that_cannot_be_divided(encoding, end, tmp_path):
    """UTF-16 says so by its mark; lines that end in a carriage return, by the first of them."""
    path, sources = tmp_path / "pairs.tsv", [f"{A}{n}" for n in range(50)]
    path.write_bytes(end.join(["source\tn", *(f"{a}\t1" for a in sources), ""]).encode(encoding))
    half = path.stat().st_size // 2
    assert [row["source"] for row in rows_of(path, part=Part(str(path), 0, half))] == sources
    assert rows_of(path, part=Part(str(path), half, None)) == []


def test_a_quote_is_open_at_the_end_of_a_part(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('source,paraphrase\n"甲\n乙",丙\n', "utf-8")
    cut = path.read_bytes().index("乙".encode())
    assert scan(Part(str(path), 0, cut), Form("csv")).open_quotes


def test_columns_without_a_name_and_other_delimiters(tmp_path):
    path = tmp_path / "a.csv"
    for delimiter in ",;\t":
        text = '\ufeff\ufeff"source\u200b",paraphrase,,\n甲,乙,,\n\ufeff"丙",丁\n戊,己,,x\n'
        path.write_text(text.replace(",", delimiter), "utf-8")
        assert scan(Part(str(path)), Form("csv")).names == [*NAMES, "_c3"]
        assert [*read_columns(str(path), NAMES)] == [("甲", "乙"), ("丙", "丁"), ("戊", "己")]


# JSON lines


OBJECT = {"source": A, "n": "1.50", "deep": '{"a": 1, "a": [2]}', "no": None, "yes": "true"}
LINE = f'{{"source": "{A}", "n": 1.50, "deep": {{"a": 1, "a": [2]}}, "no": null, "yes": true}}'
JSON = {
    LINE: [OBJECT],
    LINE + LINE: [OBJECT, OBJECT],
    f"{LINE} {LINE} ": [OBJECT, OBJECT],
    "\ufeff\ufeff" + LINE.replace("source", "\ufeffsource\u200b"): [OBJECT],
    '{"a": NaN, "b": -Infinity}': [{"a": "NaN", "b": "-Infinity"}],
    '{"id": 12345678901234567890123}': [{"id": "12345678901234567890123"}],
    '{"a": "\\ud83d", "b": "\\ud83d\\ude00"}': [{"a": "\ufffd", "b": "😀"}],
    "{}": [{}],
    **dict.fromkeys(
        (
            *("[]", f"[{LINE}]", '"text"', "3", "null", "{1: 2}", '{"a" 1}', '{"a": 1,}'),
            *(f"{LINE} and more", '{"a": 1, "a": 2}', '{"source": ["x"]}', '{"source": {}}'),
            "[" * 9999,
        )
    ),
}


@pytest.mark.parametrize("line", JSON, ids=range(len(JSON)))
def test_objects_of_a_line(line):
    expected = JSON[line]
    found = [*json_records(["\n", line + "\n"], ["source"])]
    if expected is None:
        assert found == [(2, None, line)]
    else:
        assert [cells for _, cells, _ in found] == expected


# Encodings, compression, workbooks


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030", "big5"])
def test_encodings(tmp_path, kind, encoding):
    sign = {"csv": ",", "tsv": "\t"}.get(kind)
    text = json.dumps({"source": A, "paraphrase": B}, ensure_ascii=False)
    text = f"source{sign}paraphrase\r\n{A}{sign}{B}\r\n" if sign else f"{text}\r\n"
    text = text.translate(str.maketrans("楼烧来从着", "樓燒來從著")) if encoding == "big5" else text
    path = tmp_path / f"a.{kind}"
    path.write_bytes(text.encode(encoding))
    [row] = rows_of(path, Form(kind, encoding if encoding in ("gb18030", "big5") else None))
    assert [*row] == NAMES
    assert row["source"] in text
    if encoding in ("gb18030", "big5"):
        found = scan(Part(str(path)), Form(kind))
        assert (found.rows - found.undecodable, found.good) == (0, 0)


def test_bytes_that_are_not_utf8_are_marked(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("source,paraphrase\n厨\n甲,厨".encode() + b"\xe6\x88x\n")
    assert rows_of(path) == ["厨", {"source": "甲", "paraphrase": "厨\ufffd<e6><88>x"}]
    (tmp_path / "a.txt").write_bytes("一\n".encode() + b"\xff\n")
    assert [*read_lines(str(tmp_path / "a.txt"))] == ["一", "\ufffd<ff>"]
    with pytest.raises(TableError, match=r"a\.txt, line 2: not UTF-8"):
        [*read_lines(str(tmp_path / "a.txt"), "strict")]


SENTENCES = "志愿者在清理河道时发现一块石碑，文物部门已经把它运回去了。"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030", "big5"]
)
@pytest.mark.parametrize("cut", [0, 1])
def test_the_encoding_that_a_file_looks_like(encoding, cut):
    text = SENTENCES.translate(str.maketrans("发现块门经运时们", "發現塊門經運時們"))
    data = ("{" + (text if encoding == "big5" else SENTENCES)).encode(encoding)
    assert likely_encoding(data[: len(data) - cut]) == encoding
    assert likely_encoding(bytes(range(128, 256)) * 9) is None


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst", "lz4"])
def test_a_compressed_file_and_half_of_one(tmp_path, ending):
    lines = "".join(f"{A}{number}\t{B}\n" for number in range(20_000))
    data = ("source\tparaphrase\n" + lines).encode()
    path = tmp_path / f"a.tsv.{ending}"
    if ending == "xz":
        path.write_bytes(lzma.compress(data))
    else:
        codec = {"gz": "gzip", "zst": "zstd"}.get(ending, ending)
        with pa.CompressedOutputStream(str(path), codec) as file:
            file.write(data)
    assert scan(Part(str(path)), Form("tsv")).rows == 20_000
    for broken in (path.read_bytes()[: path.stat().st_size // 2], path.read_bytes() + b"plain\n"):
        path.write_bytes(broken)
        assert scan(Part(str(path)), Form("tsv")).fault.startswith(f"{path}: ")
    path = path.rename(tmp_path / "a.tsv")
    assert f"unpack it, or add .{ending} to" in scan(Part(str(path)), Form("tsv")).fault


def test_workbooks(tmp_path):
    book = pytest.importorskip("openpyxl").Workbook()
    book.create_chartsheet("chart")
    for row in (["原句\u200b", "改写", None], ["甲_x000D_", 5, None], [None], ["丙", None, None]):
        book.active.append(row)
    path = tmp_path / "a.xlsx"
    book.save(path)
    wrong = tmp_path / "wrong.xlsx"  # says that it ends with its second row
    with ZipFile(path) as read, ZipFile(wrong, "w") as written:
        for name in read.namelist():
            written.writestr(name, read.read(name).replace(b'ref="A1:B4"', b'ref="A1:B2"'))
    assert wrong.read_bytes() != path.read_bytes()
    for one in (path, wrong):
        assert [*read_columns(str(one), ["原句", "改写"])] == [("甲\r", "5"), ("丙", None)]
    book["Sheet"]["B2"] = "=B1"
    book.save(path)
    with pytest.raises(TableError, match=r"a\.xlsx: sheet Sheet, cell B2 has a formula without"):
        rows_of(path)
    book.create_sheet("more").append(["x"])
    book.save(path)
    with pytest.raises(TableError, match=r"a\.xlsx: expected one sheet .*, found Sheet, more"):
        rows_of(path)


# Parquet, and columns for commands


@given(st.lists(st.tuples(TEXTS, TEXTS | st.none()), max_size=6))
def test_jsonl_and_parquet_come_back(tmp_path_factory, rows):
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)] or [[], []]
    table = pa.table(columns, pa.schema(dict.fromkeys(NAMES, pa.string())))
    folder = tmp_path_factory.mktemp("rows")
    for name in ("a.jsonl", "a.parquet"):
        with writing(str(folder / name), table.schema) as write:
            write(table)
        assert [*read_columns(str(folder / name), NAMES)] == rows


def test_spark_takes_every_type_back(tmp_path):
    """Its Arrow reader knows one kind of list, and times of microseconds."""
    time, texts, path = 1_700_000_000_123, [["一", None]], str(tmp_path / "a.parquet")
    columns = {
        "time": pa.array([time], pa.timestamp("ms", "UTC")),
        "large": pa.array(texts, pa.large_list(pa.string())),
        "fixed": pa.array(texts, pa.list_(pa.string(), 2)),
        "nested": pa.array([{"t": time}], pa.struct([("t", pa.timestamp("ms"))])),
        "whole": pa.array([[7, None]], pa.list_(pa.uint16())),
        "uuid": pa.array([bytes(range(16))], pa.uuid()),
        "bytes": pa.array([b"\xff\0"], pa.binary(2)),
    }
    pq.write_table(pa.table(columns), path)
    [batch] = read(Part(path), [*columns], Form("parquet"))
    assert str(batch.schema.field("nested").type) == "struct<t: timestamp[us]>"
    assert str(batch.schema.field("whole").type) == "list<item: int64>"
    assert batch.column("uuid").to_pylist() == ["00010203-0405-0607-0809-0a0b0c0d0e0f"]
    assert batch.column("bytes").to_pylist() == [b"\xff\0"]
    for name in ("large", "fixed"):
        kind = batch.schema.field(name).type
        assert (type(kind), kind.value_type) == (pa.ListType, pa.string())
        assert batch.column(name).to_pylist() == texts
    assert batch.column("time").cast(pa.int64()).to_pylist() == [time * 1000]


def test_tsv_has_a_row_a_line(tmp_path):
    path = str(tmp_path / "a.tsv")
    table = pa.table({"source": ['一"\t二\n三', None], "score": [0.5, None]})
    with writing(path, table.schema) as write:
        write(table)
    assert [*read_columns(path, ["score", "source"])] == [("0.500000", '一" 二 三'), (None, None)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[("a.tsv", b"source\tb\n"), ("a.jsonl", b'{"source": "a"}'), ("a.jsonl", b"\n[]")],
        *[("a.csv", b"source,paraphrase\nx\n"), ("a.csv", b"PK\3\4 a workbook")],
        ("a.csv", b"\xd0\xcf\x11\xe0 an old workbook"),
        *[("a.xlsx", b"PK\3\4"), ("a.parquet", b"PAR1"), ("n.parquet", b""), ("a.docx", b"")],
        ("nowhere.csv", None),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content):
    path = tmp_path / name
    if name == "n.parquet":
        pq.write_table(pa.table({name: [1] for name in NAMES}), path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(TableError, match=rf"^{path}[^\n]*$"):
        [*read_columns(str(path), NAMES)]
