"""Normalises text: removes invisible characters, applies Unicode NFKC, and collapses whitespace.

Characters that show nothing (control characters, zero-width spaces, byte order marks, direction
marks, soft hyphens, variation selectors: Unicode's Default_Ignorable_Code_Point) go, except within
emoji sequences. Then NFKC (Unicode Standard Annex #15); then each run of whitespace becomes one
space, ends stripped. But a run that holds a line break, a tab or an ideographic space is layout:
beside a Han character it is dropped, unless a Latin letter or a digit is on its other side.

:func:`normalise` is the definition, on one Python string. :func:`normalise_column` returns the same
characters for an Arrow column at kernel speed: it decodes UTF-8, looks up each code point's NFKC
form in a table and writes code points. The table is exact unless a character depends on those
around it (combining marks, conjoining Hangul, joiners of emoji); rows with such a character go
through the definition. NFKC is stable for assigned characters, so the interpreter's
Unicode version does not change a score.
"""

import re
import unicodedata
from functools import cache

import numpy as np
import pyarrow as pa
from numba import njit

from gaixie.udfs.text.code_points import CodePoints, from_strings

NORMALISATION = "nfkc+visible+ws"
"""The name of this normalisation in the metric's signature."""

# What normalise_column says of a row; flags are or-ed together.
NULL = 1
UNDECODABLE = 2  # not UTF-8, or has a U+FFFD, which a reader puts for bytes it cannot decode
HAN = 4  # has at least one Han character
_NEEDS_DEFINITION = 128

# Cells of the character table above the last code point, for what a plain mapping cannot say.
_EXPANSION = np.uint32(0x80000000)  # | index of the expansion
_SPACE = np.uint32(0x40000000)
_COMPOSES = np.uint32(0x20000000)
_INVISIBLE = np.uint32(0x10000000)

_TABLE_RANGES = tuple(
    range(start, end)
    for start, end in (
        *((0, 0x3400), (0x4DC0, 0x4E00), (0xA000, 0xAC00), (0xD7A4, 0xD800), (0xF900, 0x12000)),
        *((0x14680, 0x17000), (0x18D00, 0x20000), (0x2F800, 0x2FA20), (0xE0000, 0xE1000)),
    )
)
"""Code points that NFKC may change. All others are unassigned, private, ideographs, Hangul
syllables, or of old scripts.
"""


