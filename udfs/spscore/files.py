"""Reads and writes the folder of a fitted SPScore-zh: ``spscore.json`` and the files of each head.

spscore.json            tier, columns of each head, digests; version 3 of the format
structure/lightgbm-0.txt, synonyms/…, meaning/…, fluency/…, spscore/…

Between processes a model travels as these files under zlib, a tenth the size of its tables.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gaixie.udfs.meaning.array_folder import check_digest, read_json, write_json
from gaixie.udfs.spscore.trees import TreeModel

if TYPE_CHECKING:
    from gaixie.udfs.spscore import SPScore

FORMAT_VERSION = 3
DESCRIPTION = "spscore.json"
KEYS = (
    *("version", "tier", "columns", "heads", "penalties"),
    *("normalisation", "segmenter", "resources", "digest"),
)
Identity = tuple[str, str, float]
"""SHA-256 of a packed model, and its settings core and read_from."""
_restored: dict[Identity, SPScore] = {}
"""The models of this process, each restored once however many tasks bring it."""


class Head(NamedTuple):
    """A model that predicts one output."""

    model: TreeModel
    columns: tuple[str, ...]
    """The columns that the model reads: features of the tier, and outputs of earlier heads."""


def pack(heads: Mapping[str, Head]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Returns the description of each head, and the contents of their files by name."""
    descriptions: dict[str, Any] = {}
    contents: dict[str, bytes] = {}
    for name, head in heads.items():
        trees = {f"lightgbm-{k}.txt": text.encode() for k, text in enumerate(head.model.texts)}
        columns, backend = list(head.columns), TreeModel.backend
        descriptions[name] = {"backend": backend, "columns": columns, "files": sorted(trees)}
        contents |= {f"{name}/{file}": content for file, content in trees.items()}
    return descriptions, contents


def unpack(descriptions: Mapping[str, Any], contents: Mapping[str, bytes]) -> dict[str, Head]:
    """Restores the heads from what pack returns. Raises ValueError for an unknown back-end."""
    heads = {}
    for name, head in descriptions.items():
        if head["backend"] != TreeModel.backend:
            raise ValueError(f"back-end {head['backend']!r}, expected {TreeModel.backend!r}")
        texts = [contents[f"{name}/{file}"].decode() for file in sorted(head["files"])]
        heads[name] = Head(TreeModel(texts), tuple(head["columns"]))
    return heads


def read(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Returns (the description in spscore.json, the contents of the files that it names).

    Raises FileNotFoundError if the folder or one of its files is missing, and ValueError if the
    description is invalid, has another format or another digest. Each error names the file.
    """
    path = folder / DESCRIPTION
    description = read_json(path, "a saved SPScore model", {"format": FORMAT_VERSION})
    if missing := [key for key in KEYS if key not in description]:
        raise ValueError(f"{path}: expected the key {missing[0]!r}")
    contents = {}
    try:
        for name, head in description["heads"].items():
            for file in head["files"]:
                contents[f"{name}/{file}"] = (folder / name / file).read_bytes()
    except (AttributeError, KeyError, TypeError):
        raise ValueError(f"{path}: expected the heads, each with its files") from None
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error.filename}: no such file; {path} lists it") from None
    check_digest(path, description, digest(description, contents))
    return description, contents


def write(folder: Path, description: dict[str, Any], contents: dict[str, bytes]) -> None:
    """Writes what ``read`` reads, the description last. First removes the files of older heads."""
    for name in description["heads"]:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for stale in (folder / name).glob("lightgbm-*.txt"):
            stale.unlink()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    write_json(folder / DESCRIPTION, description)


def digest(description: dict[str, Any], contents: dict[str, bytes]) -> str:
    """Returns ten hexadecimal digits of SHA-256 over all that decides a score."""
    decisive = [description["heads"], description["penalties"]]
    if points := description.get("calibration"):  # models before 0.4 have none
        decisive.append(points)
    checksum = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode())
    for name, content in sorted(contents.items()):
        checksum.update(f"\n{name} {len(content)}\n".encode() + content)
    return checksum.hexdigest()[:10]


def reduce(model: SPScore) -> tuple[Any, ...]:
    """Returns what ``SPScore.__reduce__`` must."""
    identity, content = _identify(model)
    return _restore, (identity, zlib.compress(content, 1))


def share(model: SPScore) -> SPScore:
    """Returns the model; this process and its forks now use it in place of every equal one."""
    return _restored.setdefault(_identify(model)[0], model)


def _identify(model: SPScore) -> tuple[Identity, bytes]:
    content = pickle.dumps(model._packed())
    return (hashlib.sha256(content).hexdigest(), model.core, model.read_from), content


def _restore(identity: Identity, content: bytes) -> SPScore:
    from gaixie.udfs.spscore import SPScore

    if identity not in _restored:
        model = SPScore._unpacked(*pickle.loads(zlib.decompress(content)))
        _, model.core, model.read_from = identity
        _restored[identity] = model
    return _restored[identity]
