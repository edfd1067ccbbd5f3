"""Sentences to token ids and back, with the entities of a sentence in a table beside its ids.

An *entity table* is a string of JSON: indexed token -> the text that it stands for, as
``{"<date_1>": "2024年3月"}``. training/modeling/tokenizer.py says what a sentence becomes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import pairwise

from gaixie.training.modeling.vocabulary import BYTES, LOCATION, SPECIAL, WORD, kind_of
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.entities import EntityFinder, EntitySettings
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

EntityText = tuple[str, str]
"""(kind, text) of an entity."""


class EntityCodec:
    """Encodes and decodes under one vocabulary."""

    def __init__(
        self,
        tokens: Sequence[str],
        entities: EntitySettings,
        word_characters: int,
        indices: int,
        degrees: int = 0,
        locations: Collection[str] = (),
    ):
        """tokens: all of them, in the order of their ids. word_characters, indices, locations: as in from_words.

        degrees: how many tokens of a degree there are.
        """
        self.tokens = tokens
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.word_characters, self.indices = word_characters, indices
        self.missing_entities = 0
        """Indexed tokens that decoding has dropped, as their sentence's table did not have them."""
        self._first_byte = self.ids[BYTES[0]]
        self._special = len(SPECIAL) + degrees
        self.entity_ids = range(self._special, self._first_byte)
        """Of indexed tokens."""
        # What text may become: no token of another sort, whatever the text says.
        first_text = self._first_byte + len(BYTES)
        self._text_ids = {token: self.ids[token] for token in tokens[first_text:]}
        self.finder = EntityFinder(entities)
        self._segmenter = load_segmenter("jieba")
        self._locations = frozenset(locations)

    def encode(
        self, texts: Sequence[str], tables: Sequence[str] | None, make_tables: bool
    ) -> tuple[list[list[int]], list[str]]:
        """Ids of each text without special tokens, and the entity tables that were made.

        With given tables only what stands in them is indexed, else with make_tables every entity.
        """
        known = [_tokens_by_text(table) for table in tables] if tables is not None else None
        rows, plain = self._pieces(texts, known, make_tables)
        words = iter(self._cut(plain))
        ids, made = [], []
        for number, pieces in enumerate(rows):
            table = _Table(self.ids, self.indices, known[number] if known else {})
            closed = known is not None or not make_tables
            row: list[int] = []
            for piece in pieces:
                for word in (piece,) if piece else next(words):
                    self._add(row, word, table, closed)
            ids.append(row)
            made.append(json.dumps(table.texts))
        return ids, made

    def decode(
        self, ids: Sequence[int], skip_special_tokens: bool = True, table: str | None = None
    ) -> str:
        """The text of ids; what indexed tokens stand for comes from the table."""
        texts = json.loads(table) if table else {}
        parts: list[str] = []
        data = bytearray()
        for index in ids:
            if self._first_byte <= index < self._first_byte + len(BYTES):
                data.append(index - self._first_byte)
                continue
            if data:
                parts.append(_text_of(data))
                data.clear()
            if index < self._special:
                if not skip_special_tokens:
                    parts.append(self.tokens[index])
            elif index < self._first_byte:
                text = texts.get(self.tokens[index])
                self.missing_entities += text is None
                parts.append(text or "")
            else:
                parts.append(self.tokens[index])
        if data:
            parts.append(_text_of(data))
        return "".join(parts)

    def count_words(self, texts: Sequence[str]) -> tuple[int, int]:
        """Words of some texts outside entities and places, and how many of them are tokens."""
        _, plain = self._pieces(texts, None, True)
        cut = (word for row in self._cut(plain) for word in row)
        words = [word for word in cut if word not in self._locations]
        return len(words), sum(word in self._text_ids for word in words)

    def _pieces(
        self,
        texts: Sequence[str],
        known: list[dict[EntityText, str]] | None,
        all_entities: bool,
    ) -> tuple[list[list[EntityText | None]], list[str]]:
        """Entities (kind, text) of each text, None for what stands between; and all between, in order."""
        rows: list[list[EntityText | None]] = []
        plain: list[str] = []
        for number, text in enumerate(map(normalise, texts)):
            pieces: list[EntityText | None] = []
            end_before = 0
            for kind, start, end in self.finder.find(text) if known or all_entities else ():
                entity = (kind, text[start:end])
                if known and entity not in known[number]:
                    continue
                if start > end_before:
                    plain.append(text[end_before:start])
                    pieces.append(None)
                pieces.append(entity)
                end_before = end
            if end_before < len(text):
                plain.append(text[end_before:])
                pieces.append(None)
            rows.append(pieces)
        return rows, plain

    def _add(self, row: list[int], word: str | EntityText, table: _Table, closed: bool) -> None:
        """Appends the ids of a word or of an entity (kind, text)."""
        if isinstance(word, str):
            index = None
            if word in self._locations:
                index = table.index_of((LOCATION, word), closed)
            if index is None:
                index = self._text_ids.get(word)
            if index is None and len(word) >= self.word_characters:
                index = table.index_of((WORD, word), closed)
        else:
            index = table.index_of(word, closed)
            word = word[1]
        if index is not None:
            row.append(index)
            return
        for character in word:
            index = self._text_ids.get(character)
            if index is not None:
                row.append(index)
            else:
                data = character.encode("utf-8", "surrogatepass")
                row.extend(self._first_byte + byte for byte in data)

    def _cut(self, texts: list[str]) -> list[list[str]]:
        """The words of each text."""
        if not texts:
            return []
        words = self._segmenter.word_ends(from_strings(texts))
        ends, offsets = words.ends.tolist(), words.offsets.tolist()
        cut = []
        for text, (first, last) in zip(texts, pairwise(offsets), strict=True):
            row, start = [], 0
            for end in ends[first:last]:
                row.append(text[start:end])
                start = end
            cut.append(row)
        return cut


class _Table:
    """The entity table of a sentence as it grows: token -> text, and (kind, text) -> id."""

    def __init__(self, ids: dict[str, int], indices: int, known: dict[EntityText, str]):
        self._ids, self._indices = ids, indices
        self.known = {entity: ids[token] for entity, token in known.items() if token in ids}
        self.texts: dict[str, str] = {}
        self._used: dict[str, int] = {}

    def index_of(self, entity: EntityText, closed: bool) -> int | None:
        """The id of an entity; where it has none yet a new one, unless closed."""
        index = self.known.get(entity)
        return self.add(entity) if index is None and not closed else index

    def add(self, entity: EntityText) -> int | None:
        """The id of a new entity; None where its kind has no index left."""
        kind, text = entity
        number = self._used.get(kind, 0) + 1
        token = f"<{kind}_{number}>"
        if number > self._indices or token not in self._ids:
            return None
        self._used[kind] = number
        self.texts[token] = text
        self.known[entity] = self._ids[token]
        return self._ids[token]


def _tokens_by_text(table: str) -> dict[EntityText, str]:
    """Entity -> token, of an entity table."""
    return {(kind_of(token), text): token for token, text in json.loads(table).items()}


def _text_of(data: bytearray) -> str:
    """UTF-8, lone surrogates among it; bytes that are neither (a model may write any) are U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
