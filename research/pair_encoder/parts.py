"""What a training changed, as a folder of small files: bfloat16, over the start it was made of."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import nn

PART = 15 << 20
"""Bytes of a file."""
EXAMPLES = "examples"


def write_parts(model: nn.Module, examples: int, folder: Path) -> None:
    """Writes the weights that were trained, and how many examples they learned from."""
    frozen = {name for name, own in model.named_parameters() if not trained(name)}
    state = {
        name: own.detach().to(torch.bfloat16).contiguous()
        for name, own in model.state_dict().items()
        if name not in frozen
    }
    write_state(state | {EXAMPLES: torch.tensor(examples)}, folder)


def write_state(state: dict[str, torch.Tensor], folder: Path) -> None:
    """Writes tensors as files of PART bytes, in the place of earlier ones."""
    data = save(state)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("part-*.bin"):
        old.unlink()
    for number, start in enumerate(range(0, len(data), PART)):
        (folder / f"part-{number}.bin").write_bytes(data[start : start + PART])


def read_state(folder: Path) -> dict[str, torch.Tensor]:
    """What write_state wrote.

    Raises FileNotFoundError where the folder has no parts, ValueError where one is missing.
    """
    paths = sorted(folder.glob("part-*.bin"), key=lambda path: int(path.stem[5:]))
    if not paths:
        raise FileNotFoundError(f"{folder}: no part-*.bin there")
    try:
        return load(b"".join(path.read_bytes() for path in paths))
    except Exception as error:  # of safetensors, whose own error is no ValueError
        raise ValueError(f"{folder}: damaged, or a part is missing ({error})") from None


def trained(name: str) -> bool:
    """Whether a weight is one that training changes: of the embeddings, those of the two sides."""
    return not name.startswith("bert.embeddings.") or "token_type" in name


def read_parts(model: nn.Module, folder: Path) -> int:
    """Puts what write_parts wrote into a network of the start; how many examples it learned from.

    Raises FileNotFoundError where the folder has no parts, ValueError where they do not fit.
    """
    state = read_state(folder)
    examples = int(state.pop(EXAMPLES))
    expected = {name for name in model.state_dict() if trained(name)}
    if {*state} != expected:
        raise ValueError(f"{folder}: not of this network: {sorted({*state} ^ expected)[:3]}")
    own = model.state_dict()
    model.load_state_dict(own | {name: new.to(own[name].dtype) for name, new in state.items()})
    return examples
