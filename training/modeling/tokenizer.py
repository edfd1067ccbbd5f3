"""EntityAlignedTokenizer: words of the vocabulary, characters, and entities as indexed tokens.

Source: Chinese Sentence Paraphrasing, section 5.2. A sentence under gaixie.udfs.text.normalise
becomes, from left to right,

* an entity of fixed form (gaixie.udfs.text.entities) → one indexed token: ``<date_1>``,
  ``<title_2>``;
* of the text between, cut into words by jieba (gaixie.udfs.text.segmenters.jieba):
  a place name → ``<location_i>``, where the tokenizer was made with some;
  a word of the vocabulary → its token;
  any other of k characters or more → an indexed token ``<word_i>`` (k = word_characters, 4);
  any other → its characters; one that the vocabulary lacks → its UTF-8 bytes, ``<0xE4>``.

Equal entities of a sentence share an index. The sentence's *entity table* says what each token
stands for; it travels with the example as a JSON string, column ``entities``. A target encoded
against its source's table gets the same tokens for the entities in both and spells the rest, so
that a model learns to copy the first and to write the second. Section 5.2 has special tokens for
the rest: for a long word of the target that the source lacks, and for an entity beyond the last
index. Here both are spelled: such a token would stand for nothing when it is decoded, and the model
would learn to leave a gap where the training pair has words. Decoding with a table restores the
entities; a token that the table lacks is dropped.

Every token is in the base vocabulary: a transformers tokenizer with as many added tokens takes
minutes to load. Text is never searched for names of tokens: a sentence that contains ``<date_1>``
or ``</s>`` is spelled like any other.

  tokenizer = EntityAlignedTokenizer.from_words(words, entity_settings)
  batch = tokenizer(sources, text_target=targets)     # input_ids, attention_mask, entities, labels
  tokenizer.decode(ids, entities=batch["entities"][0])
"""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BatchEncoding, PretrainedConfig, PreTrainedTokenizer
from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy

from gaixie.training.modeling import vocabulary
from gaixie.training.modeling.entity_codec import EntityCodec
from gaixie.training.modeling.vocabulary import BOS, EOS, SPECIAL, TokenizerSettings
from gaixie.udfs.text.entities import EntitySettings
from gaixie.udfs.text.normalise import NORMALISATION

ENTITIES = "entities"
"""The column that holds an example's entity table."""
PADDING = ("pad_to_multiple_of", "padding_side", "return_attention_mask", "return_tensors")
logger = logging.getLogger(__name__)


