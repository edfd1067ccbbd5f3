"""Performs one optimiser step: its micro-batches, the exact loss over all ranks, the learning rate.

One step learns from one batch of the stream, whatever the number of ranks and the size of the
micro-batches: the loss is the mean over all label tokens of the batch. So two ranks take the same
steps as one, except for rounding. Dropout depends on the seed, the step and the rank, not on what
ran before, so a resumed run continues as if it had never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch.nn.functional import cross_entropy

from gaixie.training.data.stage_loader import PairEncoder
from gaixie.training.modeling.model import decoder_ids, end_tokens
from gaixie.training.settings import Settings, StageSettings


@dataclass
class Work:
    """One rank's work in a step."""

    micro_batches: list[dict[str, torch.Tensor]]
    """See PairEncoder.tensors."""
    labels: int
    """Label tokens of the whole batch, over all ranks."""
    tokens: int
    """Tokens of sources and paraphrases on this rank."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles tensors as arrays: each tensor would need a file and a connection of its own."""
        arrays = [{name: one.numpy() for name, one in m.items()} for m in self.micro_batches]
        return _work_of_arrays, (arrays, self.labels, self.tokens)

    def pin_memory(self) -> Work:
        """Pins the tensors for DataLoader, which by itself only pins plain tensors."""
        pinned = [{name: one.pin_memory() for name, one in m.items()} for m in self.micro_batches]
        return replace(self, micro_batches=pinned)


def _work_of_arrays(arrays: list[dict[str, np.ndarray]], labels: int, tokens: int) -> Work:
    tensors = [{name: torch.from_numpy(one) for name, one in m.items()} for m in arrays]
    return Work(tensors, labels, tokens)


class MicroBatches:
    """Cuts a rank's share of a batch into micro-batches; runs in worker processes.

    The pairs of a batch are sorted by length, so each micro-batch is padded to its own longest.
    pairs: maximum pairs of a micro-batch. tokens: its maximum tokens with padding, which allows
    more short sentences. All ranks cut at the same pairs, since under ZeRO-3 they must call the
    model equally often.
    """

    def __init__(self, encode: PairEncoder, pairs: int, tokens: int | None = None):
        self.encode, self.pairs, self.most = encode, pairs, tokens

    def __call__(
        self,
        source: list[np.ndarray],
        paraphrase: list[np.ndarray],
        lengths: np.ndarray,
        **options: list[int],
    ) -> Work:
        """lengths: tokens of source and paraphrase of the whole batch, shape (pairs, 2)."""
        bounds = self._bounds(lengths.reshape(len(source), -1, 2).max(1))
        micro_batches = [
            self.encode.tensors(
                source[a:b], paraphrase[a:b], **{name: of[a:b] for name, of in options.items()}
            )
            for a, b in pairwise(bounds)
        ]
        read = sum(int(micro["attention_mask"].sum()) for micro in micro_batches)
        return Work(micro_batches, int(lengths[:, 1].sum()), read + sum(map(len, paraphrase)))

    def _bounds(self, lengths: np.ndarray) -> list[int]:
        """Returns where micro-batches begin, and the last one's end. lengths: the longest on any
        rank, shape (pairs, 2)."""
        bounds = [0]
        for end in range(1, len(lengths)):
            cells = (end + 1 - bounds[-1]) * lengths[bounds[-1] : end + 1].max(0).sum()
            if end - bounds[-1] == self.pairs or (self.most is not None and cells > self.most):
                bounds.append(end)
        return [*bounds, len(lengths)]


class Done(NamedTuple):
    """The results of a step; those of this rank alone say so."""

    loss: torch.Tensor
    """This rank's share of the loss; the sum over the ranks is the mean loss of a token."""
    tokens: int
    """Work.tokens."""
    skipped: torch.Tensor
    """1.0 if the gradient was not finite and no rank changed a weight; else 0.0."""
    labels: int
    """Work.labels."""


