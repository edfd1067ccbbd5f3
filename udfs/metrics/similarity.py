"""Sentence similarity: cosine of the mean-pooled embeddings of source and paraphrase.

    sim(S, P) = s·p / (|s| |p|),   s and p the means over their tokens' last hidden states

Source: Reimers and Gurevych 2019, *Sentence-BERT* (EMNLP), section 3, mean pooling.

Decided here: each text is led by ``query: ``, as the E5 models (Wang et al. 2024, *Multilingual E5
Text Embeddings*) were trained for symmetric tasks; set ``prefix`` to the empty string for models
without one. Text is taken as it stands. Unit: cosine; E5's lie mostly between 0.7 and 1, as its model
card warns, so look at ranks and not at values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaixie.udfs.metrics.encoder import DEFAULT_MODEL, load_encoder, model_signature
from gaixie.udfs.metrics.metric import Metric, Pairs, signature

PAIRS_AT_ONCE = 16_384


def reference(source: np.ndarray, paraphrase: np.ndarray) -> float:
    """Cosine of the means of two sentences' token embeddings, (tokens, width) each."""
    a, b = source.mean(axis=0), paraphrase.mean(axis=0)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@dataclass(frozen=True)
class SentenceSimilarity(Metric):
    """Cosine of two sentence vectors. layer, device, precision: see ``Encoder``."""

    model: str = DEFAULT_MODEL
    prefix: str = "query: "
    layer: int | None = None
    device: str = "auto"
    precision: str = "float32"

    name = "similarity"
    title = "Similarity"
    summary = "How near the meanings of source and paraphrase are: cosine of sentence vectors."
    range = (-1.0, 1.0)
    higher_is_better = True

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        encoder = load_encoder(self.model, self.layer, self.device, self.precision)
        sides = pairs.source.to_pylist(), pairs.paraphrase.to_pylist()
        scores = np.full(len(pairs), np.nan)
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            numbers: dict[str, int] = {}
            rows, ours, theirs = [], [], []
            chunk = (side[start : start + PAIRS_AT_ONCE] for side in sides)
            for row, (source, paraphrase) in enumerate(zip(*chunk, strict=True), start):
                if source is not None and paraphrase is not None:
                    rows.append(row)
                    ours.append(numbers.setdefault(source, len(numbers)))
                    theirs.append(numbers.setdefault(paraphrase, len(numbers)))
            vectors = encoder.sentence_vectors([self.prefix + text for text in numbers])
            scores[rows] = (vectors[ours] * vectors[theirs]).sum(axis=1)
        return scores

    def signature(self) -> str:
        encoder = load_encoder(self.model, self.layer, self.device, self.precision)
        return signature(
            self.title,
            ("model", model_signature(self.model)),
            ("layer", encoder.layer),
            ("prefix", self.prefix.strip() or "none"),
            ("precision", self.precision),
        )
