"""Where a run's curves go beside its logs: TensorBoard, or Weights & Biases without a network."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gaixie.training.settings import Settings


def tracker_of(settings: Settings) -> str | None:
    """The tracker, as accelerate takes it. Raises ValueError where its package is missing.

    accelerate itself would pass over it without a word.
    """
    if settings.tracking == "wandb" and find_spec("wandb") is None:
        raise ValueError(
            "tracking: wandb needs the package wandb: pip install wandb, or tensorboard"
        )
    return settings.tracking


def options_of(settings: Settings, step: int) -> dict[str, dict[str, Any]]:
    """What the tracker is opened with. step: the last one that it may have already.

    TensorBoard drops what a run that was killed had written behind it. Of Weights & Biases each start
    of the command is a run; those of one output have one group.
    """
    output = Path(settings.output)
    wandb = {
        "mode": os.environ.get("WANDB_MODE", "offline"),
        "dir": str(output),
        "group": output.name,
        "config": settings.model_dump(mode="json"),
    }
    return {"tensorboard": {"purge_step": step + 1}, "wandb": wandb}
