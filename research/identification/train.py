"""Fine-tunes an encoder to identify paraphrases, also on noisy labels.

A teacher trained on clean labels removes or flips doubtful ones.

Source: Dou, Jiang & Xu 2022 (MultiPIT), section 3.2, "filter and flip": where the teacher's
P(label) ≤ λ, the pair is left out (filter) or gets the other label (flip). The paper tries λ from
0.05 to 0.45; its best are 0.35 for filtering and 0.25 for flipping. Decided here: filtering and
flipping are each tried for every λ. A student starts from the teacher's weights and learns from
the noisy and the clean pairs together. F1 on the held-out part chooses among all students and the
teacher itself. The report has test figures for all of them, but these have no influence on the
choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers.utils import logging

from gaixie.research.identification.data import Labelled
from gaixie.udfs.command_line import say
from gaixie.udfs.metrics.identification import Identifier
from gaixie.udfs.networks import choose_device, load_tokenizer, loading
from gaixie.udfs.reports import write_json
from gaixie.udfs.storage.progress import Progress

CLASSES = {0: "different", 1: "paraphrase"}
POOL = 512
"""Pairs that are sorted by length together, so that batches have even lengths but random order."""
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; it falls linearly in the rest."""
MODES = ("keep", "filter", "flip")
LIMITS = (0.05, 0.15, 0.25, 0.35, 0.45)
"""Values of λ: the paper's range, with its best ones."""
BINS = 10
"""Bins of the histogram of P(label); a teacher that learned nothing has all pairs in one bin."""


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


def of_label(noisy: Labelled, probability: np.ndarray) -> np.ndarray:
    """Returns P(label) from the teacher's P(paraphrase), both of shape (pairs,)."""
    return np.where(noisy.label >= 0.5, probability, 1 - probability)


def cleaned(noisy: Labelled, probability: np.ndarray, mode: str, limit: float) -> Labelled:
    """Returns the noisy pairs that remain, with their new labels.

    probability: the teacher's P(paraphrase). mode: one of MODES. limit: λ; a label is doubtful if
    P(label) ≤ λ.
    """
    doubted = of_label(noisy, probability) <= limit
    if mode == "filter":
        return noisy.take(np.flatnonzero(~doubted))
    turned = doubted & (mode == "flip")
    return Labelled(noisy.source, noisy.paraphrase, np.where(turned, 1 - noisy.label, noisy.label))


def learn_from_noise(
    teacher: tuple[Identifier, str],
    clean: Labelled,
    noisy: Labelled,
    limits: Sequence[float],
    recipe: Recipe,
    folder: Path,
    judged: Callable[[Identifier], dict[str, Any]],
) -> tuple[Identifier, dict[str, Any]]:
    """Returns the best of teacher and students on the held-out part, and the figures of all.

    teacher: the model and its folder. limits: values of λ. recipe: for the students. judged:
    returns a model's figures, as scores.report does.
    """
    said = teacher[0].probabilities(noisy.source.tolist(), noisy.paraphrase.tolist())
    histogram = np.histogram(of_label(noisy, said), bins=BINS, range=(0, 1))[0].tolist()
    say(f"P(label) of the teacher, pairs by tenths: {', '.join(map(str, histogram))}")
    rows = [{"mode": "none", "lambda": None, "pairs": 0, "flipped": 0, **judged(teacher[0])}]
    students = [teacher[0]]
    tried = [("keep", -1.0), *((mode, limit) for mode in MODES[1:] for limit in limits)]
    for mode, limit in tried:
        kept = cleaned(noisy, said, mode, limit)
        name = mode if mode == "keep" else f"{mode}-{limit:g}"
        say(f"noisy labels, {name}: {len(kept):,} of {len(noisy):,} pairs")
        student = fit(teacher[1], clean.join(kept), recipe, folder / name)
        turned = int(np.sum(kept.label != noisy.label)) if mode == "flip" else 0
        limit_or_none = None if mode == "keep" else limit
        row = {"mode": mode, "lambda": limit_or_none, "pairs": len(kept), "flipped": turned}
        rows.append(row | judged(student))
        students.append(student)
    best = int(np.argmax([row["on_held_out"]["f1"]["score"] for row in rows]))
    found = {"noisy": len(noisy), "histogram": histogram, "tried": rows, "chosen": best}
    return students[best], found
