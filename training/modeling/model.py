"""Builds and loads sequence-to-sequence and causal models with their tokenizers.

Raises OSError or ValueError with one line that names the setting or the folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import parse_flag_from_env
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from gaixie.training.modeling.eight_bits import quantise_linear_layers
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import VOCABULARY_FILE
from gaixie.training.settings import Model, Settings
from gaixie.udfs.metrics.encoder import VOCABULARIES, choose_device, load_network, loading
from gaixie.udfs.storage.local_copy import local_copy


def load_tokenizer(folder: str | None, pretrained: str | None = None) -> PreTrainedTokenizerBase:
    """Loads our tokenizer from its folder, which may be in a store; without one, the pretrained
    model's. Raises ValueError if that has no padding or end token."""
    if folder is not None:
        with local_copy(None, folder) as (_, local):
            if not Path(local, VOCABULARY_FILE).is_file():
                raise FileNotFoundError(f"tokenizer: {folder}: no {VOCABULARY_FILE} in it")
            return EntityAlignedTokenizer.from_pretrained(str(local))
    with _named(str(pretrained)):
        tokenizer = AutoTokenizer.from_pretrained(str(pretrained))
        return _checked(tokenizer)


def _checked(tokenizer: Any) -> PreTrainedTokenizerBase:
    if tokenizer.eos_token_id is None:
        raise ValueError("its tokenizer has no end token")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def tokens_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Returns the SHA-256 of the tokens in the order of their ids: 16 hexadecimal digits."""
    vocabulary = tokenizer.get_vocab()
    tokens = "\n".join(sorted(vocabulary, key=vocabulary.__getitem__))
    return hashlib.sha256(tokens.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_causal(settings: Model) -> bool:
    """Returns whether a model is causal; a new one is not."""
    if settings.pretrained is None:
        return False
    with _named(settings.pretrained):
        return not AutoConfig.from_pretrained(settings.pretrained).is_encoder_decoder


def build_model(settings: Settings, tokenizer: PreTrainedTokenizerBase, start: Path | None) -> Any:
    """Builds a new model, or loads one, for training.

    start: a folder with the weights to begin with, or with the adapter to continue. The weights of
    a new model depend only on the seed. The weights that LoRA leaves as they are have the type of
    their file, all others are float32.
    """
    own = settings.model
    torch.manual_seed(settings.seed)
    if own.lora is not None:
        model = _lora(own, own.lora, start)
    elif start is not None or own.pretrained is not None:
        model = _load(own, str(start or own.pretrained), torch.float32)
    else:
        model = BartForConditionalGeneration(_config(own.config or {}, tokenizer))
    model.config.degrees = settings.data.codes is not None
    _check(model, tokenizer, settings)
    return model


def _load(settings: Model, folder: str, dtype: Any) -> Any:
    kind = AutoModelForCausalLM if is_causal(settings) else AutoModelForSeq2SeqLM
    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.cuda.is_available()
    # The backward pass of the CPU's fused attention takes ten times as long as all the rest.
    attention = {"attn_implementation": "eager"} if on_cpu else {}
    with _named(folder):
        return kind.from_pretrained(folder, dtype=dtype, **attention)


def _lora(settings: Model, options: dict[str, Any], start: Path | None) -> Any:
    from peft import LoraConfig, PeftModel, get_peft_model  # takes seconds

    base = _load(settings, str(settings.pretrained), "auto")
    if settings.eight_bits:
        quantise_linear_layers(base)
    if start is not None:
        return PeftModel.from_pretrained(base, str(start), is_trainable=True)
    task = "CAUSAL_LM" if is_causal(settings) else "SEQ_2_SEQ_LM"
    try:
        return get_peft_model(base, LoraConfig(**{"task_type": task} | options))
    except (TypeError, ValueError) as error:
        raise ValueError(f"model.lora: {' '.join(str(error).split())}") from None


def merge_lora(settings: Settings, adapter: Path) -> Any:
    """Returns the pretrained model with an adapter's changes in its weights."""
    from peft import PeftModel
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    unset_hf_deepspeed_config()  # under ZeRO-3, every process would have to load it
    base = _load(settings.model, str(settings.model.pretrained), "auto")
    base.config.degrees = settings.data.codes is not None
    return PeftModel.from_pretrained(base, str(adapter)).merge_and_unload()


def load_model(folder: str, device: str = "auto", precision: str = "float32") -> tuple[Any, Any]:
    """Returns (model, tokenizer) of a folder or a name in the hub's cache, ready to write.

    device: auto is the GPU if there is one. precision: float32 or bfloat16.
    """
    try:
        target = torch.empty(0, device=choose_device(device)).device
    except (RuntimeError, AssertionError):  # AssertionError: torch without CUDA
        raise ValueError(f"device {device!r}: not available here") from None
    with loading(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        files = (*VOCABULARIES, VOCABULARY_FILE)
        if Path(folder).is_dir() and not any(any(Path(folder).glob(name)) for name in files):
            raise ValueError("it has no tokenizer")
        tokenizer = _checked(AutoTokenizer.from_pretrained(folder, local_files_only=True))
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model = load_network(kind, folder, config)
        tokens = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > tokens:
            raise ValueError(
                f"its tokenizer has {len(tokenizer):,} tokens, but the model only {tokens:,}: they "
                "do not belong together"
            )
    return model.to(target, torch.bfloat16 if precision == "bfloat16" else torch.float32), tokenizer


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Returns the tokens that end a sentence; some models have several."""
    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    return [*{*ends, tokenizer.eos_token_id} - {None}]


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
    special = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id")}
    end = ("eos_token_id", "decoder_start_token_id", "forced_eos_token_id")
    special |= dict.fromkeys(end, tokenizer.eos_token_id)
    own = {"num_hidden_layers": values.get("encoder_layers", 12), "vocab_size": len(tokenizer)}
    try:
        return BartConfig(**own | values | special)
    except (TypeError, ValueError) as error:
        raise ValueError(f"model.config: {' '.join(str(error).split())}") from None


def _check(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Settings) -> None:
    """Raises ValueError for a tokenizer that does not fit the model, and for too few positions."""
    name = settings.model.pretrained or "config"
    rows: Any = model.get_input_embeddings().num_embeddings
    aligned = isinstance(tokenizer, EntityAlignedTokenizer)
    if rows != len(tokenizer) and (aligned or rows < len(tokenizer)):  # some models have spare rows
        raise ValueError(
            f"model: {name} has {rows:,} tokens, but the tokenizer {len(tokenizer):,}: they do not "
            "belong together"
        )
    if settings.data.codes is not None and model.config.is_encoder_decoder and not aligned:
        raise ValueError("data.codes: a sequence-to-sequence model needs our tokenizer for them")
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions < settings.max_length:
        raise ValueError(
            f"max_length: {settings.max_length} tokens, but the model has {positions} positions "
            "(max_position_embeddings)"
        )
