"""Makes a tiny BART with an entity-aligned tokenizer, as a folder that transformers loads."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tiny_models import bart_sizes
from transformers import BartConfig, BartForConditionalGeneration

from gaixie.training.modeling.collator import Collator
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.vocabulary import BOS, EOS, PAD
from gaixie.udfs.text.entities import load_settings
from gaixie.udfs.text.entities_kept import ENTITIES

WORDS = ["的", "我们", "昨天", "公园", "看", "花", "他", "读", "了", "书"]
WORDS += ["今天", "很", "好看", "在"]
COPIED = "我们在公园看书"
PAIRS = [
    ("他2024年3月读了《三国》。", "《三国》他2024年3月读了。"),
    ("我们昨天花了300元", "昨天我们花了300元"),
    ("今天公园很好看", "公园今天很好看"),
    (COPIED, COPIED),
    ("他在看花", "花他在看"),
]
POSITIONS = 128
STEPS = 120
"""Training steps that suffice to learn about ten pairs by heart."""


def tiny_seq2seq(folder: Path, pairs: Sequence[tuple[str, str]] = ()) -> str:
    """Writes a random model, or one that knows pairs by heart. Returns the folder's name."""
    tokenizer = EntityAlignedTokenizer.from_words(WORDS, load_settings(ENTITIES), indices=4)
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(tokenizer),
        **bart_sizes(32, POSITIONS),
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=EOS,
        forced_eos_token_id=EOS,
        dropout=0.0,
        init_std=0.1 if pairs else 0.5,  # large random weights tell tokens apart
    )
    model = BartForConditionalGeneration(config)
    if pairs:
        _learn(model, tokenizer, pairs)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def _learn(model, tokenizer, pairs: Sequence[tuple[str, str]]) -> None:
    collate = Collator(tokenizer, POSITIONS, EOS)
    batch = collate([{"source": source, "paraphrase": target} for source, target in pairs])
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0)
    for _ in range(STEPS):
        model(**batch).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
