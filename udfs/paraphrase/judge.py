"""Judges paraphrases with the lower blocks of a large language model.

    judge = Judge.load("~/.cache/gaixie/writer/judge")
    judge(["…"], ["…"])         # for each pair the logits of what JUDGED names

The model, the same as the writer's, reads the prompt of a source, in one line, and the paraphrase
behind it. Its head gives two numbers for each judgement and token: of the last token, and of all
tokens of the paraphrase, whose mean is taken. Their sum is the logit of the judgement.
training/make_writer.py puts the folder together that CTranslate2 reads; research/fit_judge.py
taught it with rated pairs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.paraphrase.prompt import END, prompt
from gaixie.udfs.paraphrase.writer import load_generator

JUDGED = ("structure", "synonyms", "meaning", "fluency", "overall", "good", "human")
"""The raters' five judgements, divided by 5; the probability that meaning and fluency are rated 4
or more; and the rating that people give a rewriting (RewritingBench), divided by 5."""
JUDGE, DESCRIPTION = "judge", "judge.json"
"""Its folder, in that of the writer, and the file that makes it one."""
TOKENS = 1_024
"""Tokens at once."""


class Judge:
    """A converted model and its tokenizer. Get one from :meth:`load`."""

    def __init__(self, model: Any, tokenizer: Any, description: str):
        """model: of CTranslate2, with 2 len(JUDGED) outputs a token. description: judge.json, which
        has the bias of each judgement."""
        self.model, self.tokenizer = model, tokenizer
        self.bias = np.array(json.loads(description)["bias"])
        self.digest = hashlib.sha256(description.encode()).hexdigest()[:10]

    @classmethod
    def load(cls, folder: str | Path, precision: str = "int8") -> Judge:
        """Loads a folder. Raises ValueError, in one line, if it has no such model."""
        folder = Path(folder).expanduser()
        model, tokenizer = load_generator(folder, precision, DESCRIPTION)
        return cls(model, tokenizer, (folder / DESCRIPTION).read_text("utf-8"))

    def __call__(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """Returns the logit of each judgement of each pair: float64, shape (pairs, len(JUDGED))."""
        found = np.empty((len(sources), len(JUDGED)))
        starts = [self._tokens(prompt(text)) for text in sources]
        ends = [[*self._tokens(text), END] for text in paraphrases]
        lines = [start + end for start, end in zip(starts, ends, strict=True)]
        for batch in batches([*map(len, lines)], TOKENS):
            outputs = np.array(self.model.forward_batch([lines[k] for k in batch]))
            for k, own in zip(batch, outputs, strict=True):
                last, mean = np.split(own[len(starts[k]) : len(lines[k])], 2, axis=1)
                found[k] = last[-1] + mean.mean(axis=0)
        return found + self.bias

    def _tokens(self, text: str) -> list[str]:
        return self.tokenizer.encode(in_one_line(text), add_special_tokens=False).tokens


def in_one_line(text: str) -> str:
    """Returns a prompt or a paraphrase as the judge reads it."""
    return " ".join(text.split())