INVISIBLE = (
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u2800\ufff9-\ufffb"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""A pattern: control characters but for whitespace, the empty braille cell, annotation marks, and
Default_Ignorable_Code_Point of DerivedCoreProperties.txt, Unicode 15 and 16."""
_IN_EMOJI = "\u200d\ufe0f\U000e0020-\U000e007f"
"""Of these, the joiner, the emoji style and the tags of flags may belong to an emoji sequence."""
_PICTURE = (
    "[\u00a9\u00ae\u2194-\u21aa\u231a\u231b\u2328\u23cf-\u23fa\u25aa-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\U0001f000-\U0001f0ff\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]"
)
"""Blocks with Unicode's pictographs, as far as NFKC does not change them."""
_STYLED = rf"{_PICTURE}[\ufe0f\U000e0020-\U000e007f]*"
_HIDDEN = re.compile(INVISIBLE)
_SEQUENCE = re.compile(rf"({_STYLED}(?:\u200d{_STYLED})*|[#*0-9]\ufe0f\u20e3)|{INVISIBLE}+")
"""An emoji sequence (Unicode Technical Standard #51), which stays, or invisible characters."""

_BREAKS = "\t-\r\x85\u2028\u2029\u3000"
_HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_MARKS = "\u0300-\u036f\u064b-\u0652\u0670\u3099\u309a"
"""Marks that NFKC puts behind a space: ´ ゛."""
_RUN = rf"\s*[{_BREAKS}]\s*"
_LAYOUT = re.compile(
    rf"(?<=[{_HAN}]){_RUN}(?=[^\sA-Za-z0-9{_MARKS}])|(?<=[^\sA-Za-z0-9]){_RUN}(?=[{_HAN}])"
)

_CLUSTER = re.compile(r"(?s).[\u0300-\u036f\u1161-\u11ff\u3099\u309a\uff9e\uff9f]*")
"""A character with the marks that combine with it: accents, Hangul vowels, kana's voicing."""


def visible(text: str) -> str:
    """Returns the text without invisible characters, except those of emoji sequences."""
    if not _HIDDEN.search(text):
        return text
    return _SEQUENCE.sub(lambda match: match[1] or "", text)


def may_hide(texts: pa.Array) -> np.ndarray:
    """Tells which rows of a column of large strings may have invisible characters, or those of an
    emoji sequence: bool, shape (rows,). A null has none."""
    _, offsets, data = texts.buffers()
    if not len(texts) or not data:
        return np.zeros(len(texts), bool)
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return _may_hide(np.frombuffer(data, np.uint8), bounds, _tables()[0])


def normalise(text: str) -> str:
    """Returns the form of a text that every feature reads, as defined above."""
    form = unicodedata.normalize("NFKC", visible(text).replace("\u3000", "\t"))
    return " ".join(_LAYOUT.sub("", form).split())


def written_places(written: str) -> list[int] | None:
    """Returns where each character of the normalised text begins in the written text.

    The text is cut into clusters: a character, and the marks that combine with it. Returns None if
    NFKC composes characters across two clusters.
    """
    hidden = [match for match in _SEQUENCE.finditer(written) if not match[1]]
    gone = {place for match in hidden for place in range(*match.span())}
    shown = [place for place in range(len(written)) if place not in gone]
    clusters = _CLUSTER.finditer("".join(written[place] for place in shown))
    forms = [(unicodedata.normalize("NFKC", match[0]), shown[match.start()]) for match in clusters]
    places: list[int] = []
    text = ""
    for form, start in forms:
        for character in form:
            if character.isspace():
                character = " "
                if not text or text[-1] == " ":
                    continue
            text += character
            places.append(start)
    if text.endswith(" "):
        text, places = text[:-1], places[:-1]
    return places if text == normalise(written) else None


def normalise_column(texts: pa.Array) -> tuple[CodePoints, np.ndarray]:
    """Returns an Arrow string or binary array as normalised code points, and uint8 flags by row.

    A null or undecodable row has no characters. Raises TypeError for any other type.
    """
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if texts.type not in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        raise TypeError(f"sentences must be an Arrow string column, not {texts.type}")
    rows = len(texts)
    flags = np.zeros(rows, np.uint8)
    if texts.null_count:
        flags[np.asarray(texts.is_null())] = NULL
    texts = _decodable(texts, flags)
    _, offset_buffer, data_buffer = texts.buffers()
    if rows == 0:
        return CodePoints(np.empty(0, np.uint32), np.zeros(1, np.int64)), flags
    byte_offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + rows + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.empty(0, np.uint8)
    text = CodePoints(*_normalise_rows(data, byte_offsets, flags, *_tables()))
    if (slow := np.flatnonzero(flags & _NEEDS_DEFINITION)).size:
        lines = [data[byte_offsets[row] : byte_offsets[row + 1]].tobytes() for row in slow]
        forms = [normalise(line.decode()) for line in lines]
        text = _with_rows(text, slow, from_strings(forms))
        flags[slow] &= ~np.uint8(_NEEDS_DEFINITION)
        has_han = [any(map(is_han, map(ord, form))) for form in forms]
        flags[slow] |= np.uint8(HAN) * np.array(has_han)
    return text, flags


def _with_rows(text: CodePoints, rows: np.ndarray, others: CodePoints) -> CodePoints:
    """Returns the column with some rows, in ascending order, replaced by those of another."""
    lengths = np.diff(text.offsets)
    lengths[rows] = np.diff(others.offsets)
    parts, after = [], 0
    for row, start, end in zip(rows, others.offsets, others.offsets[1:], strict=False):
        parts += [text.values[text.offsets[after] : text.offsets[row]], others.values[start:end]]
        after = row + 1
    parts.append(text.values[text.offsets[after] :])
    return CodePoints(np.concatenate(parts), np.append(0, np.cumsum(lengths)))


def _decodable(texts: pa.Array, flags: np.ndarray) -> pa.Array:
    """Returns a column of large strings: rows that are not UTF-8 are flagged, and empty."""
    texts = texts.cast(pa.large_binary())
    try:
        return texts.cast(pa.large_string())  # checks every row
    except pa.ArrowInvalid:
        rows = texts.to_pylist()
    for row, data in enumerate(rows):
        try:
            rows[row] = data and data.decode()
        except UnicodeDecodeError:
            rows[row], flags[row] = "", UNDECODABLE
    return pa.array(rows, pa.large_string())


@cache
def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns NFKC of every code point: cells, and the expansions' characters and offsets."""
    cells = np.arange(0x110000, dtype=np.uint32)
    expansions: list[str] = []
    composes_backwards = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels, finals
    for block in _TABLE_RANGES:
        for code in block:
            parts = unicodedata.decomposition(chr(code)).split()
            if len(parts) == 2 and not parts[0].startswith("<"):
                composes_backwards.add(int(parts[1], 16))
    for block in _TABLE_RANGES:
        for code in block:
            character = chr(code)
            first = unicodedata.normalize("NFKD", character)[0]
            form = unicodedata.normalize("NFKC", character)
            if _HIDDEN.match(character):
                in_emoji = re.match(f"[{_IN_EMOJI}]", character)
                cells[code] = _COMPOSES if in_emoji else _INVISIBLE
            elif unicodedata.combining(first) or ord(first) in composes_backwards:
                cells[code] = _COMPOSES
            elif form.isspace():
                cells[code] = _SPACE
            elif len(form) == 1:
                cells[code] = ord(form)
            elif len(form) > len(character.encode()):
                cells[code] = _COMPOSES  # would not fit the output buffer: one cell for one byte
            else:
                cells[code] = _EXPANSION | np.uint32(len(expansions))
                expansions.append(form)
    offsets = np.cumsum([0, *map(len, expansions)], dtype=np.int32)
    characters = np.frombuffer("".join(expansions).encode("utf-32-le"), np.uint32)
    return cells, characters, offsets


@njit(cache=True, nogil=True)
def is_han(code):
    """Tells whether a code point is a CJK ideograph (unified, extension, compatibility or 〇)."""
    if code < 0x3007:
        return False
    return (
        0x4E00 <= code <= 0x9FFF
        or code == 0x3007
        or 0x3400 <= code <= 0x4DBF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x323AF
    )


@njit(cache=True, nogil=True)
def _may_hide(data, byte_offsets, cells):
    found = np.zeros(len(byte_offsets) - 1, np.bool_)
    for row in range(len(found)):
        p, end = np.int64(byte_offsets[row]), np.int64(byte_offsets[row + 1])
        while p < end:
            code = np.int64(data[p])
            if 0xE4 <= code < 0xEA:  # U+4000 to U+9FFF: ideographs
                p += 3
                continue
            size = 1 + (code >= 0xC0) + (code >= 0xE0) + (code >= 0xF0)
            code &= 0xFF >> (size + (size > 1))
            for k in range(p + 1, min(p + size, end)):
                code = code << 6 | (data[k] & 0x3F)
            p += size
            if code < len(cells):  # nothing checks the bytes under a null
                found[row] |= cells[code] == _INVISIBLE or cells[code] == _COMPOSES
    return found


@njit(cache=True, nogil=True)
def _normalise_rows(data, byte_offsets, flags, cells, expanded, expansion_offsets):
    """Decodes, maps and collapses every row of UTF-8; flags rows that need the definition."""
    # Decoding in a function of its own takes two to four times as long.
    rows = len(flags)
    values = np.empty(byte_offsets[rows] - byte_offsets[0], np.uint32)
    offsets = np.zeros(rows + 1, np.int64)
    w = 0
    for row in range(rows):
        start = w
        flag = flags[row]
        p, end = np.int64(byte_offsets[row]), np.int64(byte_offsets[row + 1])
        if flag & NULL:
            p = end
        pending_space = layout = False
        while p < end:
            code = np.int64(data[p])
            if code < 0x80:
                p += 1
            elif code < 0xE0:
                code = (code & 0x1F) << 6 | (data[p + 1] & 0x3F)
                p += 2
            elif code < 0xF0:
                code = (code & 0x0F) << 12 | (data[p + 1] & 0x3F) << 6 | (data[p + 2] & 0x3F)
                p += 3
            else:
                code = (code & 0x07) << 18 | (data[p + 1] & 0x3F) << 12
                code |= (data[p + 2] & 0x3F) << 6 | (data[p + 3] & 0x3F)
                p += 4
            cell = cells[code]
            if cell == _SPACE:
                pending_space = w > start
                layout |= 0x09 <= code <= 0x0D or code in (0x85, 0x2028, 0x2029, 0x3000)
                continue
            if cell == _INVISIBLE:
                continue
            if cell == _COMPOSES:
                flag |= _NEEDS_DEFINITION
                cell = np.uint32(code)
            k = cell & np.uint32(0x7FFFFFFF)
            if pending_space:
                after = cell if cell < _EXPANSION else expanded[expansion_offsets[k]]
                values[w] = 0x20
                w += not (layout and _is_dropped(values[w - 1], after))
            pending_space = layout = False
            if cell < _EXPANSION:
                values[w] = cell
                w += 1
                if is_han(cell):
                    flag |= HAN
                elif cell == 0xFFFD:
                    flag |= UNDECODABLE
                continue
            form = expanded[expansion_offsets[k] : expansion_offsets[k + 1]]
            w, flag = _append(form, values, start, w, flag)
        if flag & UNDECODABLE:
            w = start
            flag &= ~(HAN | _NEEDS_DEFINITION)
        flags[row] = flag
        offsets[row + 1] = w
    return values[:w], offsets


@njit(cache=True, nogil=True)
def _is_dropped(before, after):
    """Tells whether layout between two characters is dropped."""
    if after == 0x20:  # of a form such as "´"
        return False
    return (is_han(before) and not is_latin(after)) or (is_han(after) and not is_latin(before))


@njit(cache=True, nogil=True)
def is_latin(code):
    """Tells whether a code point is a digit or a letter of ASCII."""
    return 0x30 <= code <= 0x39 or 0x61 <= code | np.uint32(0x20) <= 0x7A


@njit(cache=True, nogil=True)
def _append(form, values, start, w, flag):
    """Writes a character's longer form at values[w:]; returns the row's new end and flags."""
    for code in form:
        # A form such as "´" is a space and a mark: its space collapses like any other.
        if code == 0x20 and (w == start or values[w - 1] == 0x20):
            continue
        values[w] = code
        w += 1
        if is_han(code):
            flag |= HAN
    return w, flag
