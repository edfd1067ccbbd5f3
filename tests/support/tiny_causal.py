"""Makes a causal language model with random weights, as a folder that transformers loads."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import gguf.quants
import numpy as np
import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from tiny_models import SMALL
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM

from gaixie.training.modeling import base_files
from gaixie.udfs.paraphrase.prompt import END

CHARACTERS = (
    "第0123456789号仓库的货物在昨天夜里全部运到了码头请改写下面句子要求完整保留原意。，：\n"
)
POSITIONS = 400
TEMPLATE = (
    "{% for message in messages %}<s>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>{% endif %}"
)


def tiny_causal(folder: Path, chat: bool) -> str:
    """Writes a model with 16 dimensions, the characters above, and at most 400 tokens.

    chat: adds a chat template.
    """
    special = ["<s>", "</s>", "<unk>"]
    vocabulary = {token: n for n, token in enumerate([*special, *dict.fromkeys(CHARACTERS)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.chat_template = TEMPLATE if chat else None
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    own = {"max_position_embeddings": POSITIONS, "bos_token_id": 0, "eos_token_id": 1}
    sizes = SMALL | own | {"vocab_size": len(vocabulary), "num_hidden_layers": 1}
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).save_pretrained(folder)
    return str(folder)


def tiny_qwen(texts: Sequence[str]) -> tuple[Qwen2ForCausalLM, PreTrainedTokenizerFast]:
    """Returns a Qwen with random weights, and a byte-level BPE of texts and some English."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_end|>"],
    )
    bpe.train_from_iterator([*texts, "The quick brown fox jumps over the lazy dog."] * 20, trainer)
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=bpe.get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>")
    return Qwen2ForCausalLM(config), tokenizer


def tiny_adapter(
    folder: Path, texts: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[PeftModel, PreTrainedTokenizerFast]:
    """Writes ``adapter``, an adapter with its tokenizer, and its base, tiny.gguf; returns both.

    The product knows the base by the name ``tiny``.
    """
    base, tokenizer = tiny_qwen(texts)
    tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token = None, END, END
    path = folder / "tiny.gguf"
    write_gguf(base, tokenizer, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(base_files.PACKAGES, "tiny", ("none", "1.0", 1, digest))
    base.name_or_path = "tiny"
    options = {"target_modules": "all-linear", "task_type": "CAUSAL_LM", "init_lora_weights": False}
    tuned = get_peft_model(base, LoraConfig(r=4, **options))
    for one in (tuned, tokenizer):
        one.save_pretrained(folder / "adapter")
    return tuned, tokenizer


def write_gguf(model: Qwen2ForCausalLM, tokenizer: Any, path: Path) -> dict[str, np.ndarray]:
    """Writes a GGUF with matrices of eight bits; returns the weights that it gives back."""
    config, eight = model.config, gguf.GGMLQuantizationType.Q8_0
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(64)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    written = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*written["vocab"]])
    writer.add_token_merges([" ".join(pair) for pair in written["merges"]])
    writer.add_eos_token_id(1)
    names, given = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers), {}
    for name, weights in model.model.state_dict(prefix="model.").items():
        stem, kind = name.rsplit(".", 1)
        data, raw = weights.numpy(), None
        if weights.ndim == 2:
            data, raw = gguf.quants.quantize(data, eight), eight
        writer.add_tensor(f"{names.get_name(stem)}.{kind}", data, raw_dtype=raw)
        given[name] = gguf.quants.dequantize(data, eight) if raw else data
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return given
