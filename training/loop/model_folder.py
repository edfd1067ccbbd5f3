"""The folder of a model that a run leaves: weights, configuration and tokenizer, whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accelerate import Accelerator


def write_model(
    accelerator: Accelerator,
    model: Any,
    tokenizer: Any,
    target: Path,
    complete: Callable[[Path, Path], None] | None = None,
) -> None:
    """Writes the model as it is now. All ranks call it, as ZeRO-3 gathers its weights.

    complete: adds what else belongs there; it is given the folder, not yet in its place, and the one
    that the target is in.
    """
    plain = accelerator.unwrap_model(model)
    # Elsewhere it would give copies of tied weights, each to be written.
    zero3 = any(hasattr(parameter, "ds_id") for parameter in plain.parameters())
    weights = accelerator.get_state_dict(model) if zero3 else None
    if accelerator.is_main_process:
        part = target.with_name(f".part-{target.name}")
        for folder in (part, target):
            shutil.rmtree(folder, ignore_errors=True)
        plain.save_pretrained(part, state_dict=weights)
        tokenizer.save_pretrained(part)
        if complete:
            complete(part, target.parent)
        part.rename(target)
