"""Rounds the weights of an exported encoder: int8 / scale, one scale a row.

The layout of the file is CTranslate2's (``model_spec.py``: ``ModelSpec._serialize``).
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
FORMAT = 6


def round_to_seven_bits(path: Path) -> None:
    """Halves the range of a model file's linear weights, so that all processors compute the same.

    Without VNNI a processor adds two products of uint8 and int8 in 16 bits, which overflow where
    weights reach 127 (oneDNN, Nuances of int8 computations); 2 · 255 · 63 fits.
    """
    data = bytearray(path.read_bytes())
    found = variables(data, path)
    for name, scale in found.items():
        if "/linear_" in name and name.endswith("/weight_scale"):
            weight = found[name.removesuffix("_scale")]
            weight[...] = np.rint(weight * np.float32(63 / 127))
            scale *= np.float32(63 / 127)
    path.write_bytes(data)


def variables(data: bytearray, path: Path) -> dict[str, np.ndarray]:
    """Every variable of a model file of CTranslate2, by its name: views of the file's data."""
    place = 0

    def take(form: str) -> tuple[int, ...]:
        nonlocal place
        values = struct.unpack_from(form, data, place)
        place += struct.calcsize(form)
        return values

    def text() -> str:
        nonlocal place
        (length,) = take("<H")
        place += length
        return data[place - length : place - 1].decode()

    (version,) = take("<I")
    if version != FORMAT:
        raise ValueError(f"{path}: format {version} of CTranslate2, this reads {FORMAT}")
    text()
    _, count = take("<II")
    found = {}
    for _ in range(count):
        name = text()
        (rank,) = take("<B")
        shape = take(f"<{rank}I")
        kind, size = take("<BI")
        view = memoryview(data)[place : place + size]
        found[name] = np.frombuffer(view, TYPES[kind]).reshape(shape)
        place += size
    return found
