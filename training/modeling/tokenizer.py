"""EntityAlignedTokenizer: words of the vocabulary, characters, and entities as indexed tokens.

Source: Chinese Sentence Paraphrasing, section 5.2. A sentence under gaixie.udfs.text.normalise becomes, from
left to right,

* an entity of fixed form (gaixie.udfs.text.entities) → one indexed token: ``<date_1>``,
  ``<title_2>``;
* of the text between, cut into words by jieba (gaixie.udfs.text.segmenters.jieba):
  a word of the vocabulary → its token;
  any other of k characters or more → an indexed token ``<word_i>`` (k = word_characters, by default 4);
  any other → its characters, and a character that the vocabulary lacks → its UTF-8 bytes, ``<0xE4>``.

Equal entities of a sentence share an index. What each token stands for is the sentence's *entity
table*; it travels with the example as a string of JSON, column ``entities``. Encoding a target
against its source's table gives what stands in both the same token and spells the rest, so that a
model learns to copy the one and to write the other. Decoding with a table puts the entities back;
a token that the table does not have is dropped, and counted by ``missing_entities``.

Every token lives in the base vocabulary: a transformers tokenizer takes minutes to load as many added
ones. Text is never searched for the names of tokens: a sentence that contains ``<date_1>`` or ``</s>``
is spelled like any other.

  tokenizer = EntityAlignedTokenizer.from_words(words, entity_settings)
  batch = tokenizer(sources, text_target=targets)     # input_ids, attention_mask, entities, labels
  tokenizer.decode(ids, entities=batch["entities"][0])
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BatchEncoding, PretrainedConfig, PreTrainedTokenizer
from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy

from gaixie.udfs.text.code_points import from_strings
from gaixie.udfs.text.entities import EntityFinder, EntitySettings
from gaixie.udfs.text.normalise import NORMALISATION, normalise
from gaixie.udfs.text.segmenters import load_segmenter

logger = logging.getLogger(__name__)

VOCABULARY_FILE = "vocabulary.txt"
SETTINGS_FILE = "entities.json"
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
PAD, BOS, EOS, UNK, MASK = range(len(SPECIAL))
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
CHARACTERS = "".join(map(chr, range(0x20, 0x7F))) + "。、…—·“”‘’「」『』《》〈〉【】〔〕〇"
"""Characters that are tokens whatever the words: printable ASCII, and punctuation under NFKC."""

WORD = "word"
ENTITIES = "entities"
"""The column that holds an example's entity table."""


