"""The model of a run: a new one of BART's architecture for a tokenizer, or one that is trained; and
its tokenizer, ours or the trained model's own.

Raises OSError or ValueError with one line that names the setting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import VOCABULARY_FILE
from gaixie.training.settings import Model
from gaixie.udfs.storage.local_copy import local_copy


def load_tokenizer(folder: str | None, pretrained: str | None = None) -> PreTrainedTokenizerBase:
    """Ours, from its folder, which may be in a store; without one that of the pretrained model."""
    if folder is not None:
        with local_copy(None, folder) as (_, local):
            if not Path(local, VOCABULARY_FILE).is_file():
                raise FileNotFoundError(f"tokenizer: {folder}: no {VOCABULARY_FILE} in it")
            return EntityAlignedTokenizer.from_pretrained(str(local))
    with _named(str(pretrained)):
        tokenizer = AutoTokenizer.from_pretrained(pretrained)
        if tokenizer.pad_token_id is None:
            raise ValueError("its tokenizer has no padding token")
    return tokenizer


def tokens_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """SHA-256 of the tokens in the order of their ids: 16 hexadecimal digits."""
    vocabulary = tokenizer.get_vocab()
    tokens = "\n".join(sorted(vocabulary, key=vocabulary.__getitem__))
    return hashlib.sha256(tokens.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def build_model(
    settings: Model, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> PreTrainedModel:
    """A new model, or one that is read. The weights of a new one depend on torch's seed alone."""
    if settings.pretrained is not None:
        with _named(settings.pretrained):
            model = AutoModelForSeq2SeqLM.from_pretrained(settings.pretrained, dtype=torch.float32)
    else:
        model = BartForConditionalGeneration(_config(settings.config or {}, tokenizer))
    _check(model, tokenizer, settings.pretrained or "config", max_length)
    return model


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Makes what transformers cannot load one line that names the setting."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise ValueError(f"model.pretrained: {name}: {first_line}") from None


def _config(values: dict[str, Any], tokenizer: PreTrainedTokenizerBase) -> BartConfig:
    for name in values:
        if not hasattr(BartConfig(), name):
            raise ValueError(f"model.config: BART has no setting '{name}'")
    if "vocab_size" in values:
        raise ValueError("model.config: vocab_size is the tokenizer's, leave it out")
    special = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "decoder_start_token_id": tokenizer.eos_token_id,
        "forced_eos_token_id": tokenizer.eos_token_id,
    }
    try:
        return BartConfig(
            **{"num_hidden_layers": values.get("encoder_layers", 12)} | values | special
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"model.config: {' '.join(str(error).split())}") from None


def _check(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str, max_length: int
) -> None:
    """Raises ValueError for a tokenizer that does not fit the model, and for too few positions."""
    rows: Any = model.get_input_embeddings().num_embeddings
    aligned = isinstance(tokenizer, EntityAlignedTokenizer)
    if rows != len(tokenizer) and (aligned or rows < len(tokenizer)):  # some models have spare rows
        raise ValueError(
            f"model: {name} has {rows:,} tokens, but the tokenizer {len(tokenizer):,}: they do not "
            "belong together"
        )
    for token in ("pad_token_id", "eos_token_id"):
        theirs, ours = getattr(model.config, token), getattr(tokenizer, token)
        if theirs != ours:
            raise ValueError(f"model: {name} has {token} {theirs}, but the tokenizer {ours}")
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions < max_length:
        raise ValueError(
            f"max_length: {max_length} tokens, but the model has {positions} positions "
            "(max_position_embeddings)"
        )
