"""What says whether two sentences say the same: SPScore-zh's judged meaning, or a classifier of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gaixie.udfs.spscore import SPScore

TIERS = ("core", "full")


class Identifier(Protocol):
    """It is sent to Spark's workers, and loads its model there, once in each."""

    @property
    def least(self) -> float:
        """Score from which on two sentences say the same."""

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        """float32, shape (pairs,), in [0, 1]."""

    def describe(self) -> str:
        """Its name and what tells its versions apart."""


@dataclass(frozen=True)
class ByMeaning:
    """The judgement `meaning` of SPScore-zh, of tier core or full."""

    tier: str
    least: float

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        if not len(sources):
            return np.empty(0, np.float32)
        meaning = _metric(self.tier).judge(sources, paraphrases)["meaning"]
        return np.nan_to_num(meaning.to_numpy(np.float32), nan=0.0)

    def describe(self) -> str:
        return _metric(self.tier).signature()


@dataclass(frozen=True)
class ByClassifier:
    """The probability of class 1 by a sequence pair classifier: a folder that `transformers` loads.

    A classifier with one output gives its sigmoid. The folder has to be at the same path on every host.
    """

    folder: str
    least: float

    def scores(self, sources: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        import torch

        tokenizer, network, device = _classifier(self.folder)
        probabilities = np.empty(len(sources), np.float32)
        order = np.argsort([len(a) + len(b) for a, b in zip(sources, paraphrases, strict=True)])
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            first, second = [sources[k] for k in rows], [paraphrases[k] for k in rows]
            given = tokenizer(first, second, truncation=True, padding=True, return_tensors="pt")
            with torch.inference_mode():
                logits = network(**given.to(device)).logits.float()
            one = logits.shape[1] == 1
            chances = torch.sigmoid(logits[:, 0]) if one else torch.softmax(logits, dim=1)[:, 1]
            probabilities[rows] = chances.cpu().numpy()
        return probabilities

    def describe(self) -> str:
        from gaixie.udfs.metrics.encoder import model_signature

        return model_signature(self.folder)


def load_identifier(identify: str, min_meaning: float, min_probability: float) -> Identifier:
    """The identifier of a tier's name or a classifier's folder; loads it, so that a mistake shows here.

    Raises OSError or ValueError of one line where it cannot be loaded.
    """
    if identify in TIERS:
        _metric(identify)
        return ByMeaning(identify, min_meaning)
    _classifier(str(Path(identify)))
    return ByClassifier(str(Path(identify)), min_probability)


@cache
def _metric(tier: str) -> SPScore:
    return SPScore.load(tier)


@cache
def _classifier(folder: str) -> tuple[Any, Any, str]:
    import torch
    import transformers

    from gaixie.udfs.metrics.encoder import choose_device, load_network, load_tokenizer, loading

    kind, device = transformers.AutoModelForSequenceClassification, choose_device("auto")
    if device == "cpu":
        torch.set_num_threads(1)  # a worker for each core
    with loading(folder, "--identify takes core, full, or a classifier's folder"):
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        network = load_network(kind, folder, config).to(device)
        return load_tokenizer(folder), network, device