class EntityAlignedTokenizer(PreTrainedTokenizer):
    """A tokenizer of transformers; from_words makes one, save_pretrained and from_pretrained keep it.

    vocabulary_file: a token a line, in the order of their ids: SPECIAL, indexed tokens, BYTES, then
    characters and words. settings_file: entity settings, k, the number of indices, and the
    segmenter and normalisation that the vocabulary was made for.

    Raises ValueError, in one line with the file's name, where a file is not what it should be. Warns,
    with both names, where segmenter or normalisation are other ones than the folder was made with.
    """

    vocab_files_names = {"vocabulary_file": VOCABULARY_FILE, "settings_file": SETTINGS_FILE}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(self, vocabulary_file: str, settings_file: str, **kwargs: Any):
        self._settings = _read_settings(Path(settings_file))
        self.word_characters: int = self._settings["word_characters"]
        self.indices: int = self._settings["indices"]
        entities = EntitySettings.model_validate(self._settings["entities"])
        self.entity_kinds = entities.kinds
        self._tokens = _read_tokens(Path(vocabulary_file), fixed_tokens(entities, self.indices))
        self._ids = {token: index for index, token in enumerate(self._tokens)}
        self._first_byte = self._ids[BYTES[0]]
        # What text may become: no token of another sort, whatever the text says.
        first_text = self._first_byte + len(BYTES)
        self._text_ids = {token: self._ids[token] for token in self._tokens[first_text:]}
        self._finder = EntityFinder(entities)
        self._segmenter = load_segmenter("jieba")
        self.missing_entities = 0
        """Indexed tokens that decoding has dropped, as their sentence's table did not have them."""
        self._warn_of_versions(settings_file)
        names = ("pad_token", "bos_token", "eos_token", "unk_token", "mask_token")
        kwargs = dict(zip(names, SPECIAL, strict=True)) | kwargs
        super().__init__(vocabulary_file=vocabulary_file, settings_file=settings_file, **kwargs)

    @classmethod
    def from_words(
        cls,
        words: Iterable[str],
        entities: EntitySettings,
        word_characters: int = 4,
        indices: int = 16,
        characters: Iterable[str] = (),
        **kwargs: Any,
    ) -> EntityAlignedTokenizer:
        """A tokenizer whose tokens are these words and each of their characters.

        words: the most frequent first, normalised. word_characters: k, the characters from which on an
        unknown word is an entity. indices: how many entities of a kind a sentence may have; the rest is
        spelled. characters: more of them that are tokens; all others are spelled in bytes.

        Raises ValueError for a word that is given twice, empty, or has the name of a token.
        """
        words = list(words)
        fixed = fixed_tokens(entities, indices)
        for word in words:
            if not word or word in fixed or any(mark in word for mark in "\n\r"):
                raise ValueError(f"vocabulary: {word!r} cannot be a word")
        [(word, times)] = Counter(words).most_common(1) or [("", 1)]
        if times > 1:
            raise ValueError(f"vocabulary: the word {word!r} is there twice")
        spelled = {character for word in words for character in word} | {*CHARACTERS, *characters}
        characters = sorted(spelled - set(words))
        settings = {
            "word_characters": word_characters,
            "indices": indices,
            "entities": entities.model_dump(mode="json"),
            "normalisation": NORMALISATION,
            "segmenter": _segmenter_name(load_segmenter("jieba")),
        }
        with tempfile.TemporaryDirectory() as folder:
            vocabulary, file = Path(folder, VOCABULARY_FILE), Path(folder, SETTINGS_FILE)
            vocabulary.write_text("\n".join([*fixed, *characters, *words]) + "\n", "utf-8")
            file.write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", "utf-8")
            return cls(str(vocabulary), str(file), **kwargs)

    # Encoding

    def __call__(self, text=None, text_pair=None, text_target=None, **kwargs: Any) -> BatchEncoding:
        """Sentences, and with text_target their paraphrases as labels, aligned.

        Besides the arguments of every tokenizer: return_entities=False spells entities and words,
        and gives no table. source_entities: tables that the sentences are aligned to, as strings.
        """
        kwargs.setdefault("return_entities", True)
        if text is None or text_target is None:
            return super().__call__(text, text_pair, text_target, **kwargs)
        batch = super().__call__(text, text_pair, **kwargs)
        if kwargs.pop("return_entities"):
            kwargs["source_entities"] = batch[ENTITIES]
        if longest := kwargs.pop("max_target_length", None):
            kwargs["max_length"] = longest
        batch["labels"] = super().__call__(text_target, return_entities=False, **kwargs)[
            "input_ids"
        ]
        return batch

    def _encode_plus(
        self,
        text,
        text_pair=None,
        add_special_tokens: bool = True,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors=None,
        return_attention_mask: bool | None = None,
        return_special_tokens_mask: bool = False,
        return_length: bool = False,
        is_split_into_words: bool = False,
        return_entities: bool = False,
        source_entities: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        if text_pair is not None:
            raise ValueError("two sentences are encoded as text and text_target, not as text_pair")
        single = isinstance(text, str)
        texts = [text] if single else list(text)
        if is_split_into_words or not all(isinstance(one, str) for one in texts):
            raise ValueError("expected a sentence or a list of sentences")
        tables = [source_entities] if isinstance(source_entities, str) else source_entities
        rows, found = self._encode_texts(texts, tables, return_entities)
        if add_special_tokens:
            rows = [[BOS, *row, EOS] for row in rows]
        if truncation_strategy != TruncationStrategy.DO_NOT_TRUNCATE and max_length:
            rows = [self._truncate(row, max_length, add_special_tokens) for row in rows]
        batch: dict[str, Any] = {"input_ids": rows}
        if return_special_tokens_mask:
            batch["special_tokens_mask"] = [[int(i < len(SPECIAL)) for i in row] for row in rows]
        if return_length:
            batch["length"] = [len(row) for row in rows]
        if single and return_tensors is None and padding_strategy != PaddingStrategy.MAX_LENGTH:
            batch = {name: column[0] for name, column in batch.items()}
        batch = self.pad(
            batch,
            padding=padding_strategy.value,
            max_length=max_length,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            return_attention_mask=return_attention_mask,
            return_tensors=return_tensors,
        )
        if return_entities:
            batch[ENTITIES] = found[0] if single and return_tensors is None else found
        return batch

    def _truncate(self, row: list[int], longest: int, special: bool) -> list[int]:
        if len(row) <= longest:
            return row
        if not special:
            return row[:longest]
        return [*row[: max(longest - 1, 0)], EOS][:longest]

    def _encode_texts(
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
            table = _Table(self._ids, self.indices, known[number] if known else {})
            closed = known is not None or not make_tables
            row: list[int] = []
            for piece in pieces:
                for word in (piece,) if piece else next(words):
                    self._add(row, word, table, closed)
            ids.append(row)
            made.append(json.dumps(table.texts))
        return ids, made

    def _pieces(
        self,
        texts: Sequence[str],
        known: list[dict[tuple[str, str], str]] | None,
        all_entities: bool,
    ) -> tuple[list[list[tuple[str, str] | None]], list[str]]:
        """Entities (kind, text) of each text, None for what stands between; and all between, in order."""
        rows, plain = [], []
        for number, text in enumerate(map(normalise, texts)):
            pieces, place = [], 0
            for kind, start, end in self._finder.find(text) if known or all_entities else ():
                entity = (kind, text[start:end])
                if known and entity not in known[number]:
                    continue
                if start > place:
                    plain.append(text[place:start])
                    pieces.append(None)
                pieces.append(entity)
                place = end
            if place < len(text):
                plain.append(text[place:])
                pieces.append(None)
            rows.append(pieces)
        return rows, plain

    def count_words(self, texts: Sequence[str]) -> tuple[int, int]:
        """Words outside the entities of some texts, and how many of them are tokens."""
        _, plain = self._pieces(texts, None, True)
        words = [word for row in self._cut(plain) for word in row]
        return len(words), sum(word in self._text_ids for word in words)

    def _add(
        self, row: list[int], word: str | tuple[str, str], table: _Table, closed: bool
    ) -> None:
        """Appends the ids of a word or of an entity (kind, text)."""
        if isinstance(word, str):
            index = self._text_ids.get(word)
            if index is not None:
                row.append(index)
                return
            entity = (WORD, word) if len(word) >= self.word_characters else None
        else:
            entity = word
        if entity is not None:
            index = table.known.get(entity)
            if index is None and not closed:
                index = table.add(entity)
            if index is not None:
                row.append(index)
                return
            word = entity[1]
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
            row, place = [], 0
            for end in ends[first:last]:
                row.append(text[place:end])
                place = end
            cut.append(row)
        return cut

    def tokenize(
        self, text: str, pair=None, add_special_tokens: bool = False, **kwargs
    ) -> list[str]:
        """The tokens of a sentence, entities indexed."""
        [row], _ = self._encode_texts([text], None, True)
        return [self._tokens[index] for index in row]

    def pad(self, encoded_inputs, *args: Any, **kwargs: Any) -> BatchEncoding:
        """As every tokenizer's; entity tables pass as they are."""
        if isinstance(encoded_inputs, list | tuple):
            names = encoded_inputs[0].keys() if encoded_inputs else ()
            encoded_inputs = {name: [one[name] for one in encoded_inputs] for name in names}
        rest = {name: value for name, value in encoded_inputs.items() if name != ENTITIES}
        batch = super().pad(rest, *args, **kwargs)
        if ENTITIES in encoded_inputs:
            batch[ENTITIES] = encoded_inputs[ENTITIES]
        return batch

    def build_inputs_with_special_tokens(self, token_ids_0, token_ids_1=None) -> list[int]:
        return [BOS, *token_ids_0, EOS]

    # Decoding

    def decode(
        self, token_ids, skip_special_tokens: bool = True, entities=None, **kwargs: Any
    ) -> str | list[str]:
        """The text of ids, or of a list of them.

        entities: the source's table, or a list of them; an indexed token that it does not have is
        dropped and counted. Without it, no indexed token stands for anything.
        """
        if hasattr(token_ids, "tolist"):
            token_ids = token_ids.tolist()
        if isinstance(token_ids, int):
            token_ids = [token_ids]
        if len(token_ids) and isinstance(token_ids[0], list | tuple):
            tables = [entities] * len(token_ids) if entities is None else entities
            pairs = zip(token_ids, tables, strict=True)
            return [self._decode(ids, skip_special_tokens, entities=table) for ids, table in pairs]
        return self._decode(token_ids, skip_special_tokens, entities=entities)

    def batch_decode(self, sequences, skip_special_tokens: bool = True, **kwargs: Any) -> list[str]:
        found = self.decode(sequences, skip_special_tokens, **kwargs)
        return [found] if isinstance(found, str) else found

    def _decode(
        self, token_ids, skip_special_tokens: bool = True, entities: str | None = None, **kwargs
    ) -> str:
        table = json.loads(entities) if entities else {}
        parts: list[str] = []
        data = bytearray()
        for index in token_ids:
            if self._first_byte <= index < self._first_byte + len(BYTES):
                data.append(index - self._first_byte)
                continue
            if data:
                parts.append(_text_of(data))
                data.clear()
            if index < len(SPECIAL):
                if not skip_special_tokens:
                    parts.append(SPECIAL[index])
            elif index < self._first_byte:
                text = table.get(self._tokens[index])
                self.missing_entities += text is None
                parts.append(text or "")
            else:
                parts.append(self._tokens[index])
        if data:
            parts.append(_text_of(data))
        return "".join(parts)

    # What transformers asks of a tokenizer

    @property
    def vocab_size(self) -> int:
        return len(self._tokens)

    def get_vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids.get(token, UNK)

    def _convert_id_to_token(self, index: int) -> str:
        return self._tokens[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self._decode([self._ids[token] for token in tokens])

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        vocabulary = Path(save_directory, prefix + VOCABULARY_FILE)
        settings = Path(save_directory, prefix + SETTINGS_FILE)
        vocabulary.write_text("\n".join(self._tokens) + "\n", "utf-8")
        text = json.dumps(self._settings, ensure_ascii=False, indent=2)
        settings.write_text(text + "\n", "utf-8")
        return str(vocabulary), str(settings)

    def _warn_of_versions(self, path: str) -> None:
        here = {"segmenter": _segmenter_name(self._segmenter), "normalisation": NORMALISATION}
        for name, value in here.items():
            if self._settings[name] != value:
                logger.warning(
                    "%s: made with %s %s, but this is %s: the same text may get other ids",
                    *(path, name, self._settings[name], value),
                )


class _Table:
    """The entity table of a sentence as it grows: token -> text, and (kind, text) -> id."""

    def __init__(self, ids: dict[str, int], indices: int, known: dict[tuple[str, str], str]):
        self._ids, self._indices = ids, indices
        self.known = {entity: ids[token] for entity, token in known.items() if token in ids}
        self.texts: dict[str, str] = {}
        self._used: dict[str, int] = {}

    def add(self, entity: tuple[str, str]) -> int | None:
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


def fixed_tokens(entities: EntitySettings, indices: int) -> dict[str, None]:
    """Tokens before the first character, in the order of their ids."""
    kinds = (*entities.kinds, WORD)
    indexed = (f"<{kind}_{number}>" for kind in kinds for number in range(1, indices + 1))
    return dict.fromkeys((*SPECIAL, *indexed, *BYTES))


def _tokens_by_text(table: str) -> dict[tuple[str, str], str]:
    """(kind, text) -> token, of an entity table."""
    return {
        (token[1:-1].rpartition("_")[0], text): token for token, text in json.loads(table).items()
    }


def _text_of(data: bytearray) -> str:
    """UTF-8, lone surrogates among it; bytes that are neither (a model may write any) are U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def _segmenter_name(segmenter) -> str:
    return f"{segmenter.name}-{segmenter.version}"


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text("utf-8"))
        missing = {"word_characters", "indices", "entities", "normalisation", "segmenter"} - set(
            settings
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if missing:
        raise ValueError(f"{path}: no {min(missing)!r} in it")
    return settings


def _read_tokens(path: Path, fixed: dict[str, None]) -> list[str]:
    tokens = path.read_text("utf-8").split("\n")[:-1]
    if tokens[: len(fixed)] != list(fixed):
        raise ValueError(
            f"{path}: does not begin with the {len(fixed)} fixed tokens of its settings"
        )
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens, 1):
        if not token:
            raise ValueError(f"{path}, line {number}: empty")
        if seen.setdefault(token, number) != number:
            raise ValueError(
                f"{path}, line {number}: {token!r} is there twice, first in line {seen[token]}"
            )
    return tokens


class EntityAlignedConfig(PretrainedConfig):
    """What AutoTokenizer knows the tokenizer by; models have their own configs."""

    model_type = "entity_aligned_tokenizer"


AutoTokenizer.register(EntityAlignedConfig, slow_tokenizer_class=EntityAlignedTokenizer)
