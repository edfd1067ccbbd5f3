"""The private method of transformers that the tokenizer overrides is the one that it was written for."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("transformers", reason="the tokenizer is one of transformers")

import transformers

from gaixie.training.modeling.tokenizer import PADDING, EntityAlignedTokenizer

WRITTEN_FOR = "5.23"
"""The release of transformers."""
ARGUMENTS = (
    *("self", "text", "text_pair", "add_special_tokens", "padding_strategy", "truncation_strategy"),
    *("max_length", "stride", "is_split_into_words", "pad_to_multiple_of", "padding_side"),
    *("return_tensors", "return_token_type_ids", "return_attention_mask"),
    *("return_overflowing_tokens", "return_special_tokens_mask", "return_length", "verbose"),
    "kwargs",
)
"""Of its _encode_plus; of those that ours does not use, none says what a sentence becomes."""


def test_transformers_has_the_arguments_that_ours_was_written_for():
    theirs = inspect.signature(transformers.PreTrainedTokenizer._encode_plus).parameters
    assert tuple(theirs) == ARGUMENTS, (
        f"_encode_plus of transformers {transformers.__version__} has other arguments than that of "
        f"{WRITTEN_FOR}: check EntityAlignedTokenizer against it, then ARGUMENTS, "
        "WRITTEN_FOR and the bound in pyproject.toml"
    )


def test_ours_takes_them():
    ours = inspect.signature(EntityAlignedTokenizer._encode_plus)
    ours.bind(**dict.fromkeys(set(ARGUMENTS) - {"kwargs"}))
    assert set(PADDING) < set(ARGUMENTS)


def test_pad_takes_what_is_handed_on():
    names = inspect.signature(transformers.PreTrainedTokenizer.pad).parameters
    assert [*names][1:4] == ["encoded_inputs", "padding", "max_length"]
    assert set(PADDING) < set(names)
