"""Finds the records in files of text: CSV, TSV, JSON lines, plain lines, and Excel workbooks.

Each record is (line number, cells, text): its cells are those of the header, or in JSON lines a
dict; None if the record is malformed, and text then holds it as it was written. Every line that is
not blank belongs to one record, so nothing is lost.

A quote that is never closed would swallow the rows after it. So a quoted field spans lines only if
it is closed within FIELD_LINES, at its end, in a record that has as many cells as the header;
otherwise the line stands alone.
"""

import codecs
import csv
import io
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

csv.field_size_limit(2**31 - 1)

FIELD_LINES = 100
"""Maximum lines of a quoted field."""

MARK = "\ufeff"
"""The byte order mark, which Python removes only from some encodings."""

UNDECODABLE = "\ufffd"
"""Stands before bytes that could not be decoded, which follow in the form <e6><88>."""

MARKED = re.compile(f"{UNDECODABLE}<[0-9a-f]{{2}}>")
"""Bytes that a reader could not decode; the character alone may stand in a file."""

Record = tuple[int, Any, str]
"""Line number; the cells, a list or a dict by name, or None; the text of a malformed record."""


def _mark_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data = error.object[error.start : error.end]
    return UNDECODABLE + "".join(f"<{byte:02x}>" for byte in data), error.end


codecs.register_error("mark", _mark_bytes)


def lines_of(
    file: io.BufferedReader, encoding: str, start: int = 0, end: int | None = None
) -> Iterator[str]:
    """Yields the lines of a file that begin between two places in bytes, with their line ends.

    Undecodable bytes become UNDECODABLE. start and end are only for encodings in which a line ends
    with the byte of ASCII: see is_wide. Of any other file, the first part has all lines.
    """
    head = file.peek()
    if is_wide(encoding) or (b"\r" in head and b"\n" not in head):  # from an old Mac
        if not start:
            yield from io.TextIOWrapper(file, encoding, "mark", newline=None)
        return
    place = max(start - 1, 0)
    if start:
        file.seek(place)
        place += len(file.readline())  # the line before
    for line in file:
        if end is not None and place >= end:
            return
        place += len(line)
        yield line.decode(encoding, "mark")


COMMON = frozenset(
    "的一是不了在人有我他这个来大中上国说要们为子和你地出道也时年得就那下以生会自着去之过家对可里后小么"
    "心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长"
    "這個來國說們為時會著過對裡後麼沒於還發當無開經頭從動兩長學機關與"
)
"""Frequent characters, of which a fifth or more of Chinese text consists; hardly one is left if a
text is decoded as if it had another encoding."""


MARKS = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),  # begins like UTF-16's
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
"""The byte order marks of wide encodings."""


def marked_encoding(data: bytes) -> str | None:
    """Returns the wide encoding that a file's byte order mark names, if it has one."""
    return next((name for name, marks in MARKS.items() if data.startswith(marks)), None)


def likely_encoding(data: bytes) -> str | None:
    """Returns utf-8, utf-16 (-le, -be without a mark), utf-32, gb18030 or big5, whichever the
    beginning of a file looks like; None if it looks like none of them."""
    if mark := marked_encoding(data):
        return mark
    if b"\0" in data[:2]:
        return "utf-16-be" if data.startswith(b"\0") else "utf-16-le"
    best, name = 0.0, None
    for encoding in ("utf-8", "gb18030", "big5"):
        text = codecs.getincrementaldecoder(encoding)("mark").decode(data)
        bad = len(MARKED.findall(text))
        if encoding == "utf-8" and not bad:
            return encoding
        han = [character for character in text if "\u4e00" <= character <= "\u9fff"]
        share = sum(character in COMMON for character in han) / max(len(han), 1)
        if share > best and 100 * bad < len(text):
            best, name = share, encoding
    return name if best > 0.05 else None


def is_wide(encoding: str) -> bool:
    """Tells whether a character takes two bytes or more, even a line end."""
    return codecs.lookup(encoding).name.partition("-")[2][:2] in ("16", "32")


