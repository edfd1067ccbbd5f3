"""BARTScore: how likely a sequence-to-sequence model finds the paraphrase, given the source.

    BARTScore(Y | X) = (1 / m) Σ_t log p(y_t | y_<t, X)

over the m tokens of the paraphrase Y, special tokens included, with X the source.

Source: Yuan et al. 2021, *BARTScore: Evaluating Generated Text as Text Generation* (NeurIPS),
section 3, with weights of 1. As in its code, the tokenizer adds its special tokens at the ends, the
model shifts the tokens right by its start token, and both sides are truncated at the model's
maximum. Any model that transformers' ``AutoModelForSeq2SeqLM`` loads will do; there is no default.

Every rare word lowers the likelihood, so copies and common wording score high: read it as
faithfulness, not as quality. Unit: nats per token, 0 at most.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.metrics.metric import Metric
from gaixie.udfs.networks import (
    choose_device,
    load_network,
    load_tokenizer,
    loading,
    model_signature,
    pad,
)

BATCH_TOKENS = 2048
"""Tokens in a batch: each needs a row of the whole vocabulary in memory."""


@dataclass(frozen=True)
class BARTScore(Metric):
    """Mean log-likelihood of the paraphrase's tokens.

    model: folder or cached name of a sequence-to-sequence model. device: see ``Encoder``.
    """

    model: str
    device: str = "auto"

    name = "bartscore"
    title = "BARTScore"
    summary = "How likely a sequence-to-sequence model finds the paraphrase, in nats per token."
    range = (-float("inf"), 0.0)
    higher_is_better = True

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns the mean log-likelihood of each paraphrase's tokens, given a text.

        Raises OSError or ValueError, in one line, if the model cannot be loaded.
        """
        import torch

        device = choose_device(self.device)
        tokenizer, network = load_seq2seq(self.model, device)
        scores = np.empty(len(texts))
        if not texts:
            return scores
        positions = getattr(network.config, "max_position_embeddings", tokenizer.model_max_length)
        most = min(tokenizer.model_max_length, positions)
        cut = {"truncation": True, "max_length": most}
        inputs = tokenizer(list(texts), **cut)["input_ids"]
        targets = tokenizer(text_target=list(paraphrases), **cut)["input_ids"]
        lengths = [max(len(x), len(y)) for x, y in zip(inputs, targets, strict=True)]
        for rows in batches(lengths, BATCH_TOKENS):
            x, x_mask = pad([inputs[row] for row in rows], tokenizer.pad_token_id, device)
            y, y_mask = pad([targets[row] for row in rows], tokenizer.pad_token_id, device)
            # Padding comes after the tokens, so no token sees it.
            shifted = network.prepare_decoder_input_ids_from_labels(labels=y)
            with torch.inference_mode():
                found = network(
                    input_ids=x, attention_mask=x_mask.long(), decoder_input_ids=shifted
                )
            logits = found.logits.float().transpose(1, 2)
            losses = torch.nn.functional.cross_entropy(logits, y, reduction="none")
            sums = (losses * y_mask).sum(dim=1) / y_mask.sum(dim=1)
            scores[rows] = -sums.double().cpu().numpy()
        return scores

    def settings(self) -> Sequence[tuple[str, object]]:
        model = ("model", model_signature(self.model))
        return model, ("direction", "source-paraphrase"), ("precision", "float32")


@functools.cache
def load_seq2seq(model: str, device: str) -> tuple[Any, Any]:
    """Loads (tokenizer, network) once in a process. Raises as ``Encoder`` does."""
    import transformers

    with loading(model):
        config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
        if not config.is_encoder_decoder:
            raise ValueError(f"{config.model_type} is not a sequence-to-sequence model")
        tokenizer = load_tokenizer(model)
        network = load_network(transformers.AutoModelForSeq2SeqLM, model, config).to(device)
    return tokenizer, network
