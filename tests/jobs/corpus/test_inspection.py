"""Every file of an input must be read or named before work starts, and read as it is."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gaixie.jobs.corpus import inspection, reading
from gaixie.jobs.corpus.files import find_input
from gaixie.jobs.corpus.input import Input
from gaixie.udfs.command_line import UserError

A, B = "火势从三楼的厨房开始蔓延。", "火是从三楼厨房烧起来的。"
ONE = {"source": [A], "paraphrase": [B]}
TIME = pa.array([1], pa.timestamp("ns"))


def put(path: Path, content: str | bytes | dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        split = {"use_dictionary": False, "column_encoding": {"split": "BYTE_STREAM_SPLIT"}}
        pq.write_table(pa.table(content), path, **split if "split" in content else {})
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def inspected(spark, path: Path, **given) -> reading.InputFiles:
    given = given or {"origin": "llm"}
    found = find_input(Input(path=str(path), **given))
    [source] = inspection.inspect_inputs(spark, [found])
    return source


def rows_of(spark, path: Path, **given) -> list[dict]:
    source = inspected(spark, path, **given)
    rows = reading.read_files(spark, source, source.files)
    return [row.asDict() for row in rows.withColumn("input_file", reading.file_of_row()).collect()]


OBJECT = json.dumps({"source": A, "paraphrase": B, "meta.id": 7})
CSV = f"source,paraphrase\n{A},{B}\n"
READ = {
    "two objects on a line": ({"a.jsonl": OBJECT + OBJECT}, 2, {"meta.id": "7"}),
    "a half": ({"a.jsonl": OBJECT.replace(": 7", r': "\ud83d"')}, 1, {"meta.id": "\ufffd"}),
    "a backtick": ({"a.csv": f"source,paraphrase,`x`\n{A},{B},1\n"}, 1, {"`x`": "1"}),
    "a colon in the name": ({"x 10:00.csv": CSV}, 1, {}),
    "usual names": ({"a.csv": f"原句;改写\n{A};{B}\n"}, 1, {}),
    "an encoding that Spark lacks": ({"a.parquet": ONE | {"split": [0.5]}}, 1, {"split": 0.5}),
    "a type that Spark lacks": ({"a.parquet": ONE | {"t": TIME}}, 1, {"t": f"{TIME[0]}"}),
    "a stale checksum": ({"a.parquet": ONE, ".a.parquet.crc": "crc\0\0\0\2\0"}, 1, {}),
    "a Chinese name": ({"对.parquet": ONE}, 1, {}),
    "a name like a pattern": ({"[a].parquet": ONE, "{b.parquet": ONE}, 2, {}),
    "no job's": ({"manifest.json": OBJECT, "pairs/a.jsonl": OBJECT}, 2, {"meta.id": "7"}),
    "folders": ({"origin=human/day=007%2F中/a.parquet": ONE}, 1, {"day": "007/中"}),
    "folders of text": ({"day=1/a.jsonl": OBJECT}, 1, {"day": "1", "meta.id": "7"}),
    "other files": ({"a.parquet": ONE, "_b.parquet": "x", "z.xlsx": "x"}, 1, {}),
}


@pytest.mark.parametrize("name", READ)
def test_odd_files_are_read(spark, tmp_path, name):
    files, count, extra = READ[name]
    for path, content in files.items():
        put(tmp_path / path, content)
    source = inspected(spark, tmp_path)
    expected = {"source": A, "paraphrase": B, "origin": "llm", "malformed_line": None} | extra
    rows = rows_of(spark, tmp_path)
    assert {row.pop("input_file") for row in rows} == {file.uri for file in source.files}
    assert rows == [expected] * count
    assert len(source.files) + len(source.left_out) == len(files)


def test_the_output_of_several_runs(spark, tmp_path):
    """Origins are in the names of folders, which begin at another place in each output."""
    for run, origin in (("a", "human"), ("a", "llm"), ("b", "llm")):
        put(tmp_path / run / f"scored/origin={origin}/a.parquet", ONE)
        put(tmp_path / run / "manifest.json", '{"gaixie": "1"}')
    rows = rows_of(spark, tmp_path / "*", origin_column="origin")
    assert sorted(row["origin"] for row in rows) == ["human", "llm", "llm"]
    put(tmp_path / "c/origin=gpt/a.jsonl", OBJECT)
    with pytest.raises(UserError, match="gpt"):
        inspected(spark, tmp_path / "c", origin_column="origin")


@pytest.mark.parametrize("name", ["a.parquet", "b.csv"])
def test_spans_of_a_file_hold_each_row_once(spark, tmp_path, monkeypatch, name):
    monkeypatch.setattr(reading, "PART_BYTES", 3_000)
    texts = [f"{A}{k}" for k in range(100)]
    put(tmp_path / "b.csv", "\n".join(["source,paraphrase", *(f"{text},{B}" for text in texts)]))
    table = pa.table({"source": texts, "paraphrase": [B] * 100})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=17)
    source = inspected(spark, tmp_path / name)
    spans = source.spans(source.files[0], 3)
    assert len(spans) == 3
    parts = [reading.read_files(spark, source, source.files, span).collect() for span in spans]
    assert all(parts)
    assert sorted(row.source for part in parts for row in part) == sorted(texts)


def test_records_of_a_large_file_are_read_once(spark, tmp_path, monkeypatch):
    """Many tasks that share a file must read each record once, whether or not some span lines."""
    monkeypatch.setattr(inspection.files, "SMALL_BYTES", 0)
    monkeypatch.setattr(reading, "PART_BYTES", 3_000)
    monkeypatch.setattr(reading, "OPEN_BYTES", 0)
    texts = [f"{A}{k}" for k in range(120)]
    files = {name: ["source,paraphrase,note"] for name in ("a.csv", "b.csv")}
    files["a.csv"] += [f"{text},{B},x" for text in texts]
    files["b.csv"] += [f'{text},{B},"甲\n乙"' for text in texts]
    files["c.jsonl"] = [json.dumps({"source": text, "paraphrase": B}) for text in texts]
    for name, lines in files.items():
        source = inspected(spark, put(tmp_path / name, "\n".join(lines)))
        table = reading.read_files(spark, source, source.files)
        assert (table.rdd.getNumPartitions() > 3) == (name != "b.csv")
        read = table.collect()
        assert {row.malformed_line for row in read} == {None}
        assert sorted(row.source for row in read) == sorted(texts)


LLM, KIND, GB = {"origin": "llm"}, {"origin_column": "kind"}, {"encoding": "gb18030"}
NESTED = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["Id", "id"])
REFUSED = [
    ("a.parquet", {"source": [A], "x": [B]}, LLM, "paraphrase"),
    ("a.tsv", f"{A}\t{B}\t0\n", LLM, "csv.columns"),
    ("a.parquet", ONE | {"paraphrase": [7]}, LLM, "paraphrase"),
    ("a.parquet", ONE | {"kind": [1.5]}, KIND, "kind"),
    ("a.parquet", ONE | {"SL": ["x"]}, LLM, "SL"),
    ("a.parquet", ONE | {"meta": pa.ListArray.from_arrays([0, 1], NESTED)}, LLM, "meta"),
    ("a.parquet", ONE | {"fit": ["x"]}, LLM, "fit"),
    ("a.parquet", ONE | {"kind": ["gpt"]}, KIND, "gpt"),
    ("a.parquet", ONE | {"kind": [None]}, KIND, "kind"),
    ("a.parquet", ONE | {"License": ["MIT"]}, LLM | {"license": "CC0-1.0"}, "license"),
    ("a.parquet", pa.table(ONE).slice(1).to_pydict(), LLM, ""),
    ("a.parquet", "source,paraphrase", LLM, ""),
    ("b.csv", f"source,Source,paraphrase\n{A},{B},{B}\n", LLM, "Source"),
    ("b.csv", f"source,paraphrase,kind\n{A},{B},llm\n{A},{B},gpt\n", KIND, "line 3"),
    ("b.csv", b"PK\3\4\0\x1b[31m\0" * 20, LLM, ""),
    ("b.csv", f"source,paraphrase\n{A},{B}\n".encode("gb18030"), LLM, "--encoding gb18030"),
    ("b.csv", f"source,paraphrase,pair_id,Input_Pair_Id\n{A},{B},1,2\n", LLM, "pair_id"),
    ("b.csv", f"so\x1burce,paraphrase\n{A},{B}\n", LLM, r"so\x1burce"),
    ("b.csv", "source,paraphrase\n", LLM, ""),
    ("b.csv", f"原句,改写\n{A},{B}\n", LLM | {"source_column": "改写"}, "both source and para"),
    ("b.csv", f"source,paraphrase\n{A},{B},{B}\n{A}\n", LLM, "all 2 rows are malformed"),
    ("b.csv", f"\ufeffsource,paraphrase\n{A},{B}\n", LLM | {"csv": GB}, "it is UTF-8"),
    ("c.jsonl", json.dumps({"source": A, "words": B}), KIND, "paraphrase"),
    ("c.jsonl", OBJECT, KIND, "give --origin"),
    ("c.jsonl", f"[{OBJECT}]", LLM, "jq"),
    ("c.jsonl.gz", b"\x1f\x8b\x08\0\0\0\0\0", LLM, ""),
    ("d.docx", "x", LLM, ""),
]


@pytest.mark.parametrize(("name", "content", "given", "part"), REFUSED)
def test_what_is_refused_is_named(spark, tmp_path, name, content, given, part):
    put(tmp_path / name, content)
    with pytest.raises(UserError) as refused:
        inspected(spark, tmp_path / name, **given)
    line = str(refused.value)
    assert line.startswith(f"{tmp_path}/{name}")
    assert part in line
    assert line.isprintable()


def test_files_that_differ(spark, tmp_path):
    put(tmp_path / "a.parquet", ONE | {"year": [1]})
    for second in (ONE | {"year": ["一九九八"]}, ONE):
        path = put(tmp_path / "b.parquet", second)
        with pytest.raises(UserError, match=str(path)):
            inspected(spark, tmp_path)
    paths = [put(tmp_path / f"{n}.jsonl", OBJECT.replace("meta.id", n)) for n in ("note", "Note")]
    found = [find_input(Input(path=str(path), origin="llm")) for path in paths]
    with pytest.raises(UserError, match=r"column 'Note', but 'note' in .*/note\.jsonl: rename one"):
        inspection.inspect_inputs(spark, found)


@pytest.mark.parametrize("checksum", [False, True])
def test_damaged_pages_are_named(spark, tmp_path, checksum):
    """The reader's words must be passed on, whatever the cluster says of corrupt files: of indices
    that a dictionary lacks, found only when values are read, and of a changed byte in a page with a
    checksum."""
    path, texts = tmp_path / "a.parquet", [f"{A}{k}" for k in range(300)]
    table = pa.table({"source": texts, "paraphrase": texts[::-1]})
    pq.write_table(table, path, compression="none", write_page_checksum=checksum)
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset
    end = start + column.total_compressed_size
    if checksum:
        data[start + 2000] ^= 0x01
    else:
        data[end - 200 : end] = b"\xff" * 200
    path.write_bytes(data)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        source = inspected(spark, path)
        rows = reading.read_files(spark, source, source.files)
        with (
            pytest.raises(UserError, match=f"^{path}: ."),
            reading.errors_name_the_file(source.files, source.form),
        ):
            rows.write.format("noop").mode("overwrite").save()
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