def visible(name: str) -> str:
    """Returns the name of a column without invisible characters."""
    hidden = "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
    return name if name.isascii() else re.sub(hidden, "", name)


# CSV and TSV


class Delimited:
    """The records of CSV or TSV; the first is the header unless the width is given."""

    def __init__(self, lines: Iterable[str], delimiter: str, quote: str):
        """quote: empty if quotes are ordinary characters."""
        self._lines, self._ahead, self._number = iter(lines), deque[str](), 0
        self._delimiter, self._quote = delimiter, quote
        self.open_quotes = False
        """Whether a line has ended inside quotes."""

    def header(self) -> list[str]:
        """Returns the names of the first record, without invisible characters; none if there is no
        record."""
        first: Record = next(self.records(0), (0, [], ""))
        return [visible(name).strip() for name in first[1]]

    def records(self, width: int, named: int = 0) -> Iterator[Record]:
        """Yields the records that follow.

        width: cells of each record; 0 allows any. named: how many a record must have, if the last
        columns have no name.
        """
        least = named or width

        def fits(cells: list[str]) -> bool:
            return not width or least <= len(cells) <= width

        while (line := self._next()) is not None:
            number, text = self._number, line.rstrip("\r\n")
            if not text.strip(" "):
                continue
            if not self._quote or self._quote not in text:
                cells: list[str] | None = text.split(self._delimiter)
            else:
                cells, text = self._quoted(line, fits)
            if cells is not None and fits(cells):
                yield number, cells + [""] * (width - len(cells)), ""
            else:
                yield number, None, text

    def _next(self) -> str | None:
        line = self._ahead.popleft() if self._ahead else next(self._lines, None)
        self._number += line is not None
        return line

    def _quoted(self, line: str, fits: Any) -> tuple[list[str] | None, str]:
        """Returns the cells of a record that begins with a line, and its text."""
        form: dict[str, Any] = {"delimiter": self._delimiter, "quotechar": self._quote}
        taken: list[str] = [line]

        def more() -> Iterator[str]:
            yield line
            while len(taken) < FIELD_LINES:
                self.open_quotes = True  # also where the rest lies in another part of the file
                if (following := self._next()) is None:
                    return
                taken.append(following)
                yield following

        cells: list[str] | None
        try:
            cells = next(csv.reader(more(), strict=True, **form))
        except csv.Error:
            cells = None
        text = line.rstrip("\r\n")
        if cells is not None and (fits(cells) or len(taken) == 1):
            return cells, "".join(taken).rstrip("\r\n")
        try:
            alone = next(csv.reader([text], **form), None)
        except csv.Error:  # a carriage return in it
            alone = None
        if cells is not None and not (alone and fits(alone)):
            return None, "".join(taken).rstrip("\r\n")
        self._ahead.extendleft(reversed(taken[1:]))
        self._number -= len(taken) - 1
        return alone, text


# JSON lines


class _Number(str):
    """A number as it is written."""


class _Object(list[tuple[str, Any]]):
    """The members of an object in order."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


def json_records(lines: Iterable[str], texts: Iterable[str] = ()) -> Iterator[Record]:
    """Yields the objects of JSON lines as dicts of texts; a line may hold several.

    A text is itself, with UNDECODABLE for half of a surrogate pair; null is None; any other value
    is its JSON, with numbers as they are written. A line is malformed if something in it is no
    object, repeats a name, or has a list or an object under one of the names in texts.
    """
    texts = (*texts,)
    for number, line in enumerate(lines, 1):
        text = line.strip().lstrip(MARK)
        if not text:
            continue
        try:
            found, place = [], 0
            while place < len(text):
                value, place = _DECODER.raw_decode(text, place)
                found.append(_members(value, texts))
                while text[place : place + 1].isspace():
                    place += 1
        except (ValueError, RecursionError):
            yield number, None, text
        else:
            for members in found:
                yield number, members, ""


def _members(value: Any, texts: tuple[str, ...]) -> dict[str, str | None]:
    """Returns an object's members as texts. Raises ValueError for what is malformed."""
    if not isinstance(value, _Object):
        raise ValueError("no object")
    members = {}
    for name, held in value:
        if type(held) is not str:
            if isinstance(held, list) and name in texts:
                raise ValueError(f"a list in {name}")
            held = None if held is None else _as_json(held)
        members[visible(whole(name))] = None if held is None else whole(held)
    if len(members) != len(value):
        raise ValueError("a name is repeated")
    return members