def train_step(
    accelerator: Accelerator,
    model: torch.nn.Module,
    optimizer: Any,
    work: Work,
    label_smoothing: float,
    clip: float,
) -> Done:
    """Runs forward and backward over the micro-batches, then one step of the optimiser.

    Nothing here waits for the device: all necessary counts are taken where the batch is made.

    An infinite or NaN gradient, which a finite loss can cause, changes no weight. The device
    decides this, so that no step waits for it; DeepSpeed's optimiser has its own way.

    Every rank has the same number of micro-batches. Gradients are averaged over the ranks, and
    backward divides by gradient_accumulation_steps (in DeepSpeed, otherwise in Accelerate); both
    are corrected here.
    """
    scale = accelerator.num_processes * accelerator.gradient_accumulation_steps
    loss = torch.zeros((), device=accelerator.device)
    skipped = torch.zeros((), device=accelerator.device)
    skipped_before: Any = getattr(model, "skipped_steps", 0)  # of DeepSpeed
    for number, micro in enumerate(work.micro_batches, 1):
        last = number == len(work.micro_batches)
        accelerator.sync_gradients = last  # accumulate() would set it by counting
        with nullcontext() if last else accelerator.no_sync(model):
            part = token_losses(accelerator, model, micro, label_smoothing) / work.labels
            accelerator.backward(part * scale)
        loss += part.detach()
    if accelerator.distributed_type == DistributedType.DEEPSPEED:  # its backward does everything
        skipped += model.skipped_steps - skipped_before
    else:
        norm = accelerator.clip_grad_norm_(model.parameters(), clip)
        skipped = (~torch.isfinite(norm)).float()
        optimizer.optimizer.found_inf = skipped  # as a GradScaler tells a fused optimiser
        optimizer.step()
        optimizer.zero_grad()
    return Done(loss, work.tokens, skipped, work.labels)


def token_losses(
    accelerator: Accelerator, model: torch.nn.Module, micro: dict[str, Any], label_smoothing: float
) -> torch.Tensor:
    """Returns the sum of the losses of a micro-batch's label tokens, in float32."""
    logits, labels = predict(accelerator, model, micro)
    return cross_entropy(logits.float(), labels, reduction="sum", label_smoothing=label_smoothing)


def predict(
    accelerator: Accelerator, model: torch.nn.Module, micro: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns (logits, labels) of a micro-batch's label tokens, teacher-forced: shapes (places,
    tokens), (places,).

    The output layer gets only the places of labels: most logits of some batches would be padding.
    """
    names = ("input_ids", "attention_mask", "labels", "places")
    ids, mask, labels, places = (
        micro[name].to(accelerator.device, non_blocking=True) for name in names
    )
    plain = accelerator.unwrap_model(model)
    masks = {"attention_mask": mask}
    # Given a mask of pairs and places, transformers asks the device if it hides anything, and
    # waits.
    if plain.config.model_type == "bart" and plain.config._attn_implementation == "sdpa":
        causal = torch.ones(2 * labels.shape[1:], dtype=torch.bool, device=labels.device).tril()
        masks = {
            "attention_mask": mask.bool()[:, None, None],
            "decoder_attention_mask": causal[None, None],
        }
    # Given labels, the model would compute its own loss as well.
    read = decoder_ids(plain, labels)
    with only_places(plain.get_output_embeddings(), places):
        answer = model(input_ids=ids, decoder_input_ids=read, use_cache=False, **masks)
    return answer.logits, labels.flatten().index_select(0, places)


class _Places:
    """A hook that shows an output layer only some places of (pairs, longest, width).

    The places are stored here and not in the layer: a compiled model takes its tensors for
    constants, and would be compiled again for every number of labels. The hook is never removed,
    since a change of hooks also compiles the model again.
    """

    places: torch.Tensor | None = None

    def __call__(self, head: Any, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        if self.places is None:  # while the model generates
            return arguments
        hidden, *rest = arguments
        return hidden.flatten(0, 1).index_select(0, self.places), *rest


@contextmanager
def only_places(head: Any, places: torch.Tensor) -> Iterator[None]:
    """Makes an output layer see only these places of its flattened input."""
    hooks = [hook for hook in head._forward_pre_hooks.values() if isinstance(hook, _Places)]
    if not hooks:
        hooks = [_Places()]
        head.register_forward_pre_hook(hooks[0])
    hooks[0].places = places
    try:
        yield
    finally:
        hooks[0].places = None


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seeds torch for one step of one rank."""
    torch.manual_seed((seed * 1_000_003 + step) * 1_009 + rank)


