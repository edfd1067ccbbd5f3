"""Makes small models with random weights, as folders that transformers loads."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel
from transformers import PreTrainedTokenizerFast as FastTokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
CHARACTERS = "我你他今天气很好不错知道清楚去了吗的是在北京上海abc,。"
POSITIONS = 24
SMALL = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
SMALL |= {"initializer_range": 0.5}  # so that tokens differ


def tiny_bert(folder: Path, layers: int = 3) -> str:
    """Writes an encoder with 16 dimensions, the characters above, and at most 24 tokens."""
    vocabulary = _save_tokenizer(folder)
    torch.manual_seed(0)
    own = {"num_hidden_layers": layers, "max_position_embeddings": POSITIONS, "pad_token_id": 1}
    BertModel(BertConfig(vocab_size=vocabulary, **SMALL, **own)).save_pretrained(folder)
    return str(folder)


def bart_sizes(width: int, positions: int, heads: int = 2) -> dict[str, int]:
    """Returns configuration keys of a BART or Marian with one layer."""
    one = {"layers": 1, "attention_heads": heads, "ffn_dim": 2 * width}
    sides = {f"{side}_{key}": one[key] for side in ("encoder", "decoder") for key in one}
    return sides | {"d_model": width, "max_position_embeddings": positions}


def _save_tokenizer(folder: Path) -> int:
    pieces = [*SPECIAL, *CHARACTERS]
    words = models.WordLevel({piece: k for k, piece in enumerate(pieces)}, unk_token="<unk>")
    tokenizer = Tokenizer(words)
    cuts = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", "isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    ends = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    names = {"bos": 0, "cls": 0, "pad": 1, "eos": 2, "sep": 2, "unk": 3}
    fast = FastTokenizer(
        tokenizer_object=tokenizer,
        model_max_length=POSITIONS,
        **{f"{name}_token": SPECIAL[number] for name, number in names.items()},
    )
    fast.save_pretrained(folder)
    return len(pieces)
