"""Documents as resources: those of the index and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import MCPError

from sqmd.errors import NotInIndex
from sqmd.mcp_server.documents import path_of, uri_of

from .conftest import Agent

pytestmark = pytest.mark.anyio


async def test_every_document_is_listed_and_can_be_read_at_its_address(agent: Agent) -> None:
    (agent.notes / "50% off? #1 ü.md").write_text("# Sale\n\nToday.\n", "utf-8")
    (agent.notes / "bad.md").write_bytes(b"caf\xe9")
    agent.service.index([agent.notes])
    listed = (await agent.client.list_resources()).resources
    assert len(listed) == 4
    for each in listed:
        (content,) = (await agent.client.read_resource(each.uri)).contents
        assert content.mime_type == "text/markdown" and content.uri == each.uri
        assert content.model_dump()["text"] == Path(path_of(each.uri)).read_text("utf-8")


async def test_a_space_may_be_encoded_or_not(agent: Agent) -> None:
    for name in ("a%20b%2541.md", "a b%2541.md"):
        (content,) = (await agent.client.read_resource(f"md://{agent.notes}/deep/{name}")).contents
        assert "automobile" in content.model_dump()["text"]


async def test_nothing_else_is_read(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n", "utf-8")
    (agent.notes / "late.md").write_text("# Not indexed yet\n", "utf-8")
    for uri in (
        "md:///etc/hostname",
        f"md://{tmp_path}/secret.md",
        f"md://{agent.notes}/../secret.md",
        f"md://{agent.notes}/%2e%2e/secret.md",
        f"md://{agent.notes}/late.md",
        f"md://{agent.notes}",
        f"file://{agent.notes}/tea.md",
        f"md:{agent.notes}/tea.md",
        "md://tea.md",
        "md://%00",
        "md:///%ff%fe.md",
        "",
    ):
        with pytest.raises(MCPError) as refused:
            await agent.client.read_resource(uri)
        assert refused.value.code == -32602 and "Secret" not in str(refused.value)


async def test_a_link_that_takes_a_documents_place_is_not_followed_out_of_the_index(
    agent: Agent, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n", "utf-8")
    (agent.notes / "tea.md").unlink()
    (agent.notes / "tea.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(MCPError):
        await agent.client.read_resource(f"md://{agent.notes}/tea.md")


async def test_a_document_that_is_too_long_names_the_tool_that_gives_parts(agent: Agent) -> None:
    (agent.notes / "long.md").write_text("# Long\n\n" + "word\n" * 100_000, "utf-8")
    agent.service.index([agent.notes / "long.md"])
    with pytest.raises(MCPError, match="get_document"):
        await agent.client.read_resource(f"md://{agent.notes}/long.md")


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_an_address_leads_back_to_its_path(name: str) -> None:
    path = f"/notes/{name}"
    uri = uri_of(path)
    assert uri.isascii() and Path(path_of(uri)) == Path(path)


@pytest.mark.parametrize("uri", ["md://", "md://relative.md", "md:///\ud800", "http:///x", "MD:///x"])
def test_what_is_no_address_of_a_file_is_refused(uri: str) -> None:
    with pytest.raises(NotInIndex):
        path_of(uri)
