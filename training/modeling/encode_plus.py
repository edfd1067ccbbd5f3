"""What training/modeling/tokenizer.py overrides of the private parts of transformers: _encode_plus.

Every public way to encode, ``__call__`` and ``encode``, ends there with its arguments resolved. The method
is private: transformers may change it in any release, so pyproject.toml has an upper bound, and
tests/training/modeling/test_encode_plus.py compares the arguments with those of the release that is
installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizer
from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy

from gaixie.training.modeling.vocabulary import BOS, EOS, SPECIAL

WRITTEN_FOR = "5.23"
"""The release of transformers."""
ARGUMENTS = (
    *("self", "text", "text_pair", "add_special_tokens", "padding_strategy", "truncation_strategy"),
    *("max_length", "stride", "is_split_into_words", "pad_to_multiple_of", "padding_side"),
    *("return_tensors", "return_token_type_ids", "return_attention_mask"),
    *("return_overflowing_tokens", "return_special_tokens_mask", "return_length", "verbose"),
    "kwargs",
)
"""Of its _encode_plus; of those that are not used below, none says what a sentence becomes."""
PADDING = ("pad_to_multiple_of", "padding_side", "return_attention_mask", "return_tensors")

ENTITIES = "entities"
"""The column that holds an example's entity table."""


class SentenceTokenizer(PreTrainedTokenizer):
    """A tokenizer of transformers whose encode_sentences says what sentences become."""

    def encode_sentences(
        self, texts: Sequence[str], tables: Sequence[str] | None, make_tables: bool
    ) -> tuple[list[list[int]], list[str]]:
        """Ids of each text without special tokens, and their entity tables."""
        raise NotImplementedError

    def _encode_plus(  # type: ignore[override]  # the rest is in options
        self,
        text: Any,
        text_pair: Any = None,
        add_special_tokens: bool = True,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        return_entities: bool = False,
        source_entities: str | Sequence[str] | None = None,
        **options: Any,
    ) -> BatchEncoding:
        if text_pair is not None:
            raise ValueError("two sentences are encoded as text and text_target, not as text_pair")
        single = isinstance(text, str)
        texts = [text] if single else list(text)
        if options.get("is_split_into_words") or not all(isinstance(text, str) for text in texts):
            raise ValueError("expected a sentence or a list of sentences")
        tables = [source_entities] if isinstance(source_entities, str) else source_entities
        rows, entities = self.encode_sentences(texts, tables, return_entities)
        if add_special_tokens:
            rows = [[BOS, *row, EOS] for row in rows]
        if truncation_strategy != TruncationStrategy.DO_NOT_TRUNCATE and max_length:
            rows = [_truncate(row, max_length, add_special_tokens) for row in rows]
        batch: dict[str, Any] = {"input_ids": rows}
        if options.get("return_special_tokens_mask"):
            batch["special_tokens_mask"] = [[int(i < len(SPECIAL)) for i in row] for row in rows]
        if options.get("return_length"):
            batch["length"] = [len(row) for row in rows]
        single = single and options.get("return_tensors") is None
        if single and padding_strategy != PaddingStrategy.MAX_LENGTH:
            batch = {name: column[0] for name, column in batch.items()}
        padding: dict[str, Any] = {name: options.get(name) for name in PADDING}
        encoding = self.pad(batch, padding_strategy.value, max_length, **padding)
        if return_entities:
            encoding[ENTITIES] = entities[0] if single else entities
        return encoding


def _truncate(row: list[int], longest: int, special: bool) -> list[int]:
    """At most so many ids, the last of them EOS where special tokens are wanted."""
    if len(row) <= longest:
        return row
    return [*row[: max(longest - 1, 0)], EOS][:longest] if special else row[:longest]
