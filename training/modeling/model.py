"""Builds and loads sequence-to-sequence and causal models, and tokenizers.

Raises OSError or ValueError with one line that names the setting or the folder.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate.utils import parse_flag_from_env
from transformers import AutoConfig, AutoTokenizer, BartConfig, PreTrainedTokenizerBase

from gaixie.training.modeling.eight_bits import quantise_linear_layers
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import VOCABULARY_FILE
from gaixie.training.settings import Model, Settings
from gaixie.udfs.networks import VOCABULARIES, choose_device, load_network, loading
from gaixie.udfs.storage.local_copy import local_copy


def load_tokenizer(name: str, download: bool = False) -> PreTrainedTokenizerBase:
    """Loads our tokenizer, or any other, from a folder or from the hub's cache.

    name: the folder, which may be in a store, or the name on the hub. download: from the hub, if it
    is not in the cache. Raises ValueError if it has no end token.
    """
    with local_copy(None, name) as (_, folder), _in_a_line(name):
        files = (*VOCABULARIES, VOCABULARY_FILE)
        if folder.is_dir() and not any(any(folder.glob(file)) for file in files):
            raise ValueError("it has no tokenizer")  # transformers would make an empty one
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=not download)
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
        model = _load(str(start or own.pretrained), torch.float32)
    else:
        model = transformers.BartForConditionalGeneration(_config(own.config or {}, tokenizer))
    model.config.degrees = settings.data.codes is not None
    _check(model, tokenizer, settings)
    return model


def _load(name: str, dtype: Any) -> Any:
    # The backward pass of the CPU's fused attention takes ten times as long as all the rest.
    attention = {"attn_implementation": "eager"} if on_cpu() else {}
    with _in_a_line(name):
        kind = _kind(AutoConfig.from_pretrained(name))
        return kind.from_pretrained(name, dtype=dtype, **attention)


def on_cpu() -> bool:
    """Tells whether a training runs on the CPU."""
    return parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.cuda.is_available()


def _kind(config: Any) -> Any:
    name = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
    return getattr(transformers, name)


def _lora(settings: Model, options: dict[str, Any], start: Path | None) -> Any:
    from peft import LoraConfig, PeftModel, get_peft_model  # takes seconds

    base = _load(str(settings.pretrained), "auto")
    if settings.eight_bits:
        if not on_cpu():
            raise ValueError("model.eight_bits: only for CPUs; on a GPU, set it to false")
        quantise_linear_layers(base)
    if start is not None:
        return PeftModel.from_pretrained(base, str(start), is_trainable=True)
    task = "SEQ_2_SEQ_LM" if base.config.is_encoder_decoder else "CAUSAL_LM"
    with _in_a_line("model.lora"):
        return get_peft_model(base, LoraConfig(**{"task_type": task} | options))


def merge_lora(settings: Settings, adapter: Path) -> Any:
    """Returns the pretrained model with an adapter's changes in its weights."""
    from peft import PeftModel
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    unset_hf_deepspeed_config()  # under ZeRO-3, every process would have to load it
    base = _load(str(settings.model.pretrained), "auto")
    base.config.degrees = settings.data.codes is not None
    return PeftModel.from_pretrained(base, str(adapter)).merge_and_unload()


def load_model(folder: str, precision: str = "float32") -> tuple[Any, Any]:
    """Returns (model, tokenizer) of a folder or a name in the hub's cache, ready to write, on the
    GPU if there is one.

    precision: float32 or bfloat16.
    """
    with loading(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        model = load_network(_kind(config), folder, config)
    tokenizer = load_tokenizer(folder)
    _check_size(folder, model, tokenizer)
    return model.to(choose_device("auto"), getattr(torch, precision)), tokenizer


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Returns the tokens that end a sentence; some models have several."""
    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    return [*{*ends, tokenizer.eos_token_id} - {None}]


@contextmanager
def _in_a_line(name: str) -> Iterator[None]:
    """Turns errors of transformers and PEFT into one line that names what was loaded."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, OSError) and "://" not in name and not Path(name).exists():
            first_line = "no such folder, nor a model that the hub or its cache gives"
        raise ValueError(f"{name}: {first_line}") from None


def _config(values: dict[str, Any], tokenizer: PreTrainedTokenizerBase) -> BartConfig:
    with _in_a_line("model.config"):
        for name in values:
            if not hasattr(BartConfig(), name):
                raise ValueError(f"BART has no setting '{name}'")
        if "vocab_size" in values:
            raise ValueError("vocab_size comes from the tokenizer; remove it")
        special = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id")}
        end = ("eos_token_id", "decoder_start_token_id", "forced_eos_token_id")
        special |= dict.fromkeys(end, tokenizer.eos_token_id)
        own = {"num_hidden_layers": values.get("encoder_layers", 12), "vocab_size": len(tokenizer)}
        return BartConfig(**own | values | special)


def _check(model: Any, tokenizer: PreTrainedTokenizerBase, settings: Settings) -> None:
    """Raises ValueError for a tokenizer that does not fit the model, and for too few positions."""
    _check_size(settings.model.pretrained or "model.config", model, tokenizer)
    if settings.data.codes is not None and model.config.is_encoder_decoder:
        raise ValueError("data.codes: a sequence-to-sequence model learns none")
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions < settings.max_length:
        fault = f"the model has {positions} positions (max_position_embeddings)"
        raise ValueError(f"max_length: {settings.max_length} tokens, but {fault}")


def _check_size(name: str, model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    tokens = model.get_input_embeddings().num_embeddings
    spare = not isinstance(tokenizer, EntityAlignedTokenizer)  # some models have spare rows
    if tokens < len(tokenizer) or (tokens > len(tokenizer) and not spare):
        sizes = f"the tokenizer has {len(tokenizer):,} tokens, but the model {tokens:,}"
        raise ValueError(f"{name}: {sizes}: they do not belong together")
