"""BARTScore: how likely a sequence-to-sequence model finds the paraphrase, given another sentence.

    BARTScore(Y | X) = (1 / m) Σ_t log p(y_t | y_<t, X)

over the m tokens of the paraphrase Y, special tokens included. X is the source, or a reference.

Source: Yuan et al. 2021, *BARTScore: Evaluating Generated Text as Text Generation* (NeurIPS),
section 3, with weights of 1. As in its code: the tokens are those of the tokenizer with what it
puts at the ends, the model shifts them right by its start token, and both sides are cut at the
model's maximum. The model is any that transformers' ``AutoModelForSeq2SeqLM`` loads; there is no
default. Of several references the best counts.

The likelihood falls with every rare word, so that copies and common wording score high: read it
as faithfulness (given the source) or as precision (given a reference), not as quality. Unit: nats
per token, 0 at most.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.metrics.encoder import (
    PRECISIONS,
    choose_device,
    load_network,
    load_tokenizer,
    loading,
    model_signature,
    pad,
)
from gaixie.udfs.metrics.metric import Metric, Pairs, signature

if TYPE_CHECKING:
    import torch

DIRECTIONS = ("source-paraphrase", "reference-paraphrase")

BATCH_TOKENS = 2048
"""Tokens in a batch: each needs a row of the whole vocabulary in memory."""


def reference(log_probabilities: np.ndarray, tokens: Sequence[int]) -> float:
    """BARTScore of one sentence: log-probabilities (tokens, vocabulary), and its tokens."""
    return sum(float(log_probabilities[t, token]) for t, token in enumerate(tokens)) / len(tokens)


@dataclass(frozen=True)
class BARTScore(Metric):
    """Mean log-likelihood of the paraphrase's tokens.

    model: folder or cached name of a sequence-to-sequence model. direction: ``source-paraphrase``, or
    ``reference-paraphrase``, which needs references. device, precision: see ``Encoder``.
    """

    model: str = ""
    direction: str = "source-paraphrase"
    device: str = "auto"
    precision: str = "float32"

    name = "bartscore"
    title = "BARTScore"
    summary = "How likely a sequence-to-sequence model finds the paraphrase, in nats per token."
    range = (-float("inf"), 0.0)
    higher_is_better = True

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("bartscore needs a sequence-to-sequence model: bartscore:model=FOLDER")
        self.check_setting("direction", DIRECTIONS)
        self.check_setting("precision", PRECISIONS)
        given_source = self.direction == "source-paraphrase"
        self.describe(needs_source=given_source, needs_reference=not given_source)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        self.check(pairs)
        scores = np.full(len(pairs), np.nan)
        paraphrases = pairs.paraphrase.to_pylist()
        for side in (pairs.source,) if self.needs_source else pairs.references:
            given = side.to_pylist()
            rows = [
                row
                for row, texts in enumerate(zip(given, paraphrases, strict=True))
                if None not in texts
            ]
            likelihoods = self.log_likelihoods(
                [given[row] for row in rows], [paraphrases[row] for row in rows]
            )
            scores[rows] = np.fmax(scores[rows], likelihoods)
        return scores

    def log_likelihoods(self, given: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        """Mean log-likelihood of each text's tokens, given another: (texts,) float64.

        Raises OSError or ValueError of one line where the model cannot be loaded.
        """
        import torch

        device = choose_device(self.device)
        tokenizer, network = load_seq2seq(self.model, device)
        scores = np.empty(len(texts))
        if not len(texts):
            return scores
        cut = {"truncation": True, "max_length": _max_tokens(tokenizer, network)}
        inputs = tokenizer(list(given), **cut)["input_ids"]
        targets = tokenizer(text_target=list(texts), **cut)["input_ids"]
        lengths = [max(len(x), len(y)) for x, y in zip(inputs, targets, strict=True)]
        enabled = self.precision == "bfloat16"
        for rows in batches(lengths, BATCH_TOKENS):
            x, x_mask = pad([inputs[row] for row in rows], tokenizer.pad_token_id, device)
            y, y_mask = pad([targets[row] for row in rows], tokenizer.pad_token_id, device)
            kind = device.partition(":")[0]
            with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=enabled):
                logits = _logits(network, x, x_mask, y)
            losses = torch.nn.functional.cross_entropy(
                logits.float().transpose(1, 2), y, reduction="none"
            )
            sums = (losses * y_mask).sum(dim=1) / y_mask.sum(dim=1)
            scores[rows] = -sums.double().cpu().numpy()
        return scores

    def signature(self) -> str:
        return signature(
            self.title,
            ("model", model_signature(self.model)),
            ("direction", self.direction),
            ("precision", self.precision),
        )


@functools.cache
def load_seq2seq(model: str, device: str) -> tuple[Any, Any]:
    """(tokenizer, network), loaded once in a process. Raises as ``Encoder`` does."""
    import transformers

    with loading(model):
        config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
        if not config.is_encoder_decoder:
            raise ValueError(f"{config.model_type} is no sequence-to-sequence model")
        tokenizer = load_tokenizer(model)
        network = load_network(transformers.AutoModelForSeq2SeqLM, model, config).to(device)
    return tokenizer, network


def _max_tokens(tokenizer: Any, network: Any) -> int:
    positions = getattr(network.config, "max_position_embeddings", tokenizer.model_max_length)
    return min(tokenizer.model_max_length, positions)


def _logits(
    network: Any, given: torch.Tensor, given_mask: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """Logits of each token from what stands before it. Padding follows, so nothing looks at it."""
    decoder_input = network.prepare_decoder_input_ids_from_labels(labels=tokens)
    return network(
        input_ids=given, attention_mask=given_mask.long(), decoder_input_ids=decoder_input
    ).logits
