"""Converts sentences to token ids and back, with a table of each sentence's entities.

An *entity table* is a JSON string that maps indexed tokens to the texts they stand for, such as
``{"<date_1>": "2024年3月"}``. training/modeling/tokenizer.py says how a sentence is encoded.
"""

import json
from collections.abc import Sequence
from itertools import groupby, pairwise

from gaixie.training.modeling.vocabulary import BYTES, LOCATION, SPECIAL, WORD, TokenizerSettings
from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.entities import EntityFinder
from gaixie.udfs.text.normalise import normalise
from gaixie.udfs.text.segmenters import load_segmenter

Known = dict[tuple[str, str], str]
"""Maps (kind, text) of an entity to its token: an entity table, the other way round."""


class EntityCodec:
    """Encodes and decodes with one vocabulary."""

    def __init__(self, tokens: Sequence[str], settings: TokenizerSettings):
        """tokens: all tokens in the order of their ids."""
        self.tokens, self.settings = tokens, settings
        self.ids = {token: index for index, token in enumerate(tokens)}
        first_byte = self.ids[BYTES[0]]
        self.entity_ids = range(len(SPECIAL), first_byte)
        """Ids of indexed tokens."""
        self._byte_ids = range(first_byte, first_byte + len(BYTES))
        # Tokens that text may become; text that looks like another token never becomes it.
        self._text_ids = {token: self.ids[token] for token in tokens[self._byte_ids.stop :]}
        self._locations = frozenset(settings.locations.split())
        self._finder = EntityFinder(settings.entities)
        self._segmenter = load_segmenter("jieba")

    def encode(
        self, texts: Sequence[str], tables: Sequence[str] | None, make_tables: bool
    ) -> tuple[list[list[int]], list[str]]:
        """Returns the ids of each text without special tokens, and its entity table.

        With given tables, only their entities are indexed; otherwise, with make_tables, every
        entity is.
        """
        knowns: list[Known] = [{} for _ in texts]
        if tables is not None:
            given = [json.loads(table).items() for table in tables]
            knowns = [{(kind_of(token), text): token for token, text in table} for table in given]
        closed = tables is not None or not make_tables
        rows = [
            self._pieces(normalise(text), known, closed)
            for text, known in zip(texts, knowns, strict=True)
        ]
        words = iter(self._cut([text for row in rows for kind, text in row if not kind]))
        ids = [
            [
                index
                for kind, text in row
                for word in ([text] if kind else next(words))
                for index in self._ids_of(kind, word, known, closed)
            ]
            for row, known in zip(rows, knowns, strict=True)
        ]
        made = ({token: text for (_, text), token in known.items()} for known in knowns)
        return ids, [*map(json.dumps, made)]

    def decode(
        self, ids: Sequence[int], skip_special_tokens: bool = True, table: str | None = None
    ) -> str:
        """Returns the text of ids, with indexed tokens replaced from the table."""
        texts = json.loads(table) if table else {}
        parts: list[str] = []
        for is_byte, own in groupby(ids, self._byte_ids.__contains__):
            if is_byte:
                data = bytes(map(self._byte_ids.index, own))
                parts.append(data.decode("utf-8", "replace"))  # a model may write any bytes
                continue
            for index in own:
                text = self.tokens[index]
                if index in self.entity_ids:
                    text = texts.get(text, "")
                elif index < len(SPECIAL) and skip_special_tokens:
                    text = ""
                parts.append(text)
        return "".join(parts)

    def _pieces(self, text: str, known: Known, closed: bool) -> list[tuple[str, str]]:
        """Cuts a text into (kind, entity), and ("", text) between the entities."""
        pieces, place = [], 0
        for kind, start, end in self._finder.find(text) if known or not closed else ():
            if not closed or (kind, text[start:end]) in known:
                pieces += [("", text[place:start]), (kind, text[start:end])]
                place = end
        return [piece for piece in [*pieces, ("", text[place:])] if piece[1]]

    def _ids_of(self, kind: str, word: str, known: Known, closed: bool) -> list[int]:
        """Returns the ids of an entity of a kind, or of a word (kind "")."""
        index = None
        if kind or word in self._locations:
            index = self._index_of((kind or LOCATION, word), known, closed)
        if index is None and not kind:
            index = self._text_ids.get(word)
            if index is None and len(word) >= self.settings.word_characters:
                index = self._index_of((WORD, word), known, closed)
        if index is not None:
            return [index]
        ids = []
        for character in word:
            if (index := self._text_ids.get(character)) is not None:
                ids.append(index)
            else:
                ids += [self._byte_ids[byte] for byte in character.encode("utf-8", "replace")]
        return ids

    def _index_of(self, entity: tuple[str, str], known: Known, closed: bool) -> int | None:
        """Returns the id of an entity: the known one or, unless closed, a new one, which becomes
        known. Returns None if its kind has no index left."""
        if entity not in known and not closed:
            token = f"<{entity[0]}_{1 + sum(kind == entity[0] for kind, _ in known)}>"
            if self.ids.get(token) in self.entity_ids:
                known[entity] = token
        return self.ids.get(known.get(entity, ""))

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


def kind_of(token: str) -> str:
    """Returns the kind of an indexed token's entity; for any other token, text that is not a
    kind."""
    return token[1:-1].rpartition("_")[0] if token.startswith("<") else ""
