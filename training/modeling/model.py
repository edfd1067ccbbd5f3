"""Builds and loads models with tokenizers: a new BART for ours, or any transformers
encoder-decoder.

It settles what models of the hub leave open, for training and generation alike: their end token,
their languages, and what the decoder reads.

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
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BertTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import VOCABULARY_FILE
from gaixie.training.settings import Model
from gaixie.udfs.metrics.encoder import VOCABULARIES, choose_device, load_network, loading
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.local_copy import local_copy

IGNORED = -100
"""The label that a loss ignores."""
CHINESE = ("zh_CN", "zh", "zho_Hans")
"""Names of Chinese in multilingual tokenizers."""


def load_tokenizer(folder: str | None, pretrained: str | None = None) -> PreTrainedTokenizerBase:
    """Loads our tokenizer from its folder, which may be in a store; without one, the pretrained
    model's."""
    if folder is not None:
        with local_copy(None, folder) as (_, local):
            if not Path(local, VOCABULARY_FILE).is_file():
                raise FileNotFoundError(f"tokenizer: {folder}: no {VOCABULARY_FILE} in it")
            return EntityAlignedTokenizer.from_pretrained(str(local))
    with _named(str(pretrained)):
        return hub_tokenizer(str(pretrained))


def hub_tokenizer(name: str, **options: Any) -> PreTrainedTokenizerBase:
    """Loads a model's tokenizer, with an end token, reading and writing Chinese.

    Raises ValueError if it has no padding token.
    """
    tokenizer = AutoTokenizer.from_pretrained(name, **options)
    if len(tokenizer) <= len(tokenizer.all_special_tokens):  # a BART with BERT's vocabulary
        tokenizer = BertTokenizer.from_pretrained(name, **options)
    if tokenizer.pad_token_id is None:
        raise ValueError("its tokenizer has no padding token")
    if tokenizer.eos_token_id is None and tokenizer.sep_token_id is not None:
        tokenizer.eos_token = tokenizer.sep_token
    if language := _chinese(tokenizer):
        tokenizer.src_lang = tokenizer.tgt_lang = language
    return tokenizer


def _chinese(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """Returns a multilingual tokenizer's name of Chinese; None for any other tokenizer."""
    if not hasattr(tokenizer, "tgt_lang"):
        return None
    known = getattr(tokenizer, "lang_code_to_id", None) or tokenizer.get_vocab()
    return next((code for code in CHINESE if code in known), None)


def _settle(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Makes a multilingual model write Chinese, by the token that begins or ends its labels."""
    if _chinese(tokenizer):
        labels = tokenizer(text_target="今")["input_ids"]
        if labels[-1] == tokenizer.eos_token_id:
            model.generation_config.forced_bos_token_id = labels[0]
        else:  # mBART's first kind: its decoder begins with the language
            for config in (model.config, model.generation_config):
                config.decoder_start_token_id = labels[-1]


def decoder_ids(model: Any, labels: torch.Tensor) -> torch.Tensor:
    """Returns what the decoder reads to predict labels, which are padded with IGNORED."""
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        return model.prepare_decoder_input_ids_from_labels(labels)
    read = labels.roll(1, dims=1)
    read[:, 0] = model.config.decoder_start_token_id
    return read.masked_fill(read == IGNORED, model.config.pad_token_id)


def end_tokens(model: Any) -> list[int]:
    """Returns the tokens that end a sentence; some models have several."""
    ends = model.generation_config.eos_token_id
    return ends if isinstance(ends, list) else [ends]


def tokens_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Returns the SHA-256 of the tokens in the order of their ids: 16 hexadecimal digits."""
    vocabulary = tokenizer.get_vocab()
    tokens = "\n".join(sorted(vocabulary, key=vocabulary.__getitem__))
    return hashlib.sha256(tokens.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def build_model(
    settings: Model, tokenizer: PreTrainedTokenizerBase, max_length: int, degrees: bool = False
) -> PreTrainedModel:
    """Builds a new model, or loads one. The weights of a new one depend only on torch's seed.

    degrees: whether it is to learn degrees of change; its configuration records this.
    """
    if settings.pretrained is not None:
        with _named(settings.pretrained):
            model = AutoModelForSeq2SeqLM.from_pretrained(settings.pretrained, dtype=torch.float32)
    else:
        model = BartForConditionalGeneration(_config(settings.config or {}, tokenizer))
    _settle(model, tokenizer)
    if degrees:
        model.config.degrees = True
    _check(model, tokenizer, settings.pretrained or "config", max_length)
    return model


def load_model(folder: str, device: str = "cpu", precision: str = "float32") -> tuple[Any, Any]:
    """Returns (model, tokenizer) of a folder, ready to write; see generation.load_generator."""
    try:
        target = torch.empty(0, device=choose_device(device)).device
    except (RuntimeError, AssertionError):  # AssertionError: torch without CUDA
        raise ValueError(f"device {device!r}: not available here") from None
    with loading(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if not config.is_encoder_decoder:
            raise ValueError(f"{config.model_type} is not a sequence-to-sequence model")
        files = (*VOCABULARIES, VOCABULARY_FILE)
        if Path(folder).is_dir() and not any(any(Path(folder).glob(name)) for name in files):
            raise ValueError("it has no tokenizer")
        tokenizer = hub_tokenizer(folder, local_files_only=True)
        model = load_network(AutoModelForSeq2SeqLM, folder, config)
        tokens = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > tokens:
            raise ValueError(
                f"its tokenizer has {len(tokenizer):,} tokens, but the model only {tokens:,}: they "
                "do not belong together"
            )
        _settle(model, tokenizer)
        about = Path(folder, "training.json")
        if not hasattr(model.config, "degrees") and about.is_file():  # of an older version
            settings = storage.read_json(str(about)).get("settings", {})
            model.config.degrees = bool(settings.get("data", {}).get("degrees"))
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    return model.to(target, dtype), tokenizer


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Turns loading errors of transformers into one line that names the setting."""
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
        raise ValueError("model.config: vocab_size comes from the tokenizer; remove it")
    try:
        own = {"num_hidden_layers": values.get("encoder_layers", 12), "vocab_size": len(tokenizer)}
        return BartConfig(**own | values | special_ids(tokenizer))
    except (TypeError, ValueError) as error:
        raise ValueError(f"model.config: {' '.join(str(error).split())}") from None


def special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Returns what a BART must know of a tokenizer's special tokens."""
    names = ("pad_token_id", "bos_token_id", "eos_token_id")
    ends = dict.fromkeys(("decoder_start_token_id", "forced_eos_token_id"), tokenizer.eos_token_id)
    return {name: getattr(tokenizer, name) for name in names} | ends


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
        if ours not in (theirs if isinstance(theirs, list) else [theirs]):
            raise ValueError(f"model: {name} has {token} {theirs}, but the tokenizer {ours}")
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions < max_length:
        raise ValueError(
            f"max_length: {max_length} tokens, but the model has {positions} positions "
            "(max_position_embeddings)"
        )
