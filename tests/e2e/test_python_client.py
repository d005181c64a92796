"""A whole day of use through the SDK's client and a real process, in both revisions of the protocol."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import TextContent, TextResourceContents

from .conftest import PASSPHRASE
from .server_process import SERVE, environment

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_a_day_of_use(data_dir: Path, mode: Literal["legacy", "auto"], revision: str) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", SERVE],
        env=environment(data_dir, SQUIRREL_PASSPHRASE=PASSPHRASE),
        cwd=data_dir.parent,
    )
    async with Client(server, mode=mode) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            (block,) = result.content
            assert isinstance(block, TextContent) and not result.is_error, block
            assert json.loads(block.text) == result.structured_content
            return result.structured_content

        assert client.protocol_version == revision
        assert client.instructions and "get_context" in client.instructions
        assert len((await client.list_tools()).tools) == 8
        assert (await call("get_context"))["groups"] == []
        old = await call("save_memory", text="The router is 10.0.7.1", entity="router", tags=["home"])
        new = await call("save_memory", text="The router is 10.0.9.1", entity="router", tags=["home"])
        assert [each["id"] for each in new["similar"]] == [old["id"]]
        assert (await call("forget_memory", id=new["id"]))["status"] == "forgotten"
        corrected = await call("update_memory", id=old["id"], text="The router is 10.0.9.1", reason="moved")
        assert corrected["revision"] == 2
        (hit,) = (await call("search_memory", query="router", tags=["home"]))["hits"]
        assert (hit["text"], hit["semanticScore"]) == ("The router is 10.0.9.1", None)
        history = (await call("get_memory", id=old["id"], history=True))["history"]
        assert [each["text"] for each in history] == ["The router is 10.0.7.1"]
        assert (await call("list_memories"))["total"] == (await call("memory_status"))["total"] == 1

        (contents,) = (await client.read_resource(f"memory://{old['id']}")).contents
        assert isinstance(contents, TextResourceContents)
        assert json.loads(contents.text)["revision"] == 2
        with pytest.raises(MCPError, match="no memory with this id"):
            await client.read_resource("memory://" + "0" * 32)
        assert len((await client.list_prompts()).prompts) == 2
        refused = await client.call_tool("save_memory", {"text": "a", "tags": [42]})
        assert refused.is_error and isinstance(refused.content[0], TextContent)
        assert refused.content[0].text.startswith("tags must be a list of strings")