def whole(text: str) -> str:
    """Returns a text with UNDECODABLE for each half of a surrogate pair, which UTF-8 cannot
    hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _as_json(value: Any) -> str:
    if isinstance(value, _Object):
        return "{" + ", ".join(f"{_as_json(k)}: {_as_json(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_json, value)) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


# Workbooks


@contextmanager
def _reading_workbook() -> Iterator[None]:
    """Raises what a workbook's reader says as ValueError."""
    try:
        yield
    except ImportError:
        raise ValueError("Excel needs the package openpyxl: pip install openpyxl") from None
    except (ValueError, MemoryError):
        raise
    except Exception as error:  # openpyxl lets through whatever a wrong file makes it do
        raise ValueError(f"not an Excel workbook (.xlsx): {error}") from None


UNSAVED = re.compile(
    rb'<c (?=[^>]*\br="(\w+)")(?![^>]*\bt="str")[^>]*>'
    rb"<f\b[^>]*(?:/>|>[^<]*</f>)(?:<v ?/>|<v></v>)?</c>"
)
"""A formula whose value is not in the file; one of type str has an empty text."""


def _unsaved(sheet: Any) -> str:
    """Returns the first cell of a sheet with a formula without a value, or an empty text."""
    with sheet._get_source() as source:
        found = UNSAVED.search(source.read())
    return found[1].decode() if found else ""


@_reading_workbook()
def filled_sheets(file: BinaryIO) -> dict[str, Any]:
    """Returns the worksheets that have rows, by name. Raises ValueError if it is no workbook."""
    from openpyxl.reader.excel import ExcelReader

    reader: Any = ExcelReader(file, read_only=True, data_only=True)
    reader.read_chartsheet = lambda *_: None  # which fails for an empty one
    reader.read()
    sheets = reader.wb.worksheets
    for sheet in sheets:
        sheet.reset_dimensions()  # which some programs write wrongly
    return {one.title: one for one in sheets if any(map(any, one.values)) or _unsaved(one)}


def sheet_records(file: BinaryIO, name: str | None = None) -> Iterator[Record]:
    """Yields the rows of a workbook that are not empty; the first is the header.

    name: of the sheet to read. Raises ValueError if it is no workbook, if no sheet of that name has
    rows, if several have rows and none is named, or for a formula without a value.
    """
    sheets, width = filled_sheets(file), 0
    names = ", ".join(sheets)
    if sheets and (name or names) not in sheets:
        wanted = f"a sheet {name}" if name else "one sheet"
        raise ValueError(f"expected {wanted} with rows, found {names}: save one of them as CSV")
    chosen = sheets.get(name or names)
    with _reading_workbook():
        from openpyxl.utils.escape import unescape

        if chosen and (place := _unsaved(chosen)):
            fault = "has a formula without a value: open and save the workbook in Excel"
            raise ValueError(f"sheet {name or names}, cell {place} {fault}")
        for number, row in enumerate(chosen.values if chosen else (), 1):
            cells = ["" if cell is None else whole(unescape(str(cell))) for cell in row]
            if any(cells):
                width = width or max(k for k, cell in enumerate(cells, 1) if cell)
                beyond = any(cells[width:])
                filled = cells[:width] + [""] * (width - len(cells))
                yield number, None if beyond else filled, "\t".join(cells) if beyond else ""
