"""Reads and writes folders of arrays with a manifest, for word vectors and the language model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], manifest: dict[str, Any]) -> None:
    """Writes the arrays beside the manifest, and then the manifest. path: the manifest's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(path.with_name(f"{name}.npy"), array)
    text = json.dumps(manifest, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def read_arrays(
    path: Path,
    types: Mapping[str, str],
    expected: Mapping[str, object],
    digest: Callable[..., str],
    what: str,
) -> tuple[list[np.ndarray], str]:
    """Returns the arrays of a manifest, memory-mapped, and their digest.

    types: of each array. expected: what the manifest must say. digest: computes the arrays' digest.
    what: name of the content, for messages. Raises FileNotFoundError or ValueError, in one line
    that names the file, if a file is missing, damaged or of another version.
    """
    try:
        manifest = dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; expected {what}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: expected JSON ({error})") from None
    for key, value in expected.items():
        if (actual := manifest.get(key)) != value:
            raise ValueError(f"{path}: {key} {actual!r}, but this version reads {value!r}")
    arrays = [_array(path.with_name(f"{name}.npy"), kind) for name, kind in types.items()]
    if manifest.get("digest") != (actual := digest(*arrays)):
        raise ValueError(
            f"{path}: digest {manifest.get('digest')}, but its arrays have {actual}; "
            "they differ from those that were saved"
        )
    return arrays, actual


def _array(path: Path, kind: str) -> np.ndarray:
    try:
        array = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; its manifest needs it") from None
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: expected an array of {kind} ({error})") from None
    if array.dtype != kind:
        raise ValueError(f"{path}: holds {array.dtype}, expected {kind}")
    return array
