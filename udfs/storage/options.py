"""Options of a command line that are fields of a settings model: name, type and help stand there."""

from __future__ import annotations

from argparse import ArgumentParser, _ArgumentGroup
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel


def add_options(
    parser: ArgumentParser | _ArgumentGroup,
    model: type[BaseModel],
    *fields: str,
    within: str = "",
    **renamed: str,
) -> None:
    """Adds an option for each of a model's fields; its help is the field's docstring.

    renamed: options whose names are not those of their fields. within: what stands before the
    fields' names in the parsed arguments, such as ``llm.``. Values stay text, which the model
    checks; an option that is not given is None.
    """
    for option, field in {**{name: name for name in fields}, **renamed}.items():
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
        parser.add_argument(f"--{option.replace('_', '-')}", **given)


def add_config(parser: ArgumentParser | _ArgumentGroup, path: object, shown: str) -> None:
    """Adds --config and --set. path: of the settings that ship; shown: what help calls them."""
    parser.add_argument("--config", metavar="YAML", default=str(path), help=f"default {shown}")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="any setting of the config"
    )


def _kinds(annotation: Any) -> list[Any]:
    """Returns the types that a field may have; None is not one."""
    if get_origin(annotation) in (Union, UnionType):
        return [kind for part in get_args(annotation) for kind in _kinds(part)]
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    return [] if annotation is type(None) else [annotation]


def _items(kinds: list[Any]) -> list[Any]:
    """Returns the types of the items where a field holds a list."""
    lists = [kind for kind in kinds if get_origin(kind) in (list, tuple)]
    return [kind for one in lists for item in get_args(one) for kind in _kinds(item)]
