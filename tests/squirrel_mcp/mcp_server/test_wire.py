"""Every line that asks is answered, one line each, whatever it holds."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, BinaryIO

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import JSONRPCRequest, JSONRPCResponse

from squirrel_mcp.mcp_server.app import build_server
from squirrel_mcp.mcp_server.notices import Notices
from squirrel_mcp.mcp_server.tools import GetService
from squirrel_mcp.mcp_server.wire import Refusal, Wire, parse, to_line
from squirrel_mcp.service import MemoryService

pytestmark = pytest.mark.anyio

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def call(tool: str, request_id: int, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


class Pipes:
    """The client's ends of a server's stdin and stdout."""

    def __init__(self) -> None:
        self.server_in, self._in = os.pipe()
        self._out, self.server_out = os.pipe()
        self.answers: BinaryIO = os.fdopen(self._out, "rb")

    def send(self, message: Any) -> None:
        os.write(self._in, message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    def end(self) -> None:
        """End the server's stdin, once."""
        if self._in >= 0:
            os.close(self._in)
        self._in = -1

    async def answer(self) -> Any:
        return json.loads(await anyio.to_thread.run_sync(self.answers.readline))


@asynccontextmanager
async def served(
    service: GetService, after: Callable[[], None] = lambda: None, last_answers: float = 60
) -> AsyncIterator[Pipes]:
    pipes = Pipes()
    with os.fdopen(pipes.server_in, "rb") as stdin, os.fdopen(pipes.server_out, "wb") as stdout, pipes.answers:
        async with anyio.create_task_group() as tasks:
            wire = Wire(stdin, stdout, after_first_answer=after, last_answers=last_answers)
            tasks.start_soon(wire.serve, build_server(service, Notices()))
            try:
                yield pipes
            finally:
                pipes.end()  # the thread that reads would not end otherwise


async def test_the_first_answer_goes_out_before_anything_is_opened(service: MemoryService) -> None:
    opened: list[str] = []
    async with served(lambda: service, lambda: opened.append("now")) as pipes:
        assert opened == []
        pipes.send(INITIALIZE)
        assert (await pipes.answer())["result"]["serverInfo"]["name"] == "squirrel"
        pipes.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert (await pipes.answer())["id"] == 1
    assert opened == ["now"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"save_memory","arguments":{"text":"a\\ud83d"}}}\n',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"save_memory","arguments":{"text":"a\xed\xa0\x80"}}}\n',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"save_memory","arguments":{"text":"a\xff"}}}\n',
    ],
    ids=["an escape", "its bytes", "no utf-8"],
)
async def test_half_a_surrogate_pair_is_refused_by_the_name_of_the_field(service: MemoryService, line: bytes) -> None:
    async with served(lambda: service) as pipes:
        pipes.send(INITIALIZE)
        await pipes.answer()
        pipes.send(line)
        answer = await pipes.answer()
        assert (answer["id"], answer["result"]["isError"]) == (7, True)
        assert answer["result"]["content"][0]["text"].startswith("text holds half of a surrogate pair")


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"no json\n", -32700, None),
        (b"{\n", -32700, None),
        (b"[" * 5_000 + b"\n", -32700, None),
        (b'{"id": 3}\n', -32600, 3),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":4,"method":7}\n', -32600, 4),
        (b'[{"jsonrpc":"2.0","id":4,"method":"ping"}]\n', -32600, None),
        (b'"text"\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":4,"error":{"code":"x"}}\n', -32600, None),  # 4 may be a request of the client's own
        (b'{"jsonrpc":"2.0","id":4,"result":7}\n', -32600, None),
    ],
)
async def test_a_line_that_is_no_message_is_answered_with_an_error(
    service: MemoryService, line: bytes, code: int, request_id: int | None
) -> None:
    async with served(lambda: service) as pipes:
        pipes.send(b"\n \n")  # empty lines ask for nothing
        pipes.send(line)
        answer = await pipes.answer()
        assert (answer["error"]["code"], answer["id"]) == (code, request_id)
        pipes.send(INITIALIZE)
        assert "result" in await pipes.answer()


async def test_a_request_in_flight_is_still_answered_when_stdin_ends(service: MemoryService) -> None:
    async with served(lambda: service) as pipes:
        pipes.send(INITIALIZE)
        pipes.send(call("save_memory", 1, text="likes tea"))
        pipes.end()
        assert (await pipes.answer())["id"] == 0
        assert (await pipes.answer())["result"]["structuredContent"]["status"] == "saved"


async def test_the_end_does_not_wait_for_a_request_that_never_ends() -> None:
    asked, let_go = threading.Event(), threading.Event()

    def never() -> MemoryService:
        asked.set()
        let_go.wait()
        raise AssertionError

    async with served(never, last_answers=0) as pipes:
        pipes.send(INITIALIZE)
        await pipes.answer()
        pipes.send(call("get_context", 1))
        await anyio.to_thread.run_sync(asked.wait)
        pipes.end()
        assert (await pipes.answer())["error"]["message"] == "Connection closed"
    let_go.set()


