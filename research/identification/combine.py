"""The classifier in both orders and the similarity of the encoder that it came from, weighed together.

A classifier that learned from few sources forgets some of what its encoder knew. A logistic regression on the
held-out sources puts it back.
"""

from __future__ import annotations

import numpy as np

from gaixie.research.identification.data import Labelled, Parts
from gaixie.udfs.metrics.encoder import load_encoder
from gaixie.udfs.metrics.identification import Ensemble, Identifier, log_odds

SCALE = 5.0
"""Of the similarity: its range is that of the logits, so that both are penalised alike."""
FOLDS = 5


def combined(
    model: Identifier | Ensemble, encoder: str, parts: Parts
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of the held-out part and of the test part, fitted on the former.

    Those of the held-out part itself are cross-validated by source, so that they can be compared with the
    classifier's own; but where a class has one source alone.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

    held_out, test = (_numbers(model, encoder, pairs) for pairs in (parts.held_out, parts.test))
    label, source = parts.held_out.label >= 0.5, parts.held_out.source.astype(str)
    fitted = LogisticRegression().fit(held_out, label)
    own = fitted.predict_proba(held_out)
    folds = min(FOLDS, *(len({*source[label == kind]}) for kind in (False, True)))
    if folds > 1:
        by = {"groups": source, "cv": StratifiedGroupKFold(folds), "method": "predict_proba"}
        own = cross_val_predict(LogisticRegression(), held_out, label, **by)
    return own[:, 1], fitted.predict_proba(test)[:, 1]


def _numbers(model: Identifier | Ensemble, encoder: str, pairs: Labelled) -> np.ndarray:
    """Sum of the logits of both orders, and similarity: float64, shape (rows, 2)."""
    a, b = pairs.source.tolist(), pairs.paraphrase.tolist()
    logits = log_odds(model.probabilities(a, b)) + log_odds(model.probabilities(b, a))
    vectors = load_encoder(encoder)
    similarity = (vectors.sentence_vectors(a) * vectors.sentence_vectors(b)).sum(axis=1)
    return np.column_stack([logits, SCALE * similarity])
