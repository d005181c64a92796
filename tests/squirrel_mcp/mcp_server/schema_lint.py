"""What breaks some client or other when it stands in a tool list; each rule was a public bug report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_NAME = 25  # ours; Cursor drops server + tool over 60 characters, others refuse prefix + tool over 64
MAX_DESCRIPTION = 1_024
PREFIX = "mcp__squirrel__"
_REFUSED_WORDS = {
    "$ref": "Gemini and LM Studio do not follow references",
    "$defs": "Gemini and LM Studio do not follow references",
    "definitions": "Gemini and LM Studio do not follow references",
    "anyOf": "Gemini refuses unions, the Anthropic API those at the top",
    "oneOf": "Gemini refuses unions, the Anthropic API those at the top",
    "allOf": "the Anthropic API refuses it at the top",
    "not": "no client promises it",
    "const": "Gemini refuses it",
    "format": "Ajv warns of formats that it does not know",
}
_TYPES = {"string", "integer", "number", "boolean", "array", "object"}


def lint(tool: dict[str, Any]) -> list[str]:
    """What is wrong with a tool as it stands on the wire; [] for one that every client takes."""
    name = tool["name"]
    found = []
    if len(name) > MAX_NAME or len(PREFIX + name) > 60:
        found.append(f"{name}: the name is too long")
    if not name.isascii() or not name.replace("_", "").isalnum():
        found.append(f"{name}: letters, digits and underscores only")
    if not 0 < len(tool.get("description", "")) < MAX_DESCRIPTION:
        found.append(f"{name}: the description is missing or too long")
    if "outputSchema" not in tool:
        found.append(f"{name}: there is no outputSchema for its structured content")
    for part in ("inputSchema", "outputSchema"):
        schema = tool.get(part, {"type": "object"})
        if schema.get("type") != "object":
            found.append(f"{name}.{part}: is no object, and the TypeScript SDK refuses the whole list")
        found += [f"{name}.{part}{fault}" for fault in _faults(schema, "")]
    return found


def _faults(schema: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{path}: {schema!r} is no schema object"
        return
    for word in _REFUSED_WORDS.keys() & schema.keys():
        yield f"{path}: {word}: {_REFUSED_WORDS[word]}"
    kind = schema.get("type")
    if isinstance(kind, list):
        yield f"{path}: a list of types, which Copilot's command line refuses"
    elif kind not in _TYPES:
        yield f"{path}: no type, which Gemini's command line refuses"
    if len(schema.get("description", "")) >= MAX_DESCRIPTION:
        yield f"{path}: the description is too long"
    if kind == "array":
        if "items" not in schema:
            yield f"{path}: an array without items, which VS Code and OpenAI refuse"
        else:
            yield from _faults(schema["items"], f"{path}[]")
    for name, property_schema in schema.get("properties", {}).items():
        yield from _faults(property_schema, f"{path}.{name}")
    for name in set(schema.get("required", ())) - schema.get("properties", {}).keys():
        yield f"{path}: {name} is required and not declared"
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _faults(schema["additionalProperties"], f"{path}.*")
