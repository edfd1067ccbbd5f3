"""Settings: a pydantic model, a YAML file that fills it, and options that override the file.

An option has the name, the type and the help of its field.

Settings are checked before work starts.
"""

import re
from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from gaixie.udfs.storage import storage


class Strict(BaseModel):
    """Settings of which every key is known."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class Options(Strict):
    """Options of a command line: the text below a field is the help of its option."""

    model_config = ConfigDict(frozen=True)


Model = TypeVar("Model", bound=BaseModel)


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if (key.tag, f"{key.value}") in seen:
                fault = f"{key.value} stands twice"
                raise yaml.MarkedYAMLError(problem=fault, problem_mark=key.start_mark)
            seen.add((key.tag, f"{key.value}"))
        return node


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
        values = yaml.load(storage.read_bytes(str(path)), _Loader) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        fault = " ".join(str(error).replace('in "<byte string>",', "at").split())
        raise ValueError(f"{path}: not YAML: {fault}") from None
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
        first = error.errors()[0]
        # What settings conflict, the message says.
        places = [first["loc"]] if first["loc"] else [*zip(re.findall(r"\w+", first["msg"]))]
        found = [one for at in places if (one := _culprit(at, given, assignments))]
        raise ValueError(f"{found[0] if found else path}: {first_fault(error)}") from None


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
        values[last] = yaml.load(text, _Loader)
    except yaml.YAMLError:
        raise ValueError(f"--set {assignment}: the value is not YAML") from None


# Options


def add_options(
    parser: ArgumentParser | _ArgumentGroup,
    model: type[BaseModel],
    *fields: str,
    positional: Collection[str] = (),
    leave_out: Collection[str] = (),
    within: str = "",
) -> None:
    """Adds an option for each of these fields of a model; without fields, for all, and one without
    a default is required.

    A field's docstring is its help, its title the metavar. A tuple takes several values, the option
    of a list may be repeated. within: prefix of the names in the parsed arguments, such as
    ``csv.``. Values stay text, which the model checks; an option that is not given is None.
    """
    for name in fields or [name for name in model.model_fields if name not in leave_out]:
        info = model.model_fields[name]
        kinds = _kinds(info.annotation)
        items = [item for kind in kinds for item in _items(kind)]
        default = info.get_default(call_default_factory=True, validated_data={})
        shown = not info.is_required() and default not in (None, False, "", [], ())
        text = " ".join((info.description or "").split()).removesuffix(".")
        default = " ".join(map(str, default)) if isinstance(default, tuple) else default
        given: dict[str, Any] = {"help": text.replace("%", "%%") + f" ({default})" * shown}
        if any(get_origin(kind) is Literal for kind in kinds):
            given["choices"] = [value for kind in kinds for value in get_args(kind)]
        elif bool in kinds:
            given |= {"action": "store_const", "const": True}
        else:
            number = {int, float} & {*kinds, *items}
            given["metavar"] = info.title or ("N" if number else "TEXT")
            if items:
                is_list = any(get_origin(kind) is list for kind in kinds)
                given |= {"action": "append"} if is_list else {"nargs": "+"}
        if name in positional:
            parser.add_argument(within + name, **given | {"metavar": info.title or name.upper()})
        else:
            required = not fields and info.is_required()
            parser.add_argument(_option(name), dest=within + name, required=required, **given)


def add_config(parser: ArgumentParser | _ArgumentGroup, path: object, shown: str) -> None:
    """Adds --config and --set. path: of the shipped settings; shown: their name in the help."""
    parser.add_argument("--config", metavar="YAML", default=str(path), help=f"default {shown}")
    text = "override any setting of the config"
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=text)


def options_of(model: type[Model], args: Namespace, **values: Any) -> Model:
    """Makes settings from the parsed command line and further values.

    Raises ValueError, in one line that names the option.
    """
    given = {name: getattr(args, name, None) for name in model.model_fields}
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return model(**given | values)
    except ValidationError as error:
        name, _, fault = first_fault(error).partition(": ")
        at_one = error.errors()[0]["loc"]
        raise ValueError(f"{_option(name)}: {fault}" if at_one else fault) from None


def _option(name: str) -> str:
    """Returns the option of a field, which may be an item of it, such as runs.1."""
    return f"--{name.partition('.')[0].replace('_', '-')}"


def _kinds(annotation: Any) -> list[Any]:
    """Returns the types that a field may have; None is not one."""
    if get_origin(annotation) in (Union, UnionType):
        return [kind for part in get_args(annotation) for kind in _kinds(part)]
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    return [] if annotation is type(None) else [annotation]


def _items(kind: Any) -> list[Any]:
    """Returns the types of the items if a type is a list or tuple."""
    if get_origin(kind) not in (list, tuple):
        return []
    return [item for part in get_args(kind) if part is not ... for item in _kinds(part)]
