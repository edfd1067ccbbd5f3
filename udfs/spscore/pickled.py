"""Sends a model to other processes: packs it small, and restores it once in each process."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from gaixie.udfs.spscore import SPScore

Identity: TypeAlias = tuple[str, str, float]
"""SHA-256 of the packed model, and its settings core and read_from."""

_restored: dict[Identity, SPScore] = {}
"""The models of this process, each restored once however many tasks bring it."""


def reduce(model: SPScore) -> tuple[Any, ...]:
    """Returns what __reduce__ must: the model's files, a tenth the size of its tables."""
    identity, content = _identify(model)
    return _restore, (identity, zlib.compress(content, 1))


def share(model: SPScore) -> SPScore:
    """Returns the model; this process and its forks now use it in place of every equal one."""
    return _restored.setdefault(_identify(model)[0], model)


def _identify(model: SPScore) -> tuple[Identity, bytes]:
    content = pickle.dumps(model._packed())
    digest = hashlib.sha256(content).hexdigest()
    return (digest, model.core, model.read_from), content


def _restore(identity: Identity, content: bytes) -> SPScore:
    from gaixie.udfs.spscore import SPScore

    if identity not in _restored:
        model = SPScore._unpacked(*pickle.loads(zlib.decompress(content)))
        _, model.core, model.read_from = identity
        _restored[identity] = model
    return _restored[identity]
