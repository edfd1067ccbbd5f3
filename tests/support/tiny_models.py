"""Makes small models with random weights, as folders that transformers loads."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

CHARACTERS = "今天气很好我们去公园散步他昨买了三本书其中一是小说"
CHARACTERS += "不错咱到走吧的有北京上海,。你知道清楚吗在"
POSITIONS = 24
SMALL = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
SMALL |= {"initializer_range": 0.5}  # so that tokens differ


def tiny_bert(folder: Path, layers: int = 3, positions: int = POSITIONS) -> str:
    """Writes an encoder with 16 dimensions whose tokens are the characters above."""
    letters = [start + letter for start in ("", "##") for letter in "abc"]
    pieces = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", *CHARACTERS, *letters]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = BertTokenizerFast(vocab=vocabulary, model_max_length=positions)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    own = {"num_hidden_layers": layers, "max_position_embeddings": positions, "pad_token_id": 1}
    BertModel(BertConfig(vocab_size=len(pieces), **SMALL, **own)).save_pretrained(folder)
    return str(folder)


def bart_sizes(width: int, positions: int, heads: int = 2) -> dict[str, int]:
    """Returns configuration keys of a BART or Marian with one layer."""
    one = {"layers": 1, "attention_heads": heads, "ffn_dim": 2 * width}
    sides = {f"{side}_{key}": one[key] for side in ("encoder", "decoder") for key in one}
    return sides | {"d_model": width, "max_position_embeddings": positions}
