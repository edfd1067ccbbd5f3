"""Identification: the probability, by a classifier of sentence pairs, that P paraphrases S.

    identification = P(paraphrase | S, P),  the mean over both orders of the pair by default

Source: Dou, Jiang & Xu 2022, *Improving Large-scale Paraphrase Acquisition and Generation*
(MultiPIT), section 3. The model is any transformers model that classifies pairs of sentences into
two classes; ``research/identify_paraphrases.py`` fine-tunes one. The positive
class is "paraphrase" or "entailment" in the model's config, else the second. A folder may hold more
classifiers, member-1, member-2 and so on, whose log-odds are averaged. A null gives NaN. Unit:
probability, 0–1.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from gaixie.udfs import networks
from gaixie.udfs.meaning.pair_encoder import batches
from gaixie.udfs.metrics.metric import Metric

POSITIVE = ("paraphrase", "entailment")
BATCH_TOKENS = 2_048
HOW_TO_MAKE = "python research/identify_paraphrases.py makes one"


class Identifier:
    """A classifier of sentence pairs that turns its outputs into probabilities.

    network: an ``AutoModelForSequenceClassification`` of two classes; others raise ValueError.
    max_tokens: of both sentences together; the longer one is truncated first.
    """

    def __init__(self, network: Any, tokenizer: Any, max_tokens: int = 128):
        config = network.config
        if config.num_labels != 2:
            raise ValueError(f"expected two classes, it has {config.num_labels} outputs")
        positions = getattr(config, "max_position_embeddings", max_tokens)
        self.network, self.tokenizer = network, tokenizer
        self.max_tokens = min(max_tokens, positions)
        names = {str(name).lower(): k for k, name in (config.id2label or {}).items()}
        known = [int(names[name]) for name in POSITIVE if name in names]
        self.positive = known[0] if known else 1

    def encode(self, source: Sequence[str], paraphrase: Sequence[str]) -> Any:
        """Returns a padded batch on the network's device."""
        encoded = self.tokenizer(
            *(list(source), list(paraphrase)),
            truncation="longest_first",
            max_length=self.max_tokens,
            padding=True,
            return_tensors="pt",
        )
        return encoded.to(self.network.device)

    def probabilities(self, source: Sequence[str], paraphrase: Sequence[str]) -> np.ndarray:
        """P(paraphrase) of each pair in this order: float64, shape (rows,)."""
        import torch

        self.network.eval()
        lengths = [len(a) + len(b) for a, b in zip(source, paraphrase, strict=True)]
        found = np.empty(len(lengths))
        for rows in batches(lengths, 4 * BATCH_TOKENS):  # about four characters a token
            with torch.inference_mode():
                batch = self.encode([source[k] for k in rows], [paraphrase[k] for k in rows])
                odds = torch.softmax(self.network(**batch).logits.float(), dim=1)
            found[rows] = odds[:, self.positive].cpu().numpy()
        return found


class Ensemble:
    """Averages the log-odds of classifiers that differ by chance, such as by their seeds."""

    def __init__(self, members: Sequence[Identifier]):
        self.members = members

    def probabilities(self, source: Sequence[str], paraphrase: Sequence[str]) -> np.ndarray:
        """P(paraphrase) of each pair in this order: float64, shape (rows,)."""
        found = [log_odds(member.probabilities(source, paraphrase)) for member in self.members]
        return 1 / (1 + np.exp(-np.mean(found, axis=0)))


def log_odds(probability: np.ndarray) -> np.ndarray:
    """Returns ln(p / (1 − p)), limited to ±11.5: no classifier is surer than that."""
    inside = np.clip(probability, 1e-5, 1 - 1e-5)
    return np.log(inside / (1 - inside))


def member_folders(model: str) -> list[Path]:
    """Returns the folders of the classifiers in a classifier's folder."""
    return sorted(path.parent for path in Path(model).glob("member-*/config.json"))


@cache
def load_identifier(model: str, max_tokens: int = 128) -> Identifier | Ensemble:
    """Loads a folder's classifier and those in it, or a cached name, once in a process.

    Raises OSError or ValueError, in one line, if one cannot be loaded.
    """
    first = _load(model, max_tokens)
    others = [_load(str(folder), max_tokens) for folder in member_folders(model)]
    return Ensemble([first, *others]) if others else first


def _load(model: str, max_tokens: int) -> Identifier:
    import transformers

    with networks.loading(model, HOW_TO_MAKE):
        config = transformers.AutoConfig.from_pretrained(model, local_files_only=True)
        kind = transformers.AutoModelForSequenceClassification
        network = networks.load_network(kind, model, config).to(networks.choose_device("auto"))
        return Identifier(network, networks.load_tokenizer(model), max_tokens)


@dataclass(frozen=True)
class Identification(Metric):
    """The probability of a paraphrase. model: folder or cached name. both: average both orders."""

    model: str
    both: bool = True
    max_tokens: int = 128

    name = "identification"
    title = "Identification"
    summary = "How likely the pair are paraphrases, by a fine-tuned classifier."
    range = (0.0, 1.0)

    def scores_of(self, texts: Sequence[str], paraphrases: Sequence[str]) -> np.ndarray:
        identifier = load_identifier(self.model, self.max_tokens)
        found = identifier.probabilities(texts, paraphrases)
        if self.both:
            found = (found + identifier.probabilities(paraphrases, texts)) / 2
        return found

    def settings(self) -> Sequence[tuple[str, object]]:
        folders = map(str, member_folders(self.model))
        members = [("member", networks.model_signature(folder)) for folder in folders]
        how = ("orders", 1 + self.both), ("tokens", self.max_tokens)
        return ("model", networks.model_signature(self.model)), *members, *how