async def test_many_calls_that_wait_do_not_keep_a_list_from_being_answered(service: MemoryService) -> None:
    let_go = threading.Event()

    def later() -> MemoryService:
        let_go.wait()
        return service

    async with served(later) as pipes:
        pipes.send(INITIALIZE)
        await pipes.answer()
        for number in range(100, 160):
            pipes.send(call("get_context", number))
        pipes.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert (await pipes.answer())["id"] == 1
        let_go.set()
        assert sorted([(await pipes.answer())["id"] for _ in range(60)]) == list(range(100, 160))


async def test_a_cancelled_request_is_not_waited_for(service: MemoryService) -> None:
    let_go = threading.Event()

    def later() -> MemoryService:
        let_go.wait()
        return service

    async with served(later) as pipes:
        pipes.send(INITIALIZE)
        await pipes.answer()
        pipes.send(call("get_context", 1))
        pipes.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        pipes.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}})
        pipes.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert (await pipes.answer())["id"] == 2
    let_go.set()


@pytest.mark.parametrize(
    "response",
    [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "There is no such method."}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "That was no JSON."}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "unheard-of", "error": {"code": 5, "message": ""}},
    ],
)
async def test_a_response_of_the_client_is_not_answered_and_answers_no_request(
    service: MemoryService, response: dict[str, Any]
) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def later() -> MemoryService:
        asked.set()
        let_go.wait()
        return service

    async with served(later) as pipes, AsyncExitStack() as ending:
        ending.callback(let_go.set)  # a failure ends it as well
        pipes.send(INITIALIZE)
        await pipes.answer()
        pipes.send(call("memory_status", 1))
        await anyio.to_thread.run_sync(asked.wait)
        pipes.send(response)
        pipes.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert await pipes.answer() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        pipes.end()  # request 1 is still waited for
        let_go.set()
        assert "result" in (answer := await pipes.answer()) and answer["id"] == 1


async def test_a_line_that_is_refused_answers_no_request_of_the_same_id(service: MemoryService) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def later() -> MemoryService:
        asked.set()
        let_go.wait()
        return service

    async with served(later) as pipes, AsyncExitStack() as ending:
        ending.callback(let_go.set)  # a failure ends it as well
        pipes.send(INITIALIZE)
        await pipes.answer()
        pipes.send(call("memory_status", 1))
        await anyio.to_thread.run_sync(asked.wait)
        pipes.send({"id": 1})
        assert (await pipes.answer())["error"]["code"] == -32600
        pipes.end()
        let_go.set()
        assert "result" in await pipes.answer()


class Broken(io.BytesIO):
    """A client that has closed its end."""

    def flush(self) -> None:
        raise BrokenPipeError


async def test_a_client_that_is_gone_ends_the_serving(service: MemoryService) -> None:
    pipes = Pipes()
    pipes.send(INITIALIZE)
    with os.fdopen(pipes.server_in, "rb") as stdin, os.fdopen(pipes.server_out, "wb"), pipes.answers:
        wire = Wire(stdin, Broken(), after_first_answer=lambda: None)
        await wire.serve(build_server(lambda: service, Notices()))
        pipes.end()  # so that the thread that reads lets go of stdin


def test_lines_end_with_one_line_feed_and_hold_no_other_line_end() -> None:
    line = to_line(JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "a\u2028b\u2029c\r\nd\x85"}))
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and b"\r" not in line
    assert "\u2028".encode() not in line and "\u2029".encode() not in line
    assert json.loads(line)["result"] == {"text": "a\u2028b\u2029c\r\nd\x85"}


def test_an_answer_that_is_no_text_costs_that_answer_alone() -> None:
    answer = json.loads(to_line(JSONRPCResponse(jsonrpc="2.0", id=5, result={"text": "\ud800"})))
    assert (answer["id"], answer["error"]["message"]) == (5, "The answer is no text.")


@given(st.binary(max_size=200))
def test_any_line_is_a_message_or_an_error(line: bytes) -> None:
    message = parse(line)
    assert isinstance(message, Refusal) or json.loads(line)["jsonrpc"] == "2.0"
    assert to_line(message)


@given(st.dictionaries(st.text(), st.text(), max_size=3))
def test_what_python_writes_is_read(params: dict[str, str]) -> None:
    sent = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": params}
    assert parse(json.dumps(sent).encode()) == JSONRPCRequest(jsonrpc="2.0", id=1, method="x", params=params)
    assert parse(b"\xef\xbb\xbf" + json.dumps(sent).encode()) == parse(json.dumps(sent).encode())


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"save_memory","arguments":{"text":"a","text":"b"}}}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"b","arguments":{}}}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call","params":{}}',
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":[{"b":1,"\\u0062":1}],"c":"\\ud800"}}',
    ],
)
def test_a_request_with_a_name_twice_is_refused_and_its_sender_does_not_wait(line: bytes) -> None:
    refused = parse(line)
    assert isinstance(refused, Refusal) and refused.id == 7 and "twice" in refused.error.message


def test_the_same_name_in_different_objects_is_no_repetition() -> None:
    line = b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":{"id":1},"b":[{"id":1},{"id":1}],"id":"id"}}'
    assert isinstance(parse(line), JSONRPCRequest)
