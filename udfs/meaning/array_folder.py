"""Reads and writes folders of files with a description in JSON that has their digest: word vectors,
the language model, the pair encoder, SPScore-zh."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_json(path: Path, description: Mapping[str, Any]) -> None:
    """Writes a description."""
    path.write_text(json.dumps(description, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path, what: str, expected: Mapping[str, object]) -> dict[str, Any]:
    """Reads a description.

    what: what the folder holds, for messages. expected: what the description must say. Raises
    FileNotFoundError or ValueError, in one line that names the file, if it is missing, damaged or
    of another version.
    """
    try:
        description = dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{path}: no such file; expected {what}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: expected JSON ({error})") from None
    for key, value in expected.items():
        if (actual := description.get(key)) != value:
            raise ValueError(f"{path}: {key} {actual!r}, but this version reads {value!r}")
    return description


def check_digest(path: Path, description: Mapping[str, Any], actual: str) -> None:
    """Raises ValueError if a description has another digest than its files have."""
    if (stated := description.get("digest")) != actual:
        fault = f"digest {stated}, but its files have {actual}"
        raise ValueError(f"{path}: {fault}; they differ from those that were saved")


def digest_of(arrays: Mapping[str, np.ndarray], head: str) -> str:
    """Returns ten hexadecimal digits of SHA-256 over arrays. head: a format of what precedes an
    array's content, from its name and the array."""
    checksum = hashlib.sha256()
    for name, array in arrays.items():
        checksum.update(head.format(name=name, array=array).encode())
        checksum.update(np.ascontiguousarray(array).data)
    return checksum.hexdigest()[:10]


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], description: Any) -> None:
    """Writes the arrays beside the description, and then the description. path: its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(path.with_name(f"{name}.npy"), array)
    write_json(path, description)


def read_arrays(
    path: Path,
    types: Mapping[str, str],
    expected: Mapping[str, object],
    digest: Callable[..., str],
    what: str,
) -> tuple[list[np.ndarray], str]:
    """Returns the arrays of a description, memory-mapped, and their digest.

    types: of each array. digest: computes the arrays' digest. expected, what: as for read_json,
    which says what this raises.
    """
    description = read_json(path, what, expected)
    arrays = [_array(path.with_name(f"{name}.npy"), kind) for name, kind in types.items()]
    check_digest(path, description, actual := digest(*arrays))
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