class EntityAlignedTokenizer(PreTrainedTokenizer):
    """A transformers tokenizer; from_words makes one, save_pretrained and from_pretrained store it.

    vocabulary_file, settings_file: see training/modeling/vocabulary.py.

    Raises ValueError, in one line that names the file, for an invalid file. Warns, with both names,
    if segmenter or normalisation differ from those that made the folder.
    """

    vocab_files_names = vocabulary.FILES
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(self, vocabulary_file: str, settings_file: str, **kwargs: Any):
        settings = vocabulary.read_settings(Path(settings_file))
        tokens = vocabulary.read_tokens(Path(vocabulary_file), settings.fixed_tokens())
        self.codec = EntityCodec(tokens, settings)
        here = {"segmenter": vocabulary.segmenter_name(), "normalisation": NORMALISATION}
        for name, value in here.items():
            if (before := getattr(settings, name)) != value:
                logger.warning(
                    "%s: made with %s %s, but this is %s: the same text may get different ids",
                    *(settings_file, name, before, value),
                )
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
        locations: Iterable[str] = (),
        **kwargs: Any,
    ) -> EntityAlignedTokenizer:
        """Makes a tokenizer whose tokens are these words and each of their characters.

        words: most frequent first, normalised. word_characters: k, the length from which an unknown
        word is an entity. indices: maximum entities of a kind in a sentence; the rest is spelled.
        characters: further characters that are tokens; all others are spelled in bytes. locations:
        place names, which are entities wherever the segmenter finds them as words.

        Raises ValueError for a word that is repeated, empty, or named like a token.
        """
        words = list(words)
        settings = TokenizerSettings(
            word_characters=word_characters,
            indices=indices,
            entities=entities,
            locations=" ".join(sorted({*locations})),
            normalisation=NORMALISATION,
            segmenter=vocabulary.segmenter_name(),
        )
        fixed = settings.fixed_tokens()
        for word, times in Counter(words).items():
            if not word or word in fixed or any(mark in word for mark in "\n\r"):
                raise ValueError(f"vocabulary: {word!r} cannot be a word")
            if times > 1:
                raise ValueError(f"vocabulary: the word {word!r} occurs twice")
        spelled = {*"".join(words), *vocabulary.CHARACTERS, *characters}
        tokens = [*fixed, *sorted(spelled - set(words)), *words]
        with tempfile.TemporaryDirectory() as folder:
            return cls(*vocabulary.write_files(Path(folder), tokens, settings), **kwargs)

    # Encoding

    def __call__(self, text=None, text_pair=None, text_target=None, **kwargs: Any) -> BatchEncoding:
        """Encodes sentences and, with text_target, their paraphrases as aligned labels."""
        batch = super().__call__(text, text_pair, entities=True, **kwargs)
        if text_target is not None:
            aligned = super().__call__(text_target, entities=batch[ENTITIES], **kwargs)
            batch["labels"] = aligned["input_ids"]
        return batch

    def _encode_plus(  # type: ignore[override]  # the rest is in options
        self,
        text: Any,
        text_pair: Any = None,
        add_special_tokens: bool = True,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        entities: bool | str | list[str] = False,
        **options: Any,
    ) -> BatchEncoding:
        """Encodes; every public method that encodes ends here, with its arguments resolved.

        entities: True makes tables; given tables align the sentences; False spells all. The method
        is private to transformers, which may change it in any release: pyproject.toml has an upper
        bound.
        """
        if text_pair is not None or options.get("is_split_into_words"):
            raise ValueError("expected whole sentences, as text and text_target")
        single = isinstance(text, str)
        tables = [entities] if isinstance(entities, str) else entities
        rows, made = self.codec.encode(
            [text] if single else [*text],
            tables if isinstance(tables, list) else None,
            tables is True,
        )
        if add_special_tokens:
            rows = [[BOS, *row, EOS] for row in rows]
        if truncation_strategy != TruncationStrategy.DO_NOT_TRUNCATE and max_length:
            end = [EOS][:max_length] if add_special_tokens else []
            rows = [
                [*row[: max_length - len(end)], *end] if len(row) > max_length else row
                for row in rows
            ]
        single = single and options.get("return_tensors") is None
        padding: dict[str, Any] = {name: options.get(name) for name in PADDING}
        batch: dict[str, Any] = {"input_ids": rows[0] if single else rows}
        encoding = self.pad(batch, padding_strategy.value, max_length, **padding)
        if entities is True:
            encoding[ENTITIES] = made[0] if single else made
        return encoding

    def tokenize(
        self, text: str, pair=None, add_special_tokens: bool = False, **kwargs
    ) -> list[str]:
        """Returns the tokens of a sentence, with entities indexed."""
        [row], _ = self.codec.encode([text], None, True)
        return [self.codec.tokens[index] for index in row]

    # Decoding

    def decode(
        self, token_ids, skip_special_tokens: bool = True, entities=None, **kwargs: Any
    ) -> str | list[str]:
        """Returns the text of ids, or of a list of them.

        entities: the source's table, or a list of them; an indexed token that it lacks is dropped
        and counted. Without it, no indexed token stands for anything.
        """
        if hasattr(token_ids, "tolist"):
            token_ids = token_ids.tolist()
        if isinstance(token_ids, int):
            token_ids = [token_ids]
        if len(token_ids) and isinstance(token_ids[0], list | tuple):
            tables = [entities] * len(token_ids) if entities is None else entities
            pairs = zip(token_ids, tables, strict=True)
            return [self.codec.decode(ids, skip_special_tokens, table) for ids, table in pairs]
        return self.codec.decode(token_ids, skip_special_tokens, entities)

    # Methods that transformers requires of a tokenizer

    @property
    def vocab_size(self) -> int:
        return len(self.codec.tokens)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.codec.ids)

    def _convert_token_to_id(self, token: str) -> int:
        return self.codec.ids.get(token, vocabulary.UNK)

    def _convert_id_to_token(self, index: int) -> str:
        return self.codec.tokens[index]

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        return vocabulary.write_files(Path(save_directory), self.codec.tokens, self.codec.settings)


class EntityAlignedConfig(PretrainedConfig):
    """Identifies the tokenizer for AutoTokenizer; models have their own configs."""

    model_type = "entity_aligned_tokenizer"


AutoTokenizer.register(EntityAlignedConfig, slow_tokenizer_class=EntityAlignedTokenizer)
