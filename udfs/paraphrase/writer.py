"""Draws paraphrases from a causal model that CTranslate2 runs, and says how likely a text is.

    writer = ModelWriter.load("~/.cache/gaixie/writer")
    writer.draw(["…"], "4", draws=6, temperature=0.4)       # for each source its different drafts

A folder holds model.bin and config.json, which CTranslate2 reads, and tokenizer.json;
training/make_writer.py makes it. Neither PyTorch nor transformers is loaded.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gaixie.udfs.paraphrase.prompt import END, prompt

BATCH = 16
"""Sources at once."""
TOP_P = 0.95
"""Probability mass of the nucleus of draws (Holtzman et al. 2020)."""
AFTER_HAN = re.compile("(?<=[\u4e00-\u9fff”」》])[,;:?!]")
MODEL, TOKENIZER = "model.bin", "tokenizer.json"


class Draft(NamedTuple):
    """What a writer made of a source."""

    text: str
    likelihood: float = math.nan
    """Mean log probability of its tokens and its end; NaN if the writer does not know it."""
    weakest: float = math.nan
    """The lowest of them."""


class Writer(Protocol):
    """What writes drafts: a model here, or a service."""

    name: str

    def draw(
        self, sources: Sequence[str], code: str, draws: int, temperature: float
    ) -> list[list[Draft]]:
        """Returns the different drafts of each source. code: a degree or a tone (prompt.py)."""


class ModelWriter:
    """A converted model and its tokenizer. Get one from :meth:`load`."""

    def __init__(self, model: Any, tokenizer: Any, name: str):
        """model: of CTranslate2."""
        self.model, self.tokenizer, self.name = model, tokenizer, name

    @classmethod
    def load(cls, folder: str | Path, precision: str = "int8", seed: int = 0) -> ModelWriter:
        """Loads a folder. precision: CTranslate2's compute_type. seed: 0 to 4,294,967,295; the same
        seed and the same calls draw the same drafts.

        Raises ValueError, in one line, if the folder has no such model.
        """
        folder = Path(folder).expanduser()
        model, tokenizer = load_generator(folder, precision, seed=seed)
        return cls(model, tokenizer, folder.resolve().name)

    def draw(
        self, sources: Sequence[str], code: str, draws: int, temperature: float
    ) -> list[list[Draft]]:
        """Returns the different drafts of each source, likely ones first."""
        starts = [self._tokens(prompt(text, code)) for text in sources]
        texts: list[list[str]] = [[] for _ in sources]
        order = sorted(range(len(sources)), key=lambda k: len(starts[k]))
        for first in range(0, len(order), BATCH):
            places = order[first : first + BATCH]
            written = self.model.generate_batch(
                [starts[k] for k in places],
                max_length=10 + 2 * len(starts[places[-1]]),
                include_prompt_in_result=False,
                end_token=END,
                num_hypotheses=draws,
                sampling_topk=0,
                sampling_topp=TOP_P,
                sampling_temperature=temperature,
            )
            for k, one in zip(places, written, strict=True):
                lines = [_punctuated(self.tokenizer.decode(ids)) for ids in one.sequences_ids]
                texts[k] = [*dict.fromkeys(lines)]
        pairs = [(prompt(sources[k], code), text) for k, own in enumerate(texts) for text in own]
        read = iter(self.log_probabilities(pairs))
        found = [[draft_of(text, next(read)) for text in own] for own in texts]
        return [sorted(own, key=lambda draft: -draft.likelihood) for own in found]

    def log_probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
        """Returns the natural log probability of each token of a text, and of its end, behind its
        prompt.

        pairs: (prompt, text).
        """
        starts = [self._tokens(start) for start, _ in pairs]
        ends = [[*self._tokens(text), END] for _, text in pairs]
        lines = [start + end for start, end in zip(starts, ends, strict=True)]
        whole = {"max_batch_size": BATCH, "max_input_length": 0}
        found = self.model.score_batch(lines, **whole) if lines else []
        return [one.log_probs[-len(end) :] for one, end in zip(found, ends, strict=True)]

    def _tokens(self, text: str) -> list[str]:
        return self.tokenizer.encode(text, add_special_tokens=False).tokens


def load_generator(folder: Path, precision: str, *others: str, seed: int = 0) -> tuple[Any, Any]:
    """Returns the model and the tokenizer of a folder. others: more files that it must have.

    Raises ValueError, in one line, if the folder has no such model.
    """
    for name in (MODEL, TOKENIZER, *others):
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: has no {name}; gaixie writer (make writer) makes it")
    import ctranslate2
    from tokenizers import Tokenizer

    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        ctranslate2.set_random_seed(seed)  # of the threads that it starts from now on
        options = {"compute_type": precision, "intra_threads": threads}
        return ctranslate2.Generator(str(folder), **options), tokenizer
    except Exception as error:  # tokenizers raises Exception itself
        raise ValueError(f"{folder}: {str(error).splitlines()[0]}") from None


def _punctuated(text: str) -> str:
    """Returns a text with the full-width marks that Chinese has behind a character: 了，那是."""
    return AFTER_HAN.sub(lambda mark: chr(ord(mark[0]) + 0xFEE0), text.strip())


def draft_of(text: str, log_probabilities: Sequence[float]) -> Draft:
    """Returns a draft whose tokens, and its end, have these log probabilities."""
    mean = math.fsum(log_probabilities) / len(log_probabilities)
    return Draft(text, mean, min(log_probabilities))
