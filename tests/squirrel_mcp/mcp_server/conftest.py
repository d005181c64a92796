"""A server over a real service and a real vault file, spoken to by the SDK's client in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from squirrel_mcp.mcp_server.app import build_server
from squirrel_mcp.mcp_server.notices import Notices
from squirrel_mcp.service import MemoryService
from squirrel_mcp.settings import Settings

from ..conftest import CHEAP, Clock


class Agent:
    """Calls tools, and checks of every reply what holds for all."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def raw(self, tool: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """The structured content of a call that succeeds. The client itself checks it against the output schema."""
        result = await self.raw(tool, **arguments)
        text = text_of(result)
        assert not result.is_error, text
        assert json.loads(text) == result.structured_content
        assert "\n" not in text
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that is refused."""
        result = await self.raw(tool, **arguments)
        assert result.is_error
        assert result.structured_content is None
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.fixture
def service(settings: Settings, clock: Clock) -> Iterator[MemoryService]:
    service = MemoryService(settings, clock=clock, parameters=CHEAP)
    yield service
    service.close()


@pytest.fixture
async def agent(service: MemoryService) -> AsyncIterator[Agent]:
    async with Client(build_server(lambda: service, Notices())) as client:
        yield Agent(client)
