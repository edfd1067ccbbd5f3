"""Makes a random BERT with characters as tokens, as a folder that transformers loads."""

from pathlib import Path

import torch
from tiny_models import SMALL
from transformers import BertConfig, BertModel, BertTokenizerFast

CHARACTERS = "今天气很好我们去公园散步他昨买了三本书其中一是小说不错咱到走吧的有北京上海,。"


def tiny_pair_bert(folder: Path) -> str:
    """Writes a BERT with 16 dimensions, one layer, and up to 512 tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(CHARACTERS)]
    (folder / "vocab.txt").write_text("\n".join(names) + "\n", "utf-8")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(names), num_hidden_layers=1, **SMALL)
    BertModel(config).save_pretrained(folder)
    return str(folder)
