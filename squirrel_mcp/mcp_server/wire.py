"""JSON-RPC lines over stdin and stdout.

The SDK's stdio transport drops a line that it cannot parse, so that a client waits for ever for an answer to half a
surrogate pair; it reads in the thread pool that tool calls use up, writes CRLF on Windows and U+2028 as it is. This
one answers every line that asks, keeps its own threads, and writes LF only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)

MAX_LINE = 128 * 1024 * 1024  # bytes; 10 million characters, each written as two escapes, still get their answer
LAST_ANSWERS = 0.75  # seconds that requests have to finish once stdin has ended

_SessionMessages = MemoryObjectSendStream[SessionMessage]


class Refusal(JSONRPCError):
    """What we answer a line with that is no message; a JSONRPCError is one that the client answered us with."""


class Wire:
    """Serves one client until stdin ends, or it closes our stdout."""

    def __init__(
        self,
        stdin: BinaryIO,
        stdout: BinaryIO,
        *,
        after_first_answer: Callable[[], None],
        last_answers: float = LAST_ANSWERS,
    ) -> None:
        """`after_first_answer` is called once the first answer is on its way."""
        self._stdin, self._stdout, self._last_answers = stdin, stdout, last_answers
        self._after_first_answer: Callable[[], None] | None = after_first_answer
        self._reading, self._writing = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)
        self._open_requests: set[str | int] = set()
        self._all_answered = anyio.Event()
        self._ended = False

    async def serve(self, server: Server[Any]) -> None:
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write, from_server, tasks.cancel_scope)
            tasks.start_soon(self._read, to_server, to_client.clone())
            await server.run(from_client, to_client, server.create_initialization_options())

    async def _read(
        self, to_server: MemoryObjectSendStream[SessionMessage | Exception], back: _SessionMessages
    ) -> None:
        async with to_server, back:
            while line := await self._next_line():
                message = parse(line) if line.strip() else None
                if isinstance(message, Refusal):
                    await back.send(SessionMessage(message))
                elif message is not None:
                    if isinstance(message, JSONRPCRequest):
                        self._open_requests.add(message.id)
                    elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                        self._forget((message.params or {}).get("requestId"))
                    await to_server.send(SessionMessage(message))
            self._ended = True
            if self._open_requests:
                with anyio.move_on_after(self._last_answers):
                    await self._all_answered.wait()

    async def _next_line(self) -> bytes:
        """A line, b"" at the end. Of one that is too long only the beginning, which parses as an error."""

        def read() -> bytes:
            line = self._stdin.readline(MAX_LINE)
            piece = line
            while len(piece) == MAX_LINE and not piece.endswith(b"\n"):
                piece = self._stdin.readline(MAX_LINE)
            return line

        try:
            return await run_sync(read, limiter=self._reading, abandon_on_cancel=True)
        except (OSError, ValueError):
            return b""

    async def _write(self, messages: MemoryObjectReceiveStream[SessionMessage], scope: anyio.CancelScope) -> None:
        def write(line: bytes) -> None:
            self._stdout.write(line)
            self._stdout.flush()

        async with messages:
            async for session_message in messages:
                message = session_message.message
                try:
                    await run_sync(write, to_line(message), limiter=self._writing, abandon_on_cancel=True)
                except (OSError, ValueError):
                    scope.cancel()  # the client is gone
                    return
                if not isinstance(message, JSONRPCRequest | JSONRPCNotification):
                    # A refusal may name the id of a request that is still open and will get its own answer.
                    self._answered(None if isinstance(message, Refusal) else message.id)

    def _answered(self, request_id: str | int | None) -> None:
        self._forget(request_id)
        if self._after_first_answer is not None:
            after, self._after_first_answer = self._after_first_answer, None
            after()

    def _forget(self, request_id: Any) -> None:
        """Expect no answer, or none any more."""
        if isinstance(request_id, str | int):
            self._open_requests.discard(request_id)
        if self._ended and not self._open_requests:
            self._all_answered.set()


def parse(line: bytes) -> JSONRPCMessage:
    """The message in a line, or the error to answer it with.

    Bytes that are no UTF-8 and lone surrogates arrive in the arguments as lone surrogates, for the tool to refuse by
    the name of the field.
    """
    message: JSONRPCMessage | None = None
    with suppress(ValueError):
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    if message is not None and not (isinstance(message, JSONRPCNotification) and b'"id"' in line):
        return _unless_repeated(message, line)
    fields: Any = None
    try:
        fields = json.loads(_decoded(line))
        # A request whose id is none would pass for a notification, and whoever sent it would wait.
        if not (isinstance(fields, dict) and "method" in fields and "id" in fields and not _is_id(fields["id"])):
            return _unless_repeated(jsonrpc_message_adapter.validate_python(fields, by_name=False), line)
    except (ValueError, RecursionError):
        pass
    if fields is None:
        return _error(None, PARSE_ERROR, "The line is not valid JSON, or too long.")
    # Who sends half a response may wait for the answer to a request of its own with that id.
    asks = isinstance(fields, dict) and ("method" in fields or not {"result", "error"} & fields.keys())
    request_id = fields.get("id") if asks else None
    return _error(
        request_id if _is_id(request_id) else None,
        INVALID_REQUEST,
        "The message is not a JSON-RPC 2.0 request, notification or response.",
    )


def _unless_repeated(message: JSONRPCMessage, line: bytes) -> JSONRPCMessage:
    """The message, or a refusal of a request that has a name twice: which of two texts to save is not ours to guess."""
    if not isinstance(message, JSONRPCRequest):
        return message
    repeated = False

    def note(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({name for name, _ in pairs}) < len(pairs)

    with suppress(ValueError, RecursionError):
        json.loads(_decoded(line), object_pairs_hook=note)
    return _error(message.id, INVALID_REQUEST, "The message has a name twice in one object.") if repeated else message


def _decoded(line: bytes) -> str:
    return line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def to_line(message: JSONRPCMessage) -> bytes:
    """One line of JSON in UTF-8, ended by LF; readers that take U+2028 for a line end see none."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        # Nothing of ours holds lone surrogates; were it so, one answer is lost and not the connection.
        request_id = getattr(message, "id", None)
        text = _error(request_id, INTERNAL_ERROR, "The answer is no text.").model_dump_json(exclude_unset=True)
    if not text.isascii():
        text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.encode() + b"\n"


def _error(request_id: str | int | None, code: int, message: str) -> Refusal:
    return Refusal(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    return type(value) is int
