"""Turns pairs into tensors for a sequence-to-sequence or a causal model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import torch
from torch.nn.utils.rnn import pad_sequence

from gaixie.udfs.paraphrase.prompt import degree, prompt

IGNORED = -100
"""The label that a loss ignores."""
UNTOLD = 15
"""Per cent of the pairs whose measured degree is not told, so that a model works without it."""


@dataclass(frozen=True)
class Collator:
    """Encodes pairs as int64 tensors of shape (pairs, longest), padded on the right.

    labels: the token that a model must predict at each place, IGNORED elsewhere. A causal model
    reads the prompt (udfs/paraphrase/prompt.py) and the paraphrase in input_ids; a
    sequence-to-sequence model reads the source in input_ids and the labels, moved by one place, in
    decoder_input_ids.

    start: the token that a decoder begins with; None for a causal model. codes: Data.codes, for a
    causal model.
    max_length: tokens of a sentence; the rest is cut off.
    """

    tokenizer: Any
    max_length: int
    start: int | None
    codes: str | None = None

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        sources, paraphrases = ([row[name] for row in rows] for name in ("source", "paraphrase"))
        if self.start is not None:
            return self._seq2seq(sources, paraphrases)
        return self._causal(sources, paraphrases, [self.code_of(row) for row in rows])

    def code_of(self, row: dict[str, Any]) -> str:
        """Returns the control code of a pair: its own, or its measured degree; it may be empty."""
        if self.codes is None:
            return ""
        if code := row.get("code"):
            return code
        source, paraphrase = row["source"], row["paraphrase"]
        told = crc32(f"{source}\n{paraphrase}".encode()) % 100 >= UNTOLD
        return str(degree(source, paraphrase)) if told else ""

    def _causal(
        self, sources: list[str], paraphrases: list[str], codes: list[str]
    ) -> dict[str, torch.Tensor]:
        starts = causal_prompts(self.tokenizer, sources, codes, self.max_length)
        targets = self.tokenizer(
            paraphrases, add_special_tokens=False, truncation=True, max_length=self.max_length
        )["input_ids"]
        pairs, end = [*zip(starts, targets, strict=True)], self.tokenizer.eos_token_id
        labels = [[IGNORED] * (len(a) - 1) + [*b, end] for a, b in pairs]
        return self._read([a + b for a, b in pairs]) | {"labels": padded(labels, IGNORED)}

    def _seq2seq(self, sources: list[str], paraphrases: list[str]) -> dict[str, torch.Tensor]:
        batch = self.tokenizer(
            sources, text_target=paraphrases, truncation=True, max_length=self.max_length
        )
        labels = padded(batch["labels"], IGNORED)
        moved = torch.full_like(labels, self.start or 0)
        moved[:, 1:] = labels[:, :-1]
        moved.masked_fill_(moved == IGNORED, self.tokenizer.pad_token_id)
        return self._read(batch["input_ids"]) | {"labels": labels, "decoder_input_ids": moved}

    def _read(self, ids: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        mask = padded([[1] * len(row) for row in ids], 0)
        return {"input_ids": padded(ids, self.tokenizer.pad_token_id), "attention_mask": mask}


def padded(rows: Sequence[Sequence[int]], value: int, side: str = "right") -> torch.Tensor:
    """Returns rows in one int64 tensor, filled up with value."""
    tensors = [torch.tensor(row, dtype=torch.int64) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=value, padding_side=side)


def causal_prompts(
    tokenizer: Any, sources: Sequence[str], codes: Sequence[str], max_length: int
) -> list[list[int]]:
    """Returns the tokens of the prompts, with the tokenizer's begin token if it has one.

    max_length: tokens of a source; the rest is cut off.
    """
    first = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    rows = []
    for source, code in zip(sources, codes, strict=True):
        ids = tokenizer(source, add_special_tokens=False)["input_ids"]
        if len(ids) > max_length:
            source = tokenizer.decode(ids[:max_length]).rstrip("\ufffd")
        rows.append(first + tokenizer(prompt(source, code), add_special_tokens=False)["input_ids"])
    return rows
