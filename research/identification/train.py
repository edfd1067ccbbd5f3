"""Fine-tunes an encoder to identify paraphrases."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers.utils import logging

from gaixie.research.identification.data import Labelled
from gaixie.udfs.metrics.identification import Identifier
from gaixie.udfs.networks import choose_device, load_tokenizer, loading
from gaixie.udfs.reports import write_json
from gaixie.udfs.storage.progress import Progress

CLASSES = {0: "different", 1: "paraphrase"}
POOL = 512
"""Pairs that are sorted by length together, so that batches have even lengths but random order."""
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; it falls linearly in the rest."""


@dataclass(frozen=True)
class Recipe:
    """Settings of a training. Rates are AdamW's peak learning rates."""

    epochs: int = 4
    learning_rate: float = 1e-4
    head_rate: float = 1e-3
    batch: int = 16
    max_tokens: int = 96
    freeze: int = 2
    """Number of lowest layers that are not trained; the embeddings never are."""
    seed: int = 0


def fit(encoder: str, pairs: Labelled, recipe: Recipe, folder: Path) -> Identifier:
    """Trains a classifier from an encoder's or a classifier's weights, and saves it in the folder.

    encoder: folder or cached name. Raises OSError or ValueError if it cannot be loaded.
    """
    identifier = _open(encoder, recipe)
    network = identifier.network.to(choose_device("auto"))
    logging.disable_progress_bar()  # saving takes no time, so it needs no bar
    plan = _plan(pairs, recipe)
    optimizer = torch.optim.AdamW(_groups(network, recipe), weight_decay=0.01)
    warm = max(1, WARM_UP * len(plan))
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warm) * (1 - step / len(plan))
    )
    torch.manual_seed(recipe.seed)
    with Progress(f"training {folder.name}", len(plan), "steps") as shown:
        for step, rows in enumerate(plan):
            _loss(identifier, pairs.take(rows), swap=bool(step % 2)).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            shown.add(1)
    network.eval().save_pretrained(folder)
    identifier.tokenizer.save_pretrained(folder)
    write_json(folder / "training.json", asdict(recipe))
    return identifier


def _open(model: str, recipe: Recipe) -> Identifier:
    """Loads the model with two outputs: its own if it has them, else new ones drawn by the seed."""
    import transformers

    torch.manual_seed(recipe.seed)
    with loading(model, "python research/make_encoder.py makes one"):
        network = transformers.AutoModelForSequenceClassification.from_pretrained(
            model,
            num_labels=2,
            id2label=CLASSES,
            label2id={name: k for k, name in CLASSES.items()},
            dtype=torch.float32,
            local_files_only=True,
        )
        return Identifier(network, load_tokenizer(model), recipe.max_tokens)


def _groups(network: Any, recipe: Recipe) -> list[dict[str, Any]]:
    """Freezes the lowest layers. Returns the trained parameters, those of the head apart."""
    base = network.base_model
    getattr(base, "embeddings", base.get_input_embeddings()).requires_grad_(False)
    stack = getattr(getattr(base, "encoder", base), "layer", ())
    if recipe.freeze > len(stack):
        raise ValueError(f"--freeze {recipe.freeze}: the encoder has {len(stack)} layers")
    for layer in stack[: recipe.freeze]:
        layer.requires_grad_(False)
    of_base = {id(parameter) for parameter in base.parameters()}
    trained = [p for p in network.parameters() if p.requires_grad]
    encoder = [p for p in trained if id(p) in of_base]
    head = [p for p in trained if id(p) not in of_base]
    return [
        {"params": encoder, "lr": recipe.learning_rate},
        {"params": head, "lr": recipe.head_rate},
    ]


def _plan(pairs: Labelled, recipe: Recipe) -> list[np.ndarray]:
    """Returns the rows of each step: similar in length, in random order, each once per epoch."""
    rng = np.random.default_rng(recipe.seed)
    lengths = np.array([len(a) + len(b) for a, b, _ in zip(*pairs, strict=True)])
    plan: list[np.ndarray] = []
    for _ in range(recipe.epochs):
        order = rng.permutation(len(pairs))
        batches = []
        for start in range(0, len(order), POOL):
            pool = order[start : start + POOL]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches += [pool[k : k + recipe.batch] for k in range(0, len(pool), recipe.batch)]
        plan += [batches[k] for k in rng.permutation(len(batches))]
    return plan


def _loss(identifier: Identifier, pairs: Labelled, swap: bool) -> torch.Tensor:
    identifier.network.train()
    sides = pairs.source.tolist(), pairs.paraphrase.tolist()
    logits = identifier.network(**identifier.encode(*sides[:: -1 if swap else 1])).logits
    target = torch.tensor(np.column_stack([1 - pairs.label, pairs.label]), dtype=torch.float32)
    return functional.cross_entropy(logits, target.to(logits.device))
