"""What breaks some client or other when it stands in a tool list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_REFUSED = ("$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf", "not", "const", "format")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")


def lint(tool: dict[str, Any]) -> list[str]:
    """What is wrong with a tool as it stands on the wire; [] for one that every client takes."""
    found = []
    if len(tool["name"]) > 25 or not tool["name"].replace("_", "").isalnum():
        found.append("the name is too long, or holds more than letters and underscores")
    if not 0 < len(tool.get("description", "")) < 1_024:
        found.append("the description is missing or too long")
    for part in ("inputSchema", "outputSchema"):
        if tool.get(part, {}).get("type") != "object":
            found.append(f"{part} is no object")
        found += _faults(tool.get(part), part)
    return found


def _faults(schema: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{path} is no schema"
        return
    yield from (f"{path} has {word}" for word in _REFUSED if word in schema)
    if schema.get("type") not in _TYPES:
        yield f"{path} has no single type"
    if len(schema.get("description", "")) >= 1_024:
        yield f"{path} has too long a description"
    if schema.get("type") == "array":
        yield from _faults(schema.get("items"), f"{path}[]")
    properties = schema.get("properties", {})
    for name, each in properties.items():
        yield from _faults(each, f"{path}.{name}")
    undeclared = [name for name in schema.get("required", ()) if name not in properties]
    yield from (f"{path}.{name} is required and not declared" for name in undeclared)
