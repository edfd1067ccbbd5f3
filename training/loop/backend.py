"""Sets up precision, data parallelism or DeepSpeed, and the tracker of a run."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, DistributedType, parse_flag_from_env

from gaixie.training.settings import Settings, Switch

AMPERE = (8, 0)
"""The CUDA capability from which tensor cores compute in bfloat16 and TF32."""


PEAKS = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "A10": 125e12,
    "L4": 121e12,
}
"""Peak operations a second of GPUs in bfloat16, without sparsity, from their makers' data
sheets."""


class Precision(NamedTuple):
    """The precision of a run's arithmetic: bfloat16, and TF32 in what stays float32."""

    bf16: bool
    tf32: bool

    @classmethod
    def of(cls, bf16: Switch, tf32: Switch, capability: tuple[int, int] | None) -> Precision:
        """Resolves two settings for a device. capability: of CUDA; None for any other device."""
        there = capability is not None and capability >= AMPERE
        return cls(*(there if switch == "auto" else switch for switch in (bf16, tf32)))

    def in_words(self) -> str:
        """Returns the precision in words, for the log."""
        return f"{'bfloat16' if self.bf16 else 'float32'}, TF32 {'on' if self.tf32 else 'off'}"

    def set_up(self, accelerator: Accelerator) -> None:
        """Switches TF32. All ranks call it; each raises ValueError if they would differ."""
        own = torch.tensor([self], dtype=torch.int64, device=accelerator.device)
        if len(accelerator.gather(own).unique(dim=0)) > 1:
            raise ValueError("bf16, tf32: auto differs between the GPUs: expected true or false")
        torch.set_float32_matmul_precision("high" if self.tf32 else "highest")


def lowest_capability() -> tuple[int, int] | None:
    """Returns the lowest CUDA capability of this machine's GPUs; None if the run uses no GPU."""
    if parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.cuda.is_available():
        return None
    return min(map(torch.cuda.get_device_capability, range(torch.cuda.device_count())))


class Utilisation:
    """Computes the model FLOPs utilisation (Chowdhery et al. 2022, PaLM, appendix B) of all ranks.

    A token costs six operations for each weight that it passes: a source's tokens pass the
    encoder's layers, a paraphrase's the decoder's and the output layer. Attention is ignored, since
    sentences are short. The peak is the maker's figure for a GPU of PEAKS, otherwise the speed of a
    matrix product measured here.
    """

    def __init__(self, accelerator: Accelerator, model: Any, precision: Precision):
        head = model.get_output_embeddings().weight
        encoder, decoder = (
            sum(_size(one) for name, one in part.named_parameters() if "embed" not in name)
            for part in (model.get_encoder(), model.get_decoder())
        )
        self.weights = encoder, decoder + _size(head)
        self.peak = accelerator.num_processes * peak_flops(accelerator.device, precision)

    def of(self, sources: int, paraphrases: int) -> float:
        """Returns the seconds that so many tokens take at the peak."""
        encoder, decoder = self.weights
        return 6 * (sources * encoder + paraphrases * decoder) / self.peak


def _size(parameter: Any) -> int:
    """Returns the elements of a weight, which under ZeRO-3 may be an empty vector here."""
    return getattr(parameter, "ds_numel", parameter.numel())


def peak_flops(device: torch.device, precision: Precision) -> float:
    """Returns the peak operations a second of one device in a run's precision."""
    dtype, size = torch.bfloat16 if precision.bf16 else torch.float32, 1_024
    if device.type == "cuda":
        name, size = torch.cuda.get_device_name(device), 8_192
        known = [peak for model, peak in PEAKS.items() if model in name]
        if known and precision.bf16:
            return known[0]
    square, seconds = torch.ones(size, size, dtype=dtype, device=device), []
    for _ in range(4):
        started = time.perf_counter()
        (square @ square)[0, 0].item()
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / min(seconds)


def prepare(
    accelerator: Accelerator, model: torch.nn.Module, optimizer: Any, settings: Settings
) -> tuple[torch.nn.Module, Any]:
    """Prepares model and optimiser for the backend. Loaders are already sharded, so they stay
    unchanged."""
    module: Any
    for module in model.modules():  # ranks would drop different layers, and wait for each other
        if getattr(module, "layerdrop", 0) and accelerator.num_processes > 1:
            module.layerdrop = 0.0
    accelerator.ddp_handler = DistributedDataParallelKwargs(
        broadcast_buffers=False,  # tables of positions and zeros, which no step changes
        find_unused_parameters=False,  # all are used, see step.freeze_unused
    )
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        # DeepSpeed would take the size from a loader, and clips by its own configuration.
        config = accelerator.state.deepspeed_plugin.deepspeed_config
        config["train_micro_batch_size_per_gpu"] = min(
            settings.batch.micro_pairs, settings.batch.pairs // accelerator.num_processes
        )
        config["gradient_clipping"] = settings.clip
    return accelerator.prepare(model, optimizer)


def tracker_of(settings: Settings) -> str | None:
    """Returns the tracker, as accelerate takes it. Raises ValueError if its package is missing.

    accelerate itself would silently ignore it.
    """
    if settings.tracking == "wandb" and find_spec("wandb") is None:
        raise ValueError(
            "tracking: wandb needs the package wandb: pip install wandb, or tensorboard"
        )
    return settings.tracking


def tracker_options(settings: Settings, step: int) -> dict[str, dict[str, Any]]:
    """Returns the options to open the tracker with. step: the last one that it may already have.

    TensorBoard then drops what a killed run had written after it. In Weights & Biases, each start
    of the command is a run, and the runs of one output share a group.
    """
    output = Path(settings.output)
    wandb = {
        "mode": os.environ.get("WANDB_MODE", "offline"),
        "dir": str(output),
        "group": output.name,
        "config": settings.model_dump(mode="json"),
    }
    return {"tensorboard": {"purge_step": step + 1}, "wandb": wandb}
