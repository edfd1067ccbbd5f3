"""BERTScore greedily matches the tokens of two sentences by the cosine of their embeddings.

    R = Σ_i max_j x_i·y_j / their number      over the tokens x_i of the reference
    P = Σ_j max_i x_i·y_j / their number      over the tokens y_j of the paraphrase
    F1 = 2 P R / (P + R)

Source: Zhang et al. 2020, *BERTScore: Evaluating Text Generation with BERT* (ICLR), section 3.
The numbers equal those of the ``bert-score`` package. As there, white space at the ends is
dropped; the two special tokens have no weight but can be matched; a sentence without tokens scores
0; with several references, P, R and F1 each take their best.

Decided here: padding is never matched (in the package it has a cosine of 0, which matters only if
all cosines are negative); the last layer. Unit: share; 1 for a copy. Unrelated sentences do not
score 0 but the model's usual similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic.dataclasses import dataclass

from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.metrics.encoder import DEFAULT_MODEL, distinct, load_encoder
from gaixie.udfs.metrics.metric import Pairs, ReferenceMetric, complete
from gaixie.udfs.networks import model_signature

if TYPE_CHECKING:
    import torch

    from gaixie.udfs.metrics.encoder import Encoder, TokenEmbeddings

    Side = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    """Vectors, weights and mask of texts, padded."""

PAIRS_AT_ONCE = 2048
"""Pairs whose token embeddings are in memory at a time."""

CELLS_AT_ONCE = 1 << 20
"""Cosines computed at a time."""


@dataclass(frozen=True)
class BERTScore(ReferenceMetric):
    """F1 between paraphrase and reference; ``compare`` gives precision and recall too."""

    model: str = DEFAULT_MODEL

    name = "bertscore"
    title = "BERTScore"
    summary = "Tokens of paraphrase and reference matched by their meaning in context, F1."
    range = (-1.0, 1.0)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        self.check(pairs)
        return self.compare(pairs.paraphrase, pairs.references)[:, 2]

    def compare(self, paraphrase: pa.Array, references: Sequence[pa.Array]) -> np.ndarray:
        """Returns P, R and F1, the best over references: (rows, 3) float64, NaN without both sides.

        Raises OSError or ValueError if the model cannot be read.
        """
        encoder = load_encoder(self.model)
        scores = np.full((len(paraphrase), 3), np.nan)
        for start in range(0, len(scores), PAIRS_AT_ONCE):
            chunk = [side.slice(start, PAIRS_AT_ONCE) for side in (paraphrase, *references)]
            parts = [complete(chunk[0], other) for other in chunk[1:]]
            rows = np.concatenate([start + rows for rows, _ in parts])
            ours, theirs = ([one.strip() for _, own in parts for one in own[k]] for k in (0, 1))
            np.fmax.at(scores, rows, score_texts(encoder, ours, theirs))
        return scores

    def settings(self) -> Sequence[tuple[str, object]]:
        model = ("model", model_signature(self.model)), ("layer", load_encoder(self.model).layer)
        return *model, ("idf", "no"), ("baseline", "none"), ("precision", "float32")


def score_texts(encoder: Encoder, paraphrases: list[str], references: list[str]) -> np.ndarray:
    """Returns P, R and F1 of each pair of texts: (pairs, 3) float64."""
    weights = np.ones(encoder.network.config.vocab_size, np.float32)
    ends = (encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id)
    weights[[number for number in ends if number is not None]] = 0
    texts, numbers = distinct(paraphrases, references)
    embedded = encoder.token_embeddings(texts)
    longest = np.diff(embedded.offsets)[numbers].max(axis=0)
    scores = np.empty((len(longest), 3))
    for batch in batches((longest**2).tolist(), CELLS_AT_ONCE):
        ours, theirs = (_pad(embedded, side[batch], weights) for side in numbers)
        scores[batch] = match(ours, theirs).double().cpu().numpy()
    return scores


def _pad(embedded: TokenEmbeddings, texts: np.ndarray, weights: np.ndarray) -> Side:
    """Returns vectors (texts, tokens, width), weights and mask (texts, tokens) of some texts."""
    import torch

    starts, lengths = embedded.offsets[texts], np.diff(embedded.offsets)[texts]
    columns = np.arange(lengths.max())
    mask = columns < lengths[:, None]
    places = np.where(mask, starts[:, None] + columns, 0)
    weight = np.where(mask, weights[embedded.ids[places]], 0)
    device = embedded.vectors.device
    vectors = embedded.vectors[torch.from_numpy(places).to(device)]
    return vectors, torch.from_numpy(weight).to(device), torch.from_numpy(mask).to(device)


def match(our_side: Side, their_side: Side) -> torch.Tensor:
    """Scores paraphrases (ours) against references (theirs) padded by _pad: P, R, F1 (pairs, 3)."""
    import torch

    ours, our_weights, our_mask = our_side
    theirs, their_weights, their_mask = their_side
    nothing = -float("inf")
    with torch.inference_mode():
        cosines = ours @ theirs.transpose(1, 2)
        best = cosines.masked_fill(~their_mask.unsqueeze(1), nothing).amax(dim=2)
        precision = (best * our_weights).sum(dim=1) / our_weights.sum(dim=1)
        best = cosines.masked_fill(~our_mask.unsqueeze(2), nothing).amax(dim=1)
        recall = (best * their_weights).sum(dim=1) / their_weights.sum(dim=1)
        f1 = 2 * precision * recall / (precision + recall)
        scores = torch.stack([precision, recall, f1], dim=1)
        return scores.where(scores.isfinite().all(dim=1, keepdim=True), 0.0)
