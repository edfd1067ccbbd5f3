"""BERT-iBLEU: one mean of meaning kept (BERTScore) and wording changed (self-BLEU).

    BERT-iBLEU = (β + 1) / (β · BERTScore⁻¹ + (1 − Self-BLEU)⁻¹)

This is a weighted harmonic mean. BERTScore is the F1 between source and paraphrase, and Self-BLEU
the BLEU of the paraphrase against its source, as a share.

Source: Niu et al. 2021, *Unsupervised Paraphrasing with Pretrained Language Models* (EMNLP),
with its β of 4. It needs no reference.

Decided here: if one part is 0 or less, the score is 0, the limit of the harmonic mean. So a copy
(Self-BLEU 1) scores 0 however close its meaning. Self-BLEU counts characters unless ``tokenize``
says otherwise, smoothed as in :mod:`gaixie.udfs.metrics.bleu`. Unit: 0–1.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import PositiveFloat
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.bertscore import BERTScore
from gaixie.udfs.metrics.bleu import SelfBLEU
from gaixie.udfs.metrics.encoder import DEFAULT_MODEL
from gaixie.udfs.metrics.grams import Tokenizer
from gaixie.udfs.metrics.metric import Metric, Pairs


@dataclass(frozen=True)
class BERTiBLEU(Metric):
    """Harmonic mean of meaning kept and wording changed; beta is the weight of the meaning.

    tokenize: the tokens of Self-BLEU's n-grams.
    """

    beta: PositiveFloat = 4.0
    model: str = DEFAULT_MODEL
    tokenize: Tokenizer = "char"

    name = "bert-ibleu"
    title = "BERT-iBLEU"
    summary = "Close in meaning to the source (BERTScore) and unlike it in wording (self-BLEU)."
    range = (0.0, 1.0)

    def sentence_scores(self, pairs: Pairs) -> np.ndarray:
        meaning = BERTScore(self.model).compare(pairs.paraphrase, [pairs.source])[:, 2]
        change = 1 - SelfBLEU(self.tokenize).sentence_scores(pairs) / 100
        with np.errstate(divide="ignore"):
            scores = (self.beta + 1) / (self.beta / meaning + 1 / change)
        # The BLEU of a copy is 1, except for the last bits.
        return np.where((meaning <= 0) | (change <= 1e-9), 0.0, scores)

    def settings(self) -> Sequence[tuple[str, object]]:
        cut = dict(SelfBLEU(self.tokenize).settings())["tok"]
        return ("beta", self.beta), ("tok", cut), *BERTScore(self.model).settings()
