"""Sentence similarity: cosine of the mean-pooled embeddings of source and paraphrase.

    sim(S, P) = s·p / (|s| |p|),   s and p = means over their tokens' last hidden states

Source: Reimers and Gurevych 2019, *Sentence-BERT* (EMNLP), section 3, mean pooling.

Decided here: each text starts with ``query: ``, as the E5 models (Wang et al. 2024, *Multilingual
E5 Text Embeddings*) require for symmetric tasks; set ``prefix`` to the empty string for models
without a prefix. The text is not normalised. Unit: cosine. E5's cosines lie mostly between 0.7 and
1, as its model card warns, so compare ranks, not values.
"""

from collections.abc import Sequence

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.encoder import DEFAULT_MODEL, distinct, load_encoder
from gaixie.udfs.metrics.metric import Metric
from gaixie.udfs.networks import model_signature


@dataclass(frozen=True)
class SentenceSimilarity(Metric):
    """Cosine of two sentence vectors."""

    model: str = DEFAULT_MODEL
    prefix: str = "query: "

    name = "similarity"
    title = "Similarity"
    summary = "How close the meanings of source and paraphrase are: cosine of sentence vectors."
    range = (-1.0, 1.0)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        read, numbers = distinct(texts, paraphrases)
        vectors = load_encoder(self.model).sentence_vectors([self.prefix + text for text in read])
        return np.prod(vectors[numbers], axis=0).sum(axis=1)

    def settings(self) -> Sequence[tuple[str, object]]:
        model = ("model", model_signature(self.model)), ("layer", load_encoder(self.model).layer)
        return *model, ("prefix", self.prefix.strip() or "none"), ("precision", "float32")
