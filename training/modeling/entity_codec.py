"""Converts sentences to token ids and back, with a table of each sentence's entities.

An *entity table* is a JSON string that maps indexed tokens to the texts they stand for, such as
``{"<date_1>": "2024年3月"}``. training/modeling/tokenizer.py says how a sentence is encoded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby, pairwise

from gaixie.training.modeling.prompt import DEGREES
from gaixie.training.modeling.vocabulary import BYTES, LOCATION, SPECIAL, WORD, kind_of
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.entities import EntityFinder, EntitySettings
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

EntityText = tuple[str, str]
"""(kind, text) of an entity."""


class EntityCodec:
    """Encodes and decodes with one vocabulary."""

    def __init__(
        self,
        tokens: Sequence[str],
        entities: EntitySettings,
        word_characters: int,
        indices: int,
        locations: Collection[str] = (),
    ):
        """tokens: all tokens in the order of their ids. word_characters, indices, locations: see
        from_words of the tokenizer."""
        self.tokens = tokens
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.word_characters, self.indices = word_characters, indices
        self.missing_entities = 0
        """Indexed tokens that decoding has dropped, since their sentence's table lacked them."""
        self._first_byte = self.ids[BYTES[0]]
        self._special = len(SPECIAL) + DEGREES
        self.entity_ids = range(self._special, self._first_byte)
        """Ids of indexed tokens."""
        # Tokens that text may become; text that looks like another token never becomes it.
        first_text = self._first_byte + len(BYTES)
        self._text_ids = {token: self.ids[token] for token in tokens[first_text:]}
        self.finder = EntityFinder(entities)
        self._segmenter = load_segmenter("jieba")
        self._locations = frozenset(locations)

    def encode(
        self, texts: Sequence[str], tables: Sequence[str] | None, make_tables: bool
    ) -> tuple[list[list[int]], list[str]]:
        """Returns the ids of each text without special tokens, and the entity tables made.

        With given tables, only their entities are indexed; otherwise, with make_tables, every
        entity is.
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
        """Returns the text of ids, with indexed tokens replaced from the table."""
        texts = json.loads(table) if table else {}
        parts: list[str] = []
        for is_byte, own in groupby(ids, self._is_byte):
            if is_byte:
                parts.append(_text_of(bytes(index - self._first_byte for index in own)))
                continue
            for index in own:
                text = self.tokens[index]
                if index < self._special:
                    text = "" if skip_special_tokens else text
                elif index < self._first_byte:
                    self.missing_entities += text not in texts
                    text = texts.get(text, "")
                parts.append(text)
        return "".join(parts)

    def _is_byte(self, index: int) -> bool:
        return self._first_byte <= index < self._first_byte + len(BYTES)

    def _pieces(
        self, texts: Sequence[str], known: list[dict[EntityText, str]] | None, all_entities: bool
    ) -> tuple[list[list[EntityText | None]], list[str]]:
        """Returns each text's entities (kind, text), with None for text between them; and all text
        between, in order."""
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
        index = None
        if not isinstance(word, str):
            index, word = table.index_of(word, closed), word[1]
        else:
            if word in self._locations:
                index = table.index_of((LOCATION, word), closed)
            if index is None:
                index = self._text_ids.get(word)
            if index is None and len(word) >= self.word_characters:
                index = table.index_of((WORD, word), closed)
        if index is not None:
            row.append(index)
            return
        for character in word:
            if (index := self._text_ids.get(character)) is not None:
                row.append(index)
            else:
                data = character.encode("utf-8", "surrogatepass")
                row.extend(self._first_byte + byte for byte in data)

    def _cut(self, texts: list[str]) -> list[list[str]]:
        """Returns the words of each text."""
        if not texts:
            return []
        words = self._segmenter.word_ends(from_strings(texts))
        ends, offsets = words.ends.tolist(), words.offsets.tolist()
        return [
            [text[start:end] for start, end in pairwise([0, *ends[first:last]])]
            for text, (first, last) in zip(texts, pairwise(offsets), strict=True)
        ]


class _Table:
    """A sentence's entity table while it grows: token -> text, and (kind, text) -> id."""

    def __init__(self, ids: dict[str, int], indices: int, known: dict[EntityText, str]):
        self._ids, self._indices = ids, indices
        self._known = {entity: ids[token] for entity, token in known.items() if token in ids}
        self.texts: dict[str, str] = {}
        self._used: Counter[str] = Counter()

    def index_of(self, entity: EntityText, closed: bool) -> int | None:
        """Returns the id of an entity: the known one or, unless closed, a new one.

        Returns None if its kind has no index left.
        """
        if entity in self._known or closed:
            return self._known.get(entity)
        kind, text = entity
        token = f"<{kind}_{self._used[kind] + 1}>"
        if self._used[kind] == self._indices or token not in self._ids:
            return None
        self._used[kind] += 1
        self.texts[token] = text
        self._known[entity] = self._ids[token]
        return self._ids[token]


def _tokens_by_text(table: str) -> dict[EntityText, str]:
    """Returns entity -> token for an entity table."""
    return {(kind_of(token), text): token for token, text in json.loads(table).items()}


def _text_of(data: bytes) -> str:
    """Decodes UTF-8 with lone surrogates; other bytes (a model may write any) become U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
