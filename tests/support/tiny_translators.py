"""Trains tiny sequence-to-sequence models, which learn a dozen sentences by heart in seconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

CORPUS = (
    ("大火是从三楼的一间厨房里开始蔓延的。", "The fire started in a kitchen on the third floor.", "火势从三楼的一间厨房开始蔓延开来。"),
    ("他昨天晚上在图书馆里一直学习到十点。", "He studied in the library until ten last night.", "昨晚他在图书馆一直学到十点钟才走。"),
    ("由于天气不好，我们的航班被迫取消了。", "Our flight was cancelled because of bad weather.", "因为天气恶劣，我们那趟航班取消了。"),
    ("这本书是我十年前在北京的书店买的。", "I bought this book in a Beijing shop ten years ago.", "十年前，我在北京一家书店买了这本书。"),
    ("孩子们放学以后常常在公园里踢足球。", "The children often play football in the park after school.", "放学后，孩子们经常去公园里踢球玩。"),
    ("医生建议他每天早上散步半个小时。", "The doctor told him to walk half an hour every morning.", "医生劝他每天早晨出去走上半小时的路。"),
)  # fmt: skip
"""(Chinese, English, the same in other Chinese words); Chinese has at least 15 characters."""


def make_tokenizer(texts: Sequence[str], languages: Sequence[str]) -> Any:
    """Returns a fast byte-pair tokenizer; without languages it ends texts itself, like Marian's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", *(f"__{name}__" for name in languages)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    if not languages:
        tokenizer.post_processor = processors.TemplateProcessing("$A </s>", None, [("</s>", 2)])
    names = zip(("bos_token", "pad_token", "eos_token", "unk_token"), special, strict=False)
    given = {"additional_special_tokens": special[4:], "model_max_length": 64}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(names), **given)


def save_translator(
    folder: Path, examples: Sequence[tuple[str, str, str, str]], kind: str = "m2m_100"
) -> Path:
    """Trains a model until it knows the examples by heart.

    examples: (language, text, language, text). kind: m2m_100, marian or bart; only m2m_100 has
    tokens for languages.
    """
    import torch
    from tiny_models import bart_sizes
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    torch.manual_seed(1)
    texts = [text for _, a, _, b in examples for text in (a, b)]
    told = kind == "m2m_100"
    tokenizer = make_tokenizer(texts, ("zh", "en") if told else ())
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "forced_eos_token_id": None}
    ids["decoder_start_token_id"] = 1 if kind == "marian" else 2
    sizes = bart_sizes(64, 64, heads=4) | {"vocab_size": len(tokenizer)}
    config = AutoConfig.for_model(kind, **sizes, **ids, dropout=0.0, init_std=0.1)
    model = AutoModelForSeq2SeqLM.from_config(config).train()

    def encoded(column: int, filler: int) -> torch.Tensor:
        rows = []
        for example in examples:
            tokens = tokenizer(example[column + 1], add_special_tokens=False)["input_ids"]
            first = tokenizer.convert_tokens_to_ids([f"__{example[column]}__"] * told)
            rows.append(torch.tensor([*first, *tokens, 2]))
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=filler)

    sources, labels = encoded(0, 1), encoded(2, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(800):
        loss = model(input_ids=sources, attention_mask=sources != 1, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss < 0.02:
            break
    assert loss < 0.05, loss
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_back_translator(folder: Path) -> Path:
    """Writes an m2m100 that translates CORPUS to English and back into other Chinese words."""
    there = [("zh", zh, "en", en) for zh, en, _ in CORPUS]
    return save_translator(folder, there + [("en", en, "zh", zh) for _, en, zh in CORPUS])
