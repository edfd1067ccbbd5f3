"""Translation memories must be read unit by unit, however they are cut into pieces."""

import gzip
import io

import pytest

from gaixie.jobs.corpus.storage import Storage
from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.read import open_input
from gaixie.jobs.pairs.settings import BuildSettings
from gaixie.jobs.pairs.tmx import END, is_whole, units, units_of


def variant(language: str, text: str, name: str = "xml:lang") -> str:
    return f'<tuv {name}="{language}"><seg>{text}</seg></tuv>'


def tmx(*of_units: str) -> bytes:
    body = "\n".join(f"<tu>{unit}</tu>" for unit in of_units)
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header/>\n<body>\n{body}\n</body></tmx>'.encode()


def read(data: bytes, path: str = "a.tmx", languages=("en", "zh")) -> list[tuple]:
    return list(units(io.BytesIO(data), path, *languages))


def test_languages_and_their_regions():
    unit = variant("EN-us", "Fire.") + variant("zh-CN", "着火了。") + variant("zh_TW", "失火了。")
    assert read(tmx(unit)) == [("Fire.", "着火了。"), ("Fire.", "失火了。")]
    assert read(tmx(unit), languages=("en", "zh-TW")) == [("Fire.", "失火了。")]
    assert read(tmx(unit), languages=("de", "zh-CN")) == [(None, "着火了。")]
    assert read(tmx(variant("en", "A.", "lang"), "")) == [("A.", None), (None, None)]


def test_inline_elements_and_compression():
    text = 'A <bpt i="1">&lt;b&gt;</bpt><hi>big</hi><ept i="1">&lt;/b&gt;</ept> fire.'
    data = tmx(variant("en", text) + variant("zh", "大火。"))
    assert read(data) == [("A big fire.", "大火。")]
    assert read(gzip.compress(data), "a.TMX.gz") == [("A big fire.", "大火。")]
    assert read(data.decode().encode("utf-16")) == [("A big fire.", "大火。")]


def read_in_pieces(data: bytes, size: int) -> list[tuple]:
    """Reads ``size`` units at a time, split at each END, as executors do."""
    pieces = data.split(END.encode())
    parts = [pieces[start : start + size] for start in range(0, len(pieces), size)]
    return [row for part in parts for row in units_of(part, "en", "zh")]


UNITS = [
    variant("en", 'A <hi x="1">big</hi> &amp; <ph>{1}</ph>fire.\n') + variant("zh-CN", "大火。"),
    "<note><![CDATA[ a <b> ]]></note>" + variant("EN", "B.", "lang"),
    variant("en", "C.") + variant("zh", "三。") + variant("zh_TW", "叁。") + variant("fr", "D."),
]
BEGINNINGS = (
    b"<?xml version='1.0' encoding='UTF-8' ?>\n<!DOCTYPE tmx SYSTEM 'tmx14.dtd'>\n",
    b"\xef\xbb\xbf<?xml version='1.0'?>",
    b"",
)


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_units_are_read_apart_as_they_are_together(beginning, size):
    data = beginning + tmx(*UNITS).partition(b"\n")[2] + b"\n"
    assert is_whole(io.BytesIO(data))
    assert read_in_pieces(data, size) == read(data)
    assert len(read(data)) == 4
    two_files = [*data.split(END.encode())] * 2
    assert units_of(two_files, "en", "zh") == [*read(data), *read(data)]


@pytest.mark.parametrize(
    "data",
    [
        tmx(*UNITS).decode().encode("utf-16"),
        tmx(*UNITS).replace(b'"1.0"', b'"1.0" encoding="latin-1"'),
        tmx(*UNITS)[:-20],
        tmx(*UNITS) + b"<!-- the end -->",
    ],
)
def test_other_encodings_and_ends_are_seen(data):
    assert not is_whole(io.BytesIO(data))


@pytest.mark.parametrize(
    "data",
    [
        tmx(f"<!-- </tu><tu>{UNITS[0]}</tu> --><tu>", UNITS[1]),
        tmx(variant("en", "<![CDATA[</tu>]]>")),
        tmx(variant("en", "A & B")),
        tmx("<own:note/>").replace(b"<tmx", b"<tmx xmlns:own='x'"),
        tmx("&own;").replace(b"<tmx", b"<!DOCTYPE tmx [<!ENTITY own ''>]>\n<tmx"),
        tmx(UNITS[0]).replace(b"</body>", b"</x></body>"),
        b"<html></tmx>",
    ],
)
def test_pieces_that_need_the_whole_are_refused(data):
    assert is_whole(io.BytesIO(data))
    with pytest.raises(JobError, match="a piece: "):
        read_in_pieces(data, 1)


@pytest.mark.parametrize(("note", "by"), [("<!-- </tu> -->", "executors"), ("<own:x/>", "driver")])
def test_a_file_is_read_in_pieces_where_it_can_be(spark, tmp_path, note, by):
    of_units = [variant("en", f"Fire {n}.") + variant("zh", f"大火{n}。") for n in range(3000)]
    of_units[2000] += note
    data = tmx(*of_units).replace(b"<tmx", b"<tmx xmlns:own='x'")
    (tmp_path / "a.tmx").write_bytes(data)
    given = {"method": "versions", "input": str(tmp_path / "a.tmx"), "source_lang": "en"}
    rows = open_input(spark, Storage(spark), BuildSettings.model_validate(given))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "100k")
    try:
        found = rows.convert(str(tmp_path / "rows")).collect()
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert {(row.source, row.paraphrase) for row in found} == {*read(data)}
    assert len(found) == 3000
    files = len([*(tmp_path / "rows").glob("*.parquet")])
    assert files > 2 if by == "executors" else files == 1


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        (tmx(variant("en", "A & B")), "a.tmx", "a.tmx: line 4: not well-formed XML: "),
        (tmx(variant("en", "A"))[:-9], "a.tmx", "a.tmx: line 5: not well-formed XML: unclosed"),
        (b"", "a.tmx", "a.tmx: line 1: not well-formed XML: no element found"),
        (b"<html></html>", "a.tmx", "a.tmx: not a TMX: its root is html"),
        (b"<tmx></tmx>", "a.tmx.gz", "a.tmx.gz: cannot be read: Not a gzipped file"),
    ],
)
def test_mistakes(data, path, message):
    with pytest.raises(JobError) as refused:
        read(data, path)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
