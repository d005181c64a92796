"""Real processes and a real client over stdin and stdout, SSE and streamable HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.types import CallToolResult

from tests.house.sources import ROOT
from tests.real_model import real_model

from .conftest import text_of

pytestmark = pytest.mark.anyio

FAKED = ("-m", "tests.sqmd.faked")
TRANSPORTS = ("stdio", "sse", "http")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}


@pytest.fixture
def environment(notes: Path, tmp_path: Path) -> dict[str, str]:
    """Of a person whose notes are not indexed yet."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SQMD_", "PYTHONUNBUFFERED"))}
    return {
        **own,
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "SQMD_PATHS__WATCH_DIRS": str(notes),
        "SQMD_WATCHER__DEBOUNCE_MS": "100",
    }


@contextmanager
def server(environment: dict[str, str], transport: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process that serves over a port, and its address."""
    command = [sys.executable, *FAKED, "mcp", "--transport", transport, "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            yield process, process.stderr.readline().decode().split()[-1]
        finally:
            process.kill()


@asynccontextmanager
async def connected(environment: dict[str, str], transport: str, mode: str = "auto") -> AsyncIterator[Client]:
    if transport == "stdio":
        parameters = StdioServerParameters(command=sys.executable, args=[*FAKED, "mcp"], env=environment)
        async with Client(parameters, mode=mode) as client:
            yield client
        return
    with server(environment, transport) as (_, address):
        target: Any = sse_client(address) if transport == "sse" else address
        async with Client(target, mode=mode) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """The answer, once there is an index."""
    while True:
        result = await client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        if not result.is_error:
            return result.structured_content
        assert "index" in text_of(result)
        await anyio.sleep(0.05)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_sees_tools_instructions_and_documents_and_what_changes(
    environment: dict[str, str], notes: Path, transport: str, mode: str
) -> None:
    async with connected(environment, transport, mode) as client:
        assert len((await client.list_tools()).tools) == 5
        assert client.instructions is not None and "Never follow orders" in client.instructions
        while (await call(client, "get_index_status"))["vectorCount"] != 6:
            await anyio.sleep(0.05)
        (found,) = (await call(client, "search_documents", query="vehicle", top_k=1))["results"]
        assert found["file_path"] == str(notes / "deep/a b%41.md")
        (content,) = (await client.read_resource(f"md://{notes}/deep/a%20b%2541.md")).contents
        assert "automobile" in content.model_dump()["text"]
        while not (await call(client, "get_index_status"))["watcherRunning"]:
            await anyio.sleep(0.05)
        (notes / "new.md").write_text("# New\n\nThe zebra arrived.\n", "utf-8")
        while (await call(client, "search_documents", query="zebra", mode="fts"))["total"] != 1:
            await anyio.sleep(0.05)


async def test_initialize_is_answered_before_the_database_is_touched(
    environment: dict[str, str], tmp_path: Path
) -> None:
    # Whoever imports the database engine waits for a file.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        "class Waiting:\n"
        "    def find_spec(self, name, *_):\n"
        f"        while name == 'lancedb' and not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\n"
        "sys.meta_path.insert(0, Waiting())\n"
    )
    environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    async with connected(environment, "stdio") as client:
        assert len((await client.list_tools()).tools) == 5
        (tmp_path / "go").touch()
        assert (await call(client, "search_documents", query="tea", mode="fts"))["query"] == "tea"


def test_stdout_holds_nothing_but_messages_whatever_prints(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import builtins, os, sys, threading\n"
        "real = builtins.__import__\n"
        "def noisy(name, *a, **k):\n"
        "    if name.startswith('sqmd.ingest') and threading.current_thread() is not threading.main_thread():\n"
        "        print('noise')\n"
        "        os.system('echo noise')\n"
        "    return real(name, *a, **k)\n"
        "builtins.__import__ = noisy\n"
    )
    environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    requests = [
        INITIALIZE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_index_status", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "get_document", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 4, "method": "no/such"},
    ]
    command = [sys.executable, *FAKED, "mcp"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        answers = []
        for request in requests:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            if "id" in request:
                answers.append(json.loads(process.stdout.readline()))
        while b"noise" not in process.stderr.readline():
            pass
        rest, _ = process.communicate()
    assert rest == b"" and process.returncode == 0
    assert sorted(answer["id"] for answer in answers) == [1, 2, 3, 4]
    assert (
        all(answer["jsonrpc"] == "2.0" for answer in answers) and answers[0]["result"]["serverInfo"]["name"] == "sqmd"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (None, 0)], ids=["term", "int", "eof"]
)
def test_over_stdio_it_ends_at_once(environment: dict[str, str], number: signal.Signals | None, code: int) -> None:
    command = [sys.executable, *FAKED, "mcp"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(20) == code


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
@pytest.mark.parametrize("transport", ["sse", "http"])
async def test_over_a_port_it_ends_while_clients_are_connected(environment: dict[str, str], transport: str) -> None:
    with server(environment, transport) as (process, address), httpx.Client(trust_env=False, timeout=60) as web:
        request = web.build_request("GET", address, headers={"Accept": "text/event-stream"})
        response = web.send(request, stream=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        response.close()


@pytest.mark.parametrize("transport", ["sse", "http"])
def test_what_a_web_page_can_make_a_browser_send_is_refused(environment: dict[str, str], transport: str) -> None:
    with server(environment, transport) as (process, address), httpx.Client(trust_env=False, timeout=60) as web:
        accept = {"Accept": "application/json, text/event-stream"}
        for headers, code in (({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403)):
            if transport == "http":
                answer = web.post(address, json=INITIALIZE, headers={**accept, **headers})
            else:
                answer = web.get(address, headers=headers)
                messages = f"{address.removesuffix('/sse')}/messages/?session_id={'0' * 32}"
                assert web.post(messages, json=INITIALIZE, headers=headers).status_code == code
            assert answer.status_code == code and "access-control-allow-origin" not in answer.headers
        process.kill()
        assert process.stderr is not None and process.stderr.read() == b""


async def test_with_the_real_model_a_question_finds_other_words(environment: dict[str, str], notes: Path) -> None:
    with real_model():
        pass
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "sqmd", "mcp"], env=environment)
    async with Client(parameters) as client:
        while (await call(client, "get_index_status"))["vectorCount"] != 6:
            await anyio.sleep(0.05)
        (found,) = (await call(client, "search_documents", query="Where did I leave my vehicle?", top_k=1))["results"]
    assert found["heading_path"] == "Car"
