"""Makes command-line options from the fields of a settings model: name, type and help."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Collection
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gaixie.udfs.storage.settings import first_fault


def add_options(
    parser: ArgumentParser | _ArgumentGroup,
    model: type[BaseModel],
    *fields: str,
    within: str = "",
) -> None:
    """Adds an option for each of a model's fields; its help is the field's docstring.

    within: prefix of the fields' names in the parsed arguments, such as ``csv.``. Values stay text,
    which the model checks; an option that is not given is None.
    """
    for field in fields:
        info = model.model_fields[field]
        kinds = _kinds(info.annotation)
        given: dict[str, Any] = {
            "dest": within + field,
            "help": (info.description or "").replace("%", "%%"),
        }
        if any(get_origin(kind) is Literal for kind in kinds):
            given["choices"] = [value for kind in kinds for value in get_args(kind)]
        elif bool in kinds:
            given |= {"action": "store_const", "const": True}
        else:
            given["metavar"] = "N" if {int, float} & {*kinds, *_items(kinds)} else "TEXT"
            if _items(kinds):
                given["nargs"] = "+"
        parser.add_argument(f"--{field.replace('_', '-')}", **given)


Settings = TypeVar("Settings")
METAVARS = {int: "N", float: "X", str: "NAME", Path: "FOLDER"}


def add_command(
    parser: Any, settings: type, positional: Collection[str] = (), leave_out: Collection[str] = ()
) -> None:
    """Adds an option for each field of a pydantic model or dataclass, with type and default.

    A field's docstring is its help and its title the metavar; a list option may be repeated.
    options_of makes the settings from the parsed arguments.
    """
    for name, field in settings.__pydantic_fields__.items():  # type: ignore[attr-defined]
        if name in leave_out:
            continue
        [kind] = _kinds(field.annotation)
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        shown = kind is not bool and default not in (None, [])
        help_text = " ".join((field.description or "").split()).removesuffix(".")
        if get_origin(kind) is list:
            own: dict[str, Any] = {"action": "append", "metavar": field.title}
        elif get_origin(kind) is Literal:
            own = {"choices": get_args(kind)}
        elif kind is bool:
            own = {"action": "store_true"}
        else:
            own = {"type": kind, "metavar": field.title or METAVARS[kind]}
        own["help"] = help_text.replace("%", "%%") + " (%(default)s)" * shown
        if name in positional:
            parser.add_argument(name, **own | {"metavar": field.title or name.upper()})
        else:
            own |= {"default": default, "required": field.is_required(), "dest": name}
            parser.add_argument(_option(name), **own)


def _option(name: str) -> str:
    """Returns a field's option; a field that would be a Python keyword ends in an underscore."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def options_of(settings: type[Settings], args: Namespace, **values: Any) -> Settings:
    """Makes settings from the parsed command line and further values.

    Raises ValueError, in one line that names the option.
    """
    names = settings.__pydantic_fields__  # type: ignore[attr-defined]
    given = {name: value for name, value in vars(args).items() if name in names}
    try:
        return settings(**given | values)
    except ValidationError as error:
        name, _, fault = first_fault(error).partition(": ")
        at_one = error.errors()[0]["loc"]
        raise ValueError(f"{_option(name)}: {fault}" if at_one else fault) from None


def add_config(parser: ArgumentParser | _ArgumentGroup, path: object, shown: str) -> None:
    """Adds --config and --set. path: of the shipped settings; shown: their name in the help."""
    parser.add_argument("--config", metavar="YAML", default=str(path), help=f"default {shown}")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override any setting of the config",
    )


def _kinds(annotation: Any) -> list[Any]:
    """Returns the types that a field may have; None is not one."""
    if get_origin(annotation) in (Union, UnionType):
        return [kind for part in get_args(annotation) for kind in _kinds(part)]
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    return [] if annotation is type(None) else [annotation]


def _items(kinds: list[Any]) -> list[Any]:
    """Returns the types of the items if a field holds a list."""
    lists = [kind for kind in kinds if get_origin(kind) in (list, tuple)]
    return [kind for one in lists for item in get_args(one) for kind in _kinds(item)]
