"""EntityAlignedTokenizer: words of the vocabulary, characters, and entities as indexed tokens.

Source: Chinese Sentence Paraphrasing, section 5.2. A sentence under gaixie.udfs.text.normalise becomes, from
left to right,

* an entity of fixed form (gaixie.udfs.text.entities) → one indexed token: ``<date_1>``,
  ``<title_2>``;
* of the text between, cut into words by jieba (gaixie.udfs.text.segmenters.jieba):
  a place name → ``<location_i>``, where the tokenizer was made with some;
  a word of the vocabulary → its token;
  any other of k characters or more → an indexed token ``<word_i>`` (k = word_characters, by default 4);
  any other → its characters, and a character that the vocabulary lacks → its UTF-8 bytes, ``<0xE4>``.

Equal entities of a sentence share an index. What each token stands for is the sentence's *entity
table*; it travels with the example as a string of JSON, column ``entities``. Encoding a target
against its source's table gives what stands in both the same token and spells the rest, so that a
model learns to copy the one and to write the other. Section 5.2 has special tokens for them: for a long word
of the target that the source does not have, and for an entity beyond the last index. Here both are spelled,
for such a token would stand for nothing when it is decoded, and the model would learn to leave a gap where
the training pair has words. Decoding with a table puts the entities back;
a token that the table does not have is dropped, and counted by ``missing_entities``.

Every token lives in the base vocabulary: a transformers tokenizer takes minutes to load as many added
ones. Text is never searched for the names of tokens: a sentence that contains ``<date_1>`` or ``</s>``
is spelled like any other.

  tokenizer = EntityAlignedTokenizer.from_words(words, entity_settings)
  batch = tokenizer(sources, text_target=targets)     # input_ids, attention_mask, entities, labels
  tokenizer.decode(ids, entities=batch["entities"][0])
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BatchEncoding, PretrainedConfig

from gaixie.training.modeling import vocabulary
from gaixie.training.modeling.encode_plus import ENTITIES, SentenceTokenizer
from gaixie.training.modeling.entity_codec import EntityCodec
from gaixie.udfs.text.entities import EntitySettings
from gaixie.udfs.text.normalise import NORMALISATION

logger = logging.getLogger(__name__)


class EntityAlignedTokenizer(SentenceTokenizer):
    """A tokenizer of transformers; from_words makes one, save_pretrained and from_pretrained keep it.

    vocabulary_file, settings_file: see training/modeling/vocabulary.py.

    Raises ValueError, in one line with the file's name, where a file is not what it should be. Warns,
    with both names, where segmenter or normalisation are other ones than the folder was made with.
    """

    vocab_files_names = vocabulary.FILES
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(self, vocabulary_file: str, settings_file: str, **kwargs: Any):
        self._settings = vocabulary.read_settings(Path(settings_file))
        entities = EntitySettings.model_validate(self._settings["entities"])
        word_characters, indices = self._settings["word_characters"], self._settings["indices"]
        self.entity_kinds: tuple[str, ...] = entities.kinds
        self.degrees = self._settings.get("degrees", 0)
        """How many degrees of change it has tokens for; 0 in old folders."""
        locations = self._settings.get("locations", "").split()
        if locations:
            self.entity_kinds = (*entities.kinds, vocabulary.LOCATION)
        fixed = vocabulary.fixed_tokens(entities, indices, self.degrees, bool(locations))
        tokens = vocabulary.read_tokens(Path(vocabulary_file), fixed)
        settings = word_characters, indices, self.degrees, locations
        self.codec = EntityCodec(tokens, entities, *settings)
        self._warn_of_versions(settings_file)
        names = ("pad_token", "bos_token", "eos_token", "unk_token", "mask_token")
        kwargs = dict(zip(names, vocabulary.SPECIAL, strict=True)) | kwargs
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
        """A tokenizer whose tokens are these words and each of their characters.

        words: the most frequent first, normalised. word_characters: k, the characters from which on an
        unknown word is an entity. indices: how many entities of a kind a sentence may have; the rest is
        spelled. characters: more of them that are tokens; all others are spelled in bytes. locations: place
        names, which are entities wherever the segmenter finds them as words.

        Raises ValueError for a word that is given twice, empty, or has the name of a token.
        """
        with tempfile.TemporaryDirectory() as folder:
            files = vocabulary.write_files(
                Path(folder), words, entities, word_characters, indices, characters, locations
            )
            return cls(*map(str, files), **kwargs)

    @property
    def missing_entities(self) -> int:
        """Indexed tokens that decoding has dropped, as their sentence's table did not have them."""
        return self.codec.missing_entities

    @property
    def entity_ids(self) -> range:
        """Ids of the indexed tokens."""
        return self.codec.entity_ids

    def degree_id(self, degree: int) -> int:
        """The token of a degree of change. Raises ValueError where the tokenizer has none for it."""
        if not 1 <= degree <= self.degrees:
            known = f"1 to {self.degrees}" if self.degrees else "none, it was made without"
            raise ValueError(f"degree {degree}: the tokenizer's degrees are {known}")
        return len(vocabulary.SPECIAL) + degree - 1

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

    def encode_sentences(
        self, texts: Sequence[str], tables: Sequence[str] | None, make_tables: bool
    ) -> tuple[list[list[int]], list[str]]:
        """See EntityCodec.encode."""
        return self.codec.encode(texts, tables, make_tables)

    def count_words(self, texts: Sequence[str]) -> tuple[int, int]:
        """Words outside the entities of some texts, and how many of them are tokens."""
        return self.codec.count_words(texts)

    def tokenize(
        self, text: str, pair=None, add_special_tokens: bool = False, **kwargs
    ) -> list[str]:
        """The tokens of a sentence, entities indexed."""
        [row], _ = self.codec.encode([text], None, True)
        return [self.codec.tokens[index] for index in row]

    def pad(self, encoded_inputs, *args: Any, **kwargs: Any) -> BatchEncoding:
        """Pads as every tokenizer does; entity tables pass as they are."""
        if isinstance(encoded_inputs, list | tuple):
            names = encoded_inputs[0].keys() if encoded_inputs else ()
            encoded_inputs = {name: [row[name] for row in encoded_inputs] for name in names}
        rest = {name: value for name, value in encoded_inputs.items() if name != ENTITIES}
        batch = super().pad(rest, *args, **kwargs)
        if ENTITIES in encoded_inputs:
            batch[ENTITIES] = encoded_inputs[ENTITIES]
        return batch

    def build_inputs_with_special_tokens(self, token_ids_0, token_ids_1=None) -> list[int]:
        """A sentence's ids between BOS and EOS."""
        return [vocabulary.BOS, *token_ids_0, vocabulary.EOS]

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
            return [self.codec.decode(ids, skip_special_tokens, table) for ids, table in pairs]
        return self.codec.decode(token_ids, skip_special_tokens, entities)

    def batch_decode(  # type: ignore[override]  # skips what is special unless told otherwise
        self, sequences: Any, skip_special_tokens: bool = True, **kwargs: Any
    ) -> list[str]:
        """decode for a list of sentences; always a list."""
        texts = self.decode(sequences, skip_special_tokens, **kwargs)
        return [texts] if isinstance(texts, str) else texts

    # What transformers asks of a tokenizer

    @property
    def vocab_size(self) -> int:
        return len(self.codec.tokens)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.codec.ids)

    def _convert_token_to_id(self, token: str) -> int:
        return self.codec.ids.get(token, vocabulary.UNK)

    def _convert_id_to_token(self, index: int) -> str:
        return self.codec.tokens[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self.codec.decode([self.codec.ids[token] for token in tokens])

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        tokens = Path(save_directory, prefix + vocabulary.VOCABULARY_FILE)
        settings = Path(save_directory, prefix + vocabulary.SETTINGS_FILE)
        vocabulary.write_tokens(tokens, self.codec.tokens)
        vocabulary.write_settings(settings, self._settings)
        return str(tokens), str(settings)

    def _warn_of_versions(self, path: str) -> None:
        here = {"segmenter": vocabulary.segmenter_name(), "normalisation": NORMALISATION}
        for name, value in here.items():
            if self._settings[name] != value:
                logger.warning(
                    "%s: made with %s %s, but this is %s: the same text may get other ids",
                    *(path, name, self._settings[name], value),
                )


class EntityAlignedConfig(PretrainedConfig):
    """What AutoTokenizer knows the tokenizer by; models have their own configs."""

    model_type = "entity_aligned_tokenizer"


AutoTokenizer.register(EntityAlignedConfig, slow_tokenizer_class=EntityAlignedTokenizer)
