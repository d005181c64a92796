"""A server over a real index of real files, spoken to by the SDK's client in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from sqmd.config import Config, Paths
from sqmd.mcp_server.app import build_server
from sqmd.service import Service
from tests.sqmd.fakes import FakeEmbedder

LIMIT = 24_000  # bytes of a reply

FILES = {
    "tea.md": "# Tea\n\nGreen tea wants water of eighty degrees.\n\n## Cups\n\nThe blue cup belongs to Ada.\n\n"
    "### Washing\n\nBy hand.\n\n## Pots\n\nThe iron pot.\n",
    "deep/a b%41.md": "# Car\n\nThe automobile is parked behind the house.\n",
    "deep/tea.md": "# Other tea\n\nNothing to see.\n",
}


class Agent:
    """Calls tools, and checks of every reply what holds for all."""

    def __init__(self, client: Client, service: Service, notes: Path) -> None:
        self.client, self.service, self.notes = client, service, notes

    async def raw(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        assert len(text_of(result).encode()) < LIMIT and 'vector":' not in text_of(result)
        return result

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """The structured content of a call that succeeds. The client itself checks it against the output schema."""
        result = await self.raw(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert json.loads(text_of(result)) == result.structured_content
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that is refused."""
        result = await self.raw(tool, **arguments)
        assert result.is_error and result.structured_content is None
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path / "notes"


@pytest.fixture
def service(notes: Path) -> Iterator[Service]:
    """Nothing is indexed yet."""
    config = Config(paths=Paths(watch_dirs=(notes,), db_path=str(notes.parent / "index")))
    service = Service(config, embedder=FakeEmbedder())
    yield service
    service.close()


@pytest.fixture
async def agent(service: Service, notes: Path) -> AsyncIterator[Agent]:
    service.index([notes])
    async with Client(build_server(service, "0")) as client:
        yield Agent(client, service, notes)
