"""BLEU and ROUGE as the code of the ParaScore paper calls them, to compare with its tables.

``bleu-as-called``: the paper's code passes the words of one reference to NLTK's ``sentence_bleu``,
which expects a list of references. So each word acts as a reference and its letters as tokens. Only
words of one letter match; in Chinese, the characters that both sides have.
``rouge-1-as-called``, ``-2-``, ``-l-``: the package ``rouge`` splits at white space and counts
distinct n-grams, not occurrences. We use ``rouge-chinese``, which has the same code.

Source: Shen et al. 2022, *On the Evaluation Metrics for Paraphrase Generation*, Table 1 and 2,
whose BLEU and ROUGE come from these calls (``src/baseline.py`` of its code). Decided here: with
several references, the best score counts. ``tokenize``: ``char``, characters separated by spaces,
as the paper's code writes Chinese, or ``word``. Unit: share.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Literal, get_args

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs.metrics.grams import tokenizer
from gaixie.udfs.metrics.metric import ReferenceMetric

Variant = Literal["bleu", "rouge-1", "rouge-2", "rouge-l"]
VARIANTS = get_args(Variant)


@dataclass(frozen=True)
class AsCalled(ReferenceMetric):
    """BLEU or ROUGE as the paper's code calls it."""

    variant: Variant = "bleu"
    tokenize: Literal["char", "word"] = "char"

    range = (0.0, 1.0)

    def __post_init__(self) -> None:
        title = f"{self.variant.upper()} as called"
        summary = f"{self.variant.upper()} as the code of the ParaScore paper calls it."
        self.describe(name=f"{self.variant}-as-called", title=title, summary=summary)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        sides = zip(map(self._tokens, texts), map(self._tokens, paraphrases), strict=True)
        score = self._scorer()
        return np.array([score(*side) if all(side) else 0.0 for side in sides])

    def settings(self) -> Sequence[tuple[str, object]]:
        package = "nltk" if self.variant == "bleu" else "rouge-chinese"
        return ("tok", self.tokenize), (package, version(package))

    def _tokens(self, text: str) -> list[str]:
        if self.tokenize == "char":
            return tokenizer("char")(text)
        if self.variant != "bleu":
            return text.split()
        from nltk.tokenize import word_tokenize

        return word_tokenize(text.strip().lower(), preserve_line=True)

    def _scorer(self) -> Callable[[list[str], list[str]], float]:
        """Returns what scores (reference, paraphrase)."""
        if self.variant == "bleu":
            from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

            smooth = SmoothingFunction().method1
            return lambda a, b: float(sentence_bleu(a, b, smoothing_function=smooth))
        from rouge_chinese import Rouge

        package, name = Rouge(metrics=[self.variant]), self.variant
        return lambda a, b: float(package.get_scores(" ".join(b), " ".join(a))[0][name]["f"])
