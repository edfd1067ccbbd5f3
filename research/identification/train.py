"""Fine-tunes an encoder to identify paraphrases; goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers.utils import logging

from gaixie.research.identification.data import Labelled
from gaixie.udfs.command_line import Clock, OutOfTime, say
from gaixie.udfs.metrics.encoder import choose_device, load_tokenizer, loading, model_signature
from gaixie.udfs.metrics.identification import Identifier

SAVE_SECONDS = 120
"""What a kill costs at most."""
CLASSES = {0: "different", 1: "paraphrase"}
POOL = 512
"""Pairs that are sorted by length together, so that batches are both even and random."""
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; it falls along a line in the others."""


@dataclass(frozen=True)
class Recipe:
    """How a model is trained. Rates are of AdamW, at their highest."""

    epochs: int = 4
    learning_rate: float = 1e-4
    head_rate: float = 1e-3
    batch: int = 16
    max_tokens: int = 96
    freeze: int = 2
    """Lowest layers that are not trained; the embeddings never are."""
    seed: int = 0


def fit(encoder: str, pairs: Labelled, recipe: Recipe, folder: Path, clock: Clock) -> Identifier:
    """A classifier trained from an encoder's weights, or another classifier's; saved in the folder.

    encoder: folder or cached name. A folder that has this very training is loaded instead. Raises
    OutOfTime where time is up, and OSError or ValueError where the encoder cannot be loaded.
    """
    digest = _digest(encoder, pairs, recipe)
    done, state_file = folder / "training.json", folder.with_name(f"{folder.name}.state.pt")
    if done.is_file() and json.loads(done.read_text("utf-8"))["digest"] == digest:
        return _open(str(folder), recipe)
    identifier = _open(encoder, recipe)
    network = identifier.network.to(choose_device("auto"))
    logging.disable_progress_bar()  # of saving, which takes no time
    trained, head = _freeze(network, recipe.freeze)
    optimizer = torch.optim.AdamW(
        [
            {"params": trained, "highest": recipe.learning_rate},
            {"params": head, "highest": recipe.head_rate},
        ],
        weight_decay=0.01,
    )
    plan = _plan(pairs, recipe)
    first = 0
    if state_file.is_file():
        state = torch.load(state_file, map_location=network.device)
        if state["digest"] == digest:
            network.load_state_dict(state["network"])
            optimizer.load_state_dict(state["optimizer"])
            first = state["next"]
    torch.manual_seed(recipe.seed + first)
    started = saved = time.monotonic()
    for step in range(first, len(plan)):
        is_up = clock.is_up()
        if is_up or time.monotonic() - saved > SAVE_SECONDS:
            folder.parent.mkdir(parents=True, exist_ok=True)
            state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            part = state_file.with_suffix(".part")
            torch.save({"digest": digest, "next": step, **state}, part)
            part.replace(state_file)
            saved = time.monotonic()
        if is_up:
            raise OutOfTime(f"{folder}: step {step:,} of {len(plan):,}")
        rate = min(1, (step + 1) / max(1, WARM_UP * len(plan))) * (1 - step / len(plan))
        for group in optimizer.param_groups:
            group["lr"] = group["highest"] * rate
        loss = _loss(identifier, pairs.take(plan[step]), swap=bool(step % 2))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % 100 == 0:
            left = (time.monotonic() - started) / (step + 1 - first) * (len(plan) - step - 1)
            loss_and_left = f"loss {loss.item():.3f}, {left / 60:.0f} min left"
            say(f"  step {step + 1:,} of {len(plan):,}, {loss_and_left}")
    network.eval().save_pretrained(folder)
    identifier.tokenizer.save_pretrained(folder)
    done.write_text(json.dumps({"digest": digest, "recipe": asdict(recipe)}, indent=1) + "\n")
    state_file.unlink(missing_ok=True)
    return identifier


def _open(model: str, recipe: Recipe) -> Identifier:
    """The model with two outputs: its own where it has them, else new ones by the seed."""
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


def _freeze(network: Any, layers: int) -> tuple[list[Any], list[Any]]:
    """Parameters that are trained: the encoder's, and the head's."""
    base = network.base_model
    getattr(base, "embeddings", base.get_input_embeddings()).requires_grad_(False)
    stack = getattr(getattr(base, "encoder", base), "layer", ())
    if layers > len(stack):
        raise ValueError(
            f"--freeze {layers}: the encoder has {len(stack)} layers that can be frozen"
        )
    for layer in stack[:layers]:
        layer.requires_grad_(False)
    own = {id(parameter) for parameter in base.parameters()}
    trained = [p for p in network.parameters() if p.requires_grad]
    return [p for p in trained if id(p) in own], [p for p in trained if id(p) not in own]


def _plan(pairs: Labelled, recipe: Recipe) -> list[np.ndarray]:
    """The rows of each step: of like length, in random order, all of them in every epoch."""
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


def _digest(encoder: str, pairs: Labelled, recipe: Recipe) -> str:
    text = json.dumps([model_signature(encoder), asdict(recipe), *(c.tolist() for c in pairs)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
