"""The precision of a run's arithmetic: bfloat16, and TF32 in what stays float32."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import parse_flag_from_env

Switch = bool | Literal["auto"]
"""auto: where the accelerator has it."""

AMPERE = (8, 0)
"""The CUDA capability from which on tensor cores compute in bfloat16 and TF32."""


class Precision(NamedTuple):
    """What a run computes in."""

    bf16: bool
    tf32: bool

    @classmethod
    def of(cls, bf16: Switch, tf32: Switch, capability: tuple[int, int] | None) -> Precision:
        """What two settings mean on a device. capability: of CUDA; None: the device is another one."""
        there = capability is not None and capability >= AMPERE
        return cls(*(there if switch == "auto" else switch for switch in (bf16, tf32)))

    def in_words(self) -> str:
        """For the log."""
        return f"{'bfloat16' if self.bf16 else 'float32'}, TF32 {'on' if self.tf32 else 'off'}"

    def set_up(self, accelerator: Accelerator) -> None:
        """Switches TF32. All ranks call it; raises ValueError on each where they would differ."""
        own = torch.tensor([self], dtype=torch.int64, device=accelerator.device)
        if len(accelerator.gather(own).unique(dim=0)) > 1:
            raise ValueError("bf16, tf32: auto differs between the GPUs: expected true or false")
        torch.set_float32_matmul_precision("high" if self.tf32 else "highest")


def lowest_capability() -> tuple[int, int] | None:
    """CUDA's capability that all GPUs of this machine have; None where the run is not on GPUs."""
    if parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.cuda.is_available():
        return None
    return min(map(torch.cuda.get_device_capability, range(torch.cuda.device_count())))
