"""Makes a tiny random m2m100, with its real kind of tokenizer."""

import json
import shutil
from pathlib import Path

import sentencepiece
import torch
from tiny_models import bart_sizes
from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer

TEXTS = [
    "今天天气很好，我们去公园吧。",
    "他昨天在图书馆看书！",
    "会议原定周四举行，但因为暴雨推迟到了下周。",
]


def m2m100(folder: Path) -> str:
    """Like facebook/m2m100_418M: a token for the language starts a sentence."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts").write_text("\n".join(TEXTS * 50), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "texts"),
        model_prefix=str(folder / "pieces"),
        vocab_size=46,
        hard_vocab_limit=False,
        character_coverage=1.0,
        minloglevel=2,
    )
    model = folder / "sentencepiece.bpe.model"
    shutil.move(folder / "pieces.model", model)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    vocabulary = {token: k for k, token in enumerate(("<s>", "<pad>", "</s>", "<unk>"))}
    for number in range(3, pieces.get_piece_size()):
        vocabulary.setdefault(pieces.id_to_piece(number), len(vocabulary))
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    M2M100Tokenizer(str(folder / "vocab.json"), str(model)).save_pretrained(folder)
    torch.manual_seed(0)
    config = M2M100Config(vocab_size=len(vocabulary) + 108, **bart_sizes(16, 64))
    M2M100ForConditionalGeneration(config).save_pretrained(folder)
    return str(folder)
