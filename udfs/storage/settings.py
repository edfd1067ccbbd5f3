"""Loads the settings of a job or a training run from a YAML file, which the command line overrides.

Settings are checked before work starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from gaixie.udfs.storage import storage


class Strict(BaseModel):
    """Settings of which every key is known."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Options(Strict):
    """Options of a command line: the text below a field is the help of its option."""

    model_config = ConfigDict(frozen=True)


Model = TypeVar("Model", bound=BaseModel)


def load_settings(
    model: type[Model],
    path: str | Path,
    overrides: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    sections: Sequence[str] = (),
) -> Model:
    """Loads a YAML file by path or URI as a model; the command line overrides it.

    overrides: values by top-level key, from the options of the same names; None is "not given".
    assignments: KEY=VALUE of --set, with dots in KEY between levels and YAML as VALUE; they apply
    last. sections: keys of the file whose mappings hold the values, the later ones over the earlier
    ones. Raises OSError or ValueError with one line that names the file or the option, the key, and
    what was expected.
    """
    assignments = list(assignments)
    try:
        values = yaml.safe_load(storage.read_bytes(str(path))) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected a mapping of settings")
    if sections:
        parts = [values.get(section) or {} for section in sections]
        values = {key: value for part in parts for key, value in part.items()}
    given = overrides or {}
    values |= {key: value for key, value in given.items() if value is not None}
    for assignment in assignments:
        _assign(values, assignment)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        culprit = _culprit(error.errors()[0]["loc"], given, assignments) or path
        raise ValueError(f"{culprit}: {first_fault(error)}") from None


def _culprit(
    place: tuple[int | str, ...], given: Mapping[str, Any], assignments: Sequence[str]
) -> str | None:
    """Returns the option that set a wrong value in the settings; None if the file set it."""
    at = [str(part) for part in place]
    for assignment in reversed(assignments):
        key = assignment.partition("=")[0].split(".")
        if key[: len(at)] == at[: len(key)]:
            return f"--set {assignment}"
    if at and given.get(at[0]) is not None:
        return f"--{at[0].replace('_', '-')}"
    return None


def first_fault(error: ValidationError, whole: str = "settings") -> str:
    """Returns KEY: what is wrong, and the value if it is short. whole: KEY if several keys
    conflict."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"])) or whole
    value = "" if first["type"] == "missing" else f" (given: {first['input']!r})"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message, value = "no such setting", ""
    return f"{key}: {message}{value if len(value) <= 120 else ''}"


def _assign(values: dict[Any, Any], assignment: str) -> None:
    key, equals, text = assignment.partition("=")
    if not equals:
        raise ValueError(f"--set {assignment}: expected KEY=VALUE")
    *parents, last = key.split(".")
    for parent in parents:
        name = int(parent) if parent.isdecimal() else parent  # the number of a stage
        if values.get(name) is None:
            values[name] = {}
        values = values[name]
        if not isinstance(values, dict):
            raise ValueError(f"--set {assignment}: {parent} has no settings of its own")
    try:
        values[last] = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ValueError(f"--set {assignment}: the value is not YAML") from None
