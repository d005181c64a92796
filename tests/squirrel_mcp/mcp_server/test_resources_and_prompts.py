"""Resources and prompts say the same as the tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import INVALID_PARAMS, TextContent, TextResourceContents

from .conftest import Agent

pytestmark = pytest.mark.anyio


async def read(agent: Agent, uri: str) -> Any:
    (contents,) = (await agent.client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    assert contents.mime_type == "application/json"
    return json.loads(contents.text)


async def test_the_context_and_each_memory_are_resources(agent: Agent) -> None:
    saved = await agent("save_memory", text="likes tea")
    await agent("get_context")  # the note about the recovery code is said once
    assert await read(agent, "memory://context") == await agent("get_context")
    assert await read(agent, f"memory://{saved['id']}") == await agent("get_memory", id=saved["id"])
    assert [str(each.uri) for each in (await agent.client.list_resources()).resources] == ["memory://context"]
    (template,) = (await agent.client.list_resource_templates()).resource_templates
    assert template.uri_template == "memory://{id}"


@pytest.mark.parametrize("uri", ["memory://" + "0" * 32, "memory://", "memory://x/../context", "file:///etc/passwd"])
async def test_a_resource_that_is_not_there_is_named(agent: Agent, uri: str) -> None:
    with pytest.raises(MCPError) as failed:
        await agent.client.read_resource(uri)
    assert failed.value.error.code == INVALID_PARAMS
    assert failed.value.error.data == {"uri": uri}


@pytest.mark.parametrize(("prompt", "argument"), [("recall", "topic"), ("remember", "what")])
async def test_a_prompt_takes_its_argument_or_none(agent: Agent, prompt: str, argument: str) -> None:
    for arguments in (None, {argument: "the cellar"}):
        (message,) = (await agent.client.get_prompt(prompt, arguments)).messages
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        assert ("the cellar" in message.content.text) is (arguments is not None)
    names = {
        each.name: [each.name for each in each.arguments or ()] for each in (await agent.client.list_prompts()).prompts
    }
    assert names[prompt] == [argument]


async def test_an_unknown_prompt_is_refused(agent: Agent) -> None:
    with pytest.raises(MCPError, match="no prompt of this name"):
        await agent.client.get_prompt("jailbreak")
