"""Translation memories, unit by unit."""

from __future__ import annotations

import gzip
import io

import pytest

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.tmx import units


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


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        (tmx(variant("en", "A & B")), "a.tmx", "a.tmx: line 4: not well-formed XML: "),
        (tmx(variant("en", "A"))[:-9], "a.tmx", "a.tmx: line 5: not well-formed XML: unclosed"),
        (b"<html></html>", "a.tmx", "a.tmx: no TMX: its root is html"),
        (b"<tmx></tmx>", "a.tmx.gz", "a.tmx.gz: cannot be read: Not a gzipped file"),
    ],
)
def test_mistakes(data, path, message):
    with pytest.raises(JobError) as refused:
        read(data, path)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