def lr_at(step: int, stage: StageSettings, decay: str, min_share: float) -> float:
    """Returns the learning rate of a stage's step, counted from 1.

    It rises linearly over the warm-up to the stage's learning rate, then falls (``linear`` or
    ``cosine``) to min_share of it at the last step of the stage's budget. Without a budget of
    steps, or with ``constant``, it stays.
    """
    peak, warmup = stage.learning_rate, stage.warmup_steps
    if step <= warmup:
        return peak * step / warmup
    if decay == "constant" or stage.max_steps is None:
        return peak
    done = min((step - warmup) / max(stage.max_steps - warmup, 1), 1)
    share = 1 - done if decay == "linear" else (1 + math.cos(math.pi * done)) / 2
    return peak * (min_share + (1 - min_share) * share)


def make_optimizer(model: Any, settings: Settings) -> torch.optim.AdamW:
    """Returns AdamW; biases and the weights of norms do not decay.

    ``scale`` of a group: its share of the learning rate. The encoder has its own, which also
    applies to the embeddings, as they are the encoder's too; at 0 they are frozen.
    """
    groups: dict[tuple[bool, float], list[torch.nn.Parameter]] = {}
    encoder = {id(parameter) for parameter in model.get_encoder().parameters()}
    for parameter in model.parameters():
        scale = settings.encoder_learning_rate if id(parameter) in encoder else 1.0
        parameter.requires_grad_(parameter.requires_grad and scale > 0)
        if parameter.requires_grad:
            # Under ZeRO-3 a weight is an empty vector here; its shape is stored elsewhere.
            shape = getattr(parameter, "ds_shape", parameter.shape)
            groups.setdefault((len(shape) > 1, scale), []).append(parameter)
    return torch.optim.AdamW(
        [
            {
                "params": groups[decays, scale],
                "weight_decay": settings.weight_decay if decays else 0.0,
                "scale": scale,
            }
            for decays, scale in sorted(groups, reverse=True)
        ],
        lr=settings.learning_rate,
        betas=(0.9, 0.999),
        fused=True,
    )


def freeze_unused(model: Any) -> list[str]:
    """Freezes the weights that no loss depends on, and returns their names.

    Data parallel training would wait for their gradients. A pretrained encoder may have such
    weights, like BERT's pooler; they would never change anyway.
    """
    training = model.training
    model.eval()  # sets all layers, whatever their dropout
    ids = torch.full((1, 2), end_tokens(model)[0])
    read = decoder_ids(model, ids)
    logits = model(input_ids=ids, decoder_input_ids=read, use_cache=False).logits
    weights = {name: one for name, one in model.named_parameters() if one.requires_grad}
    gradients = torch.autograd.grad(logits.sum(), [*weights.values()], allow_unused=True)
    unused = [name for name, own in zip(weights, gradients, strict=True) if own is None]
    for name in unused:
        weights[name].requires_grad_(False)
    model.train(training)
    return unused


def accumulation(settings: Settings, world: int) -> int:
    """Returns the number of micro-batches of a whole batch on one rank."""
    return -(-settings.batch.pairs // world // settings.batch.micro_pairs) or 1
