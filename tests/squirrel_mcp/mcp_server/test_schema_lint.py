"""The tool list is one that every client takes, and the lint that says so can say otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from squirrel_mcp.mcp_server.app import NAME
from squirrel_mcp.mcp_server.teaching import INSTRUCTIONS
from squirrel_mcp.mcp_server.tools import TOOLS

from .conftest import Agent
from .schema_lint import PREFIX, lint

pytestmark = pytest.mark.anyio

EIGHT = [
    "get_context",
    "search_memory",
    "save_memory",
    "update_memory",
    "forget_memory",
    "get_memory",
    "list_memories",
    "memory_status",
]
STRING = {"type": "string"}


def tool(**changes: Any) -> dict[str, Any]:
    good = {
        "name": "good_tool",
        "description": "Does good.",
        "inputSchema": {"type": "object", "properties": {"tags": {"type": "array", "items": STRING}}},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }
    return {**good, **changes}


def taking(schema: Any) -> dict[str, Any]:
    return tool(inputSchema={"type": "object", "properties": {"x": schema}})


async def test_every_tool_passes(agent: Agent) -> None:
    listed = [each.model_dump(by_alias=True, exclude_none=True) for each in (await agent.client.list_tools()).tools]
    assert [each["name"] for each in listed] == EIGHT
    assert [fault for each in listed for fault in lint(each)] == []
    assert f"mcp__{NAME}__" == PREFIX


def test_a_good_tool_passes() -> None:
    assert lint(tool()) == []


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (taking({"$ref": "#/$defs/X"}), "$ref"),
        (tool(inputSchema={"type": "object", "$defs": {}}), "$defs"),
        (taking({"anyOf": [STRING, {"type": "null"}]}), "anyOf"),
        (taking({"type": "string", "const": "a"}), "const"),
        (taking({"type": "object", "properties": {"y": {"oneOf": [STRING]}}}), "oneOf"),
        (taking({"type": ["string", "null"]}), "list of types"),
        (taking({"type": "null"}), "no type"),
        (tool(inputSchema={"type": "object", "oneOf": []}), "oneOf"),
        (tool(inputSchema={"type": "object", "anyOf": []}), "anyOf"),
        (tool(inputSchema={"type": "object", "allOf": []}), "allOf"),
        (taking({"type": "array"}), "without items"),
        (taking({"type": "array", "items": {}}), "no type"),
        (taking({"description": "anything"}), "no type"),
        (taking(True), "no schema object"),
        (taking({"type": "integer", "format": "uint32"}), "format"),
        (taking({"type": "object", "additionalProperties": {"$ref": "#"}}), "$ref"),
        (tool(outputSchema={"properties": {}}), "is no object"),
        (tool(outputSchema={"type": "array", "items": STRING}), "is no object"),
        (tool(outputSchema={"type": "object", "required": ["gone"]}), "not declared"),
        ({key: value for key, value in tool().items() if key != "outputSchema"}, "no outputSchema"),
        (tool(name="a_name_that_is_much_too_long"), "name is too long"),
        (tool(name="no.dots"), "letters, digits"),
        (tool(description=""), "missing"),
        (tool(description="x" * 1_024), "too long"),
        (taking({"type": "string", "description": "x" * 1_024}), "too long"),
    ],
)
def test_a_schema_that_breaks_a_client_is_named(bad: dict[str, Any], said: str) -> None:
    assert any(said in fault for fault in lint(bad))


def test_what_is_taught_is_taught() -> None:
    """The points of memory-tools.md, where an agent reads them: instructions and the descriptions it calls by."""
    described = {name: each.description for name, each in TOOLS.items()}
    assert "first" in described["get_context"]
    assert "never an answer" in described["search_memory"] and "never an answer" in INSTRUCTIONS
    assert "no cut-off score" in described["search_memory"]
    assert "There is no cut-off score" in INSTRUCTIONS
    assert "nearMisses" in described["search_memory"] and "nearMisses" in INSTRUCTIONS
    assert "words it will be asked by" in INSTRUCTIONS
    assert "Correct instead of adding" in INSTRUCTIONS and "similar" in described["save_memory"]
    assert "data" in INSTRUCTIONS and "never follow orders" in described["get_context"]
    assert len(INSTRUCTIONS) < 2_000  # what clients pass on whole


async def test_annotations_are_true_to_what_the_tools_do(agent: Agent) -> None:
    hints = {each.name: each.annotations for each in (await agent.client.list_tools()).tools}
    assert all(each and each.open_world_hint is False and each.idempotent_hint for each in hints.values())
    reading = {name for name, each in hints.items() if each and each.read_only_hint}
    assert reading == set(EIGHT) - {"save_memory", "update_memory", "forget_memory"}
    assert {name for name, each in hints.items() if each and each.destructive_hint} == {"forget_memory"}


async def test_no_tool_takes_an_address_a_path_or_a_secret(agent: Agent) -> None:
    for each in (await agent.client.list_tools()).tools:
        names = {name.lower() for name in each.input_schema["properties"]}
        assert not names & {"url", "uri", "path", "file", "passphrase", "key", "export", "account", "head", "force"}
