"""Whatever keeps the vault shut, the server answers, says what to do, and works as soon as it is right."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from squirrel_mcp.errors import ConfigurationError
from squirrel_mcp.mcp_server.app import build_server
from squirrel_mcp.mcp_server.notices import Notices
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.service import MemoryService
from squirrel_mcp.settings import Settings

from ..conftest import CHEAP, PASSPHRASE, OpenVault
from .conftest import Agent, text_of

pytestmark = pytest.mark.anyio

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_context", {}),
    ("search_memory", {"query": "tea"}),
    ("save_memory", {"text": "tea"}),
    ("update_memory", {"id": "0" * 32, "text": "tea"}),
    ("forget_memory", {"id": "0" * 32}),
    ("get_memory", {"id": "0" * 32}),
    ("list_memories", {}),
]
Serving = Callable[..., AbstractAsyncContextManager[Agent]]


@pytest.fixture
def serving(settings: Settings) -> Iterator[Serving]:
    services: list[MemoryService] = []

    @asynccontextmanager
    async def serve(unlock: Unlocker | None = None, deadline: float = 40, **changes: Any) -> AsyncIterator[Agent]:
        service = MemoryService(replace(settings, **changes), unlock=unlock, parameters=CHEAP)
        services.append(service)
        async with Client(build_server(lambda: service, Notices(), deadline=deadline)) as client:
            yield Agent(client)

    yield serve
    for service in services:
        service.close()


@pytest.mark.parametrize(
    ("changes", "code", "advice"),
    [
        ({"passphrase": "another passphrase"}, "wrong_passphrase", "Put the right passphrase"),
        ({"passphrase": None}, "passphrase_missing", "SQUIRREL_PASSPHRASE"),
        ({"passphrase": "${SQUIRREL_PASSPHRASE}"}, "passphrase_refused", "placeholder"),
        ({"passphrase": ""}, "passphrase_refused", "empty"),
    ],
)
async def test_every_tool_says_what_is_wrong_and_what_to_do(
    serving: Serving, open_vault: OpenVault, changes: dict[str, Any], code: str, advice: str
) -> None:
    open_vault()
    async with serving(**changes) as agent:
        assert len((await agent.client.list_tools()).tools) == 8
        for tool, arguments in CALLS:
            text = await agent.refused(tool, **arguments)
            assert advice in text and text.endswith(f"({code})")
            assert "another passphrase" not in text
        status = await agent("memory_status")
        assert status["unlocked"] is False
        assert status["problem"]["code"] == code
        assert advice in status["problem"]["message"] + status["problem"]["whatToDo"]


@pytest.mark.parametrize("passphrase", ["too short", "${SQUIRREL_PASSPHRASE}"])
async def test_nothing_is_written_for_a_passphrase_that_is_refused(
    serving: Serving, settings: Settings, passphrase: str
) -> None:
    async with serving(passphrase=passphrase) as agent:
        assert (await agent.refused("save_memory", text="tea")).endswith("(passphrase_refused)")
    assert not settings.vault_path.exists()


async def test_it_works_as_soon_as_the_passphrase_is_right(serving: Serving, tmp_path: Path) -> None:
    file = tmp_path / "passphrase"
    async with serving(passphrase=None, passphrase_file=file) as agent:
        assert (await agent.refused("save_memory", text="tea")).endswith("(passphrase_missing)")
        file.write_text(PASSPHRASE)
        assert (await agent("save_memory", text="tea"))["status"] == "saved"


async def test_a_file_that_is_no_vault_is_told_and_left_alone(serving: Serving, settings: Settings) -> None:
    settings.data_dir.mkdir(mode=0o700)
    settings.vault_path.write_bytes(b"not a database at all" * 1_000)
    settings.vault_path.chmod(0o600)
    before = settings.vault_path.read_bytes()
    async with serving() as agent:
        assert "backup" in await agent.refused("get_context")
        assert (await agent("memory_status"))["unlocked"] is False
    assert settings.vault_path.read_bytes() == before


async def test_a_vault_that_vanished_is_told_and_not_made_anew(
    serving: Serving, settings: Settings, open_vault: OpenVault
) -> None:
    open_vault().close()
    for file in settings.data_dir.glob("vault.db*"):
        file.unlink()
    async with serving() as agent:
        assert (await agent.refused("save_memory", text="tea")).endswith("(vault_missing)")
    assert not settings.vault_path.exists()


async def test_settings_that_cannot_be_used_are_told_by_every_tool() -> None:
    def no_service() -> MemoryService:
        raise ConfigurationError("SQUIRREL_DATA_DIR must be an absolute path.")

    async with Client(build_server(no_service, Notices())) as client:
        agent = Agent(client)
        for tool, arguments in CALLS:
            assert (await agent.refused(tool, **arguments)).startswith("SQUIRREL_DATA_DIR must be an absolute path.")
        status = await agent("memory_status")
        assert (status["unlocked"], status["problem"]["code"]) == (False, "configuration")


async def test_the_passphrase_is_asked_for_once_per_opening(serving: Serving) -> None:
    asked: list[str] = []

    def source() -> str:
        asked.append("once")
        return PASSPHRASE

    async with serving(unlock=Unlocker(source)) as agent:
        await agent("save_memory", text="tea")
        await agent("get_context")
    assert asked == ["once"]


class Gate:
    """A passphrase that somebody has to let through."""

    def __init__(self) -> None:
        self.opened, self.asked = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.asked.set()
        assert self.opened.wait(60)
        return PASSPHRASE


async def test_a_call_ends_at_its_deadline_and_later_ones_work(serving: Serving) -> None:
    gate = Gate()
    async with serving(unlock=Unlocker(gate), deadline=0.05) as agent:
        text = await agent.refused("search_memory", query="tea")
        assert "did not answer in time" in text and text.endswith("(store_unavailable)")
        assert "look before you repeat it" in await agent.refused("save_memory", text="tea")
        gate.opened.set()
    async with serving() as agent:
        assert (await agent("save_memory", text="tea"))["id"]


async def test_bad_arguments_and_lists_are_answered_while_the_vault_opens(serving: Serving) -> None:
    gate = Gate()
    async with serving(unlock=Unlocker(gate)) as agent, anyio.create_task_group() as tasks:

        async def search() -> None:
            await agent("search_memory", query="tea")

        tasks.start_soon(search)
        await anyio.to_thread.run_sync(gate.asked.wait)
        assert len((await agent.client.list_tools()).tools) == 8
        assert "limit" in await agent.refused("search_memory", query="tea", limit="many")
        gate.opened.set()


async def test_an_error_nobody_thought_of_is_told_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> MemoryService:
        raise ValueError("a canary that must not be told")

    async with Client(build_server(broken, Notices())) as client:
        text = text_of(await client.call_tool("get_context", {}))
    assert "ValueError" in text
    assert "canary" not in text + caplog.text
    assert "ValueError at test_locked.py" in caplog.text
