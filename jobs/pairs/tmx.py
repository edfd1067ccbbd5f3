"""Reads TMX translation memories, unit by unit.

Source: *TMX 1.4b Specification* (LISA 2005). The content of inline elements (codes of the
original's format) is left out; highlighted text (hi) stays.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import IO
from xml.etree import ElementTree

from gaixie.jobs.errors import JobError

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

END = "</tu>"
"""Marks the end of a unit."""
OTHER_ENCODING = re.compile(rb"""<\?xml[^>]*encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE)
HEADER, LAST = re.compile(rb".*?<body[^>]*>", re.DOTALL), re.compile(rb"\s*</body>\s*</tmx>\s*")
"""Markup before and after the units of a file."""


def units(
    file: IO[bytes], path: str, foreign: str, chinese: str
) -> Iterator[tuple[str | None, str | None]]:
    """Yields (foreign sentence, Chinese sentence) of each unit, null for a missing one.

    Several variants of a language give that many rows. foreign, chinese: languages; "zh" also
    covers zh-CN and zh-TW, "zh-CN" only itself. Memory holds one unit. Raises JobError that names
    the line of invalid XML.
    """
    compressed = path.lower().endswith(".gz")
    try:
        opened = gzip.GzipFile(fileobj=file) if compressed else file
        events = ElementTree.iterparse(opened, ("start", "end"))
        _, root = next(events)
        if root.tag != "tmx":
            raise JobError(f"{path}: not a TMX: its root is {root.tag}")
        body = root
        for event, element in events:
            if event == "start" and element.tag == "body":
                body = element
            elif event == "end" and element.tag == "tu":
                texts = _variants(element, (foreign, chinese))
                yield from product(*texts)
                body.clear()
    except ElementTree.ParseError as error:
        raise JobError(f"{path}: line {error.position[0]}: not well-formed XML: {error}") from error
    except (EOFError, OSError) as error:
        raise JobError(f"{path}: cannot be read: {error}") from error


def is_whole(file: IO[bytes]) -> bool:
    """Returns whether a file is in UTF-8 and complete, which units_of assumes."""
    other = OTHER_ENCODING.search(file.read(200))
    size = file.seek(0, 2)
    file.seek(max(size - 64, 0))
    return other is None and file.read().rstrip().endswith(b"</tmx>")


def units_of(
    pieces: Sequence[bytes], foreign: str, chinese: str
) -> list[tuple[str | None, str | None]]:
    """Returns the rows of units, see there, from pieces of whole files: the text before each END.

    Raises JobError for a piece that is not valid XML without the rest of its file, which may
    declare an entity or a prefix, or have a comment that is cut.
    """
    text = b"".join(
        (HEADER.sub(b"", piece, 1) if b"<body" in piece else piece) + END.encode()
        for piece in pieces
        if not LAST.fullmatch(piece)
    )
    return list(units(io.BytesIO(b"<tmx>" + text + b"</tmx>"), "a piece", foreign, chinese))


def _variants(unit: ElementTree.Element, wanted: tuple[str, str]) -> list[list[str | None]]:
    found: dict[str, list[str | None]] = {name: [] for name in wanted}
    for variant in unit.iter("tuv"):
        language = variant.get(LANGUAGE) or variant.get("lang") or ""
        segment = variant.find("seg")
        for name in wanted:
            if segment is not None and _is(language, name):
                found[name].append(_text(segment))
    return [found[name] or [None] for name in wanted]


def _is(language: str, wanted: str) -> bool:
    language, wanted = (name.lower().replace("_", "-") for name in (language, wanted))
    return language == wanted or language.startswith(f"{wanted}-")


def _text(element: ElementTree.Element) -> str:
    parts = [element.text or ""]
    for inner in element:
        parts += [_text(inner) if inner.tag == "hi" else "", inner.tail or ""]
    return "".join(parts)
