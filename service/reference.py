"""Serves GET /docs: the OpenAPI schema of a service as one page without scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gaixie.udfs.reports import render

TEMPLATE = Path(__file__).with_name("reference.html.j2")


def reference(schema: dict[str, Any]) -> str:
    """Returns the page for an OpenAPI schema."""
    models = schema.get("components", {}).get("schemas", {})
    calls = [
        {
            "method": method.upper(),
            "path": path,
            "what": own.get("description") or own.get("summary", ""),
            "parameters": [
                _row(one["name"], one["schema"] | {"description": one.get("description", "")}, one)
                for one in own.get("parameters", ())
            ],
            "body": _fields(_content(own.get("requestBody", {})), models),
            "answer": _fields(_content(own["responses"].get("200", {})), models),
            "example": _example(_content(own.get("requestBody", {})), models),
        }
        for path, methods in schema["paths"].items()
        for method, own in methods.items()
    ]
    return render(TEMPLATE, info=schema["info"], calls=calls)


def _content(own: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a JSON body; {} for any other body."""
    return dict(own.get("content", {}).get("application/json", {}).get("schema", {}))


def _resolved(schema: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    """Resolves references and optional parts of a schema; for an array, returns its items."""
    while True:
        options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        if "$ref" in schema:
            schema = models[schema["$ref"].rpartition("/")[2]]
        elif options:
            schema = options[0]
        elif schema.get("type") == "array":
            schema = schema["items"]
        else:
            return schema


def _fields(
    schema: dict[str, Any], models: dict[str, Any], within: str = ""
) -> list[tuple[str, ...]]:
    """Returns (name, type and range, description) of each field, and of those inside."""
    found = []
    own = _resolved(schema, models)
    for name, field in own.get("properties", {}).items():
        found.append(_row(within + name, field, {"required": name in own.get("required", ())}))
        found += _fields(field, models, f"{within}{name}.")
    return found


def _row(name: str, field: dict[str, Any], place: dict[str, Any]) -> tuple[str, ...]:
    own = next((one for one in field.get("anyOf", ()) if one.get("type") != "null"), field)
    own = own | {key: value for key, value in field.items() if key != "anyOf"}
    if "enum" in own:
        kind = " | ".join(map(str, own["enum"]))
    else:
        kind = own.get("type", "object")
    low, high = own.get("minimum"), own.get("maximum", own.get("exclusiveMaximum"))
    if low is not None or high is not None:
        kind += f", {'' if low is None else low} to {'' if high is None else high}".rstrip()
    if own.get("default") is not None:
        kind += f", default {json.dumps(own['default'])}"
    return name, kind + ("" if place.get("required") else ", optional"), own.get("description", "")


def _example(schema: dict[str, Any], models: dict[str, Any]) -> str:
    """Returns a body of the required fields' examples; empty if one has no example."""
    own = _resolved(schema, models)
    given: dict[str, Any] = {}
    for name, field in own.get("properties", {}).items():
        inner = _resolved(field, models)
        if field.get("examples") or inner.get("examples"):
            given[name] = (field.get("examples") or inner["examples"])[0]
        elif (
            field.get("type") == "array"
            and "properties" in inner
            and (one := _example(field, models))
        ):
            given[name] = [json.loads(one)]
    if not given or {*own.get("required", ())} - {*given}:
        return ""
    return json.dumps(given, ensure_ascii=False)
