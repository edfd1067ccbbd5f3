"""Makes tiny random models of the hub's kinds, each with its real kind of tokenizer."""

import json
import shutil
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from tiny_models import bart_sizes
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
)

TEXTS = [
    "今天天气很好，我们去公园吧。",
    "他昨天在图书馆看书！",
    "会议原定周四举行，但因为暴雨推迟到了下周。",
]
SIZES = bart_sizes(16, 64)


def bert_bart(folder: Path) -> str:
    """Like fnlp/bart-base-chinese: a BART with BERT's vocabulary, and no tokenizer class named."""
    characters = sorted({*"".join(TEXTS), *map(chr, range(0x4E00, 0x4E40))})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "forced_eos_token_id": 3}
    config = BartConfig(vocab_size=len(tokens), decoder_start_token_id=3, **SIZES, **special)
    _save(folder, BartForConditionalGeneration, config, {})
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", "utf-8")
    (folder / "tokenizer_config.json").unlink()
    return str(folder)


def mt5(folder: Path) -> str:
    """Like google/mt5-small and mengzi: sentencepiece, which narrows full-width punctuation."""
    _pieces(folder, "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    config = MT5Config(vocab_size=96, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    named = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "extra_ids": 0}
    return _save(
        folder, MT5ForConditionalGeneration, config, {"tokenizer_class": "T5Tokenizer"} | named
    )


def m2m100(folder: Path) -> str:
    """Like facebook/m2m100_418M: a token for the language starts a sentence."""
    pieces = _pieces(folder, "sentencepiece.bpe.model")
    vocabulary = {token: k for k, token in enumerate(("<s>", "<pad>", "</s>", "<unk>"))}
    for number in range(3, pieces.get_piece_size()):
        vocabulary.setdefault(pieces.id_to_piece(number), len(vocabulary))
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    M2M100Tokenizer(
        str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model")
    ).save_pretrained(folder)
    config = M2M100Config(vocab_size=len(vocabulary) + 108, encoder_layerdrop=0.5, **SIZES)
    return _save(folder, M2M100ForConditionalGeneration, config, None)


def mbart(folder: Path, name: str = "MBartTokenizer", start: int | None = None) -> str:
    """Like facebook/mbart-large-cc25: the language token ends a sentence and starts the decoder."""
    rule = "identity" if start is None else "nmt_nfkc"  # as far as each tokenizer normalises
    _pieces(folder, "sentencepiece.bpe.model", normalization_rule_name=rule)
    config = MBartConfig(vocab_size=128, decoder_start_token_id=start, **SIZES)
    about = {"tokenizer_class": name, "src_lang": "en_XX"}
    return _save(folder, MBartForConditionalGeneration, config, about)


def mbart50(folder: Path) -> str:
    """Like facebook/mbart-large-50: the language token starts a sentence."""
    return mbart(folder, "MBart50Tokenizer", 2)


def _pieces(folder: Path, name: str, **special: Any) -> sentencepiece.SentencePieceProcessor:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts").write_text("\n".join(TEXTS * 50), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "texts"),
        model_prefix=str(folder / "pieces"),
        vocab_size=46,
        hard_vocab_limit=False,
        character_coverage=1.0,
        minloglevel=2,
        **special,
    )
    shutil.move(folder / "pieces.model", folder / name)
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / name))


def _save(folder: Path, kind: Any, config: Any, about: dict[str, Any] | None) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    kind(config).save_pretrained(folder)
    if about is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return str(folder)
