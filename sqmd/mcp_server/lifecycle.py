"""A server process from its start to its end, over stdin and stdout or over a port of this machine.

`initialize` is answered before the database or the model is touched; the first index runs behind.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, cast

from sqmd.stderr import say

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from sqmd.config import Config
    from sqmd.service import Service

HOST = "127.0.0.1"


def serve_stdio(config: Config) -> int:
    """Serve one client until stdin ends or a signal comes. It ends the process."""
    _watch_signals()
    gc.disable()  # a fifth of the SDK's import is spent on looking for garbage in what stays anyway
    stdin, stdout = _claimed_streams()
    if stdin.isatty():
        say("sqmd: waiting for an MCP client on stdin; sqmd --help lists the commands for people.")
    import anyio
    from mcp.server.stdio import stdio_server

    service, server = _made(config)
    lines = _Lines(stdout, after_first=lambda: _follow(service))
    gc.enable()
    gc.freeze()

    async def serve() -> None:
        async with stdio_server(anyio.wrap_file(stdin), anyio.wrap_file(cast("TextIO", lines))) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(serve)
    _end(0)
    return 0


def serve_http(config: Config, transport: str, port: int) -> int:
    """Serve any number of clients at `/mcp`, or with transport sse at `/sse`. PortBusy. It ends the process."""
    _watch_signals()  # what uvicorn does with signals comes first, and then these
    from sqmd.listening import listen
    from sqmd.mcp_server.transports import app_of, serve

    with listen(HOST, port) as listener:
        service, server = _made(config)
        app, path = app_of(server, transport)
        say(f"sqmd: serving MCP at http://{HOST}:{listener.getsockname()[1]}{path}")
        _follow(service)
        serve(app, listener)
    _end(0)
    return 0


def _made(config: Config) -> tuple[Service, Server[Any]]:
    from importlib.metadata import version

    from sqmd.mcp_server.app import build_server
    from sqmd.service import Service

    service = Service(config)
    return service, build_server(service, version("sqmd"))


def _follow(service: Service) -> None:
    """Index in the background, and what changes from then on, for as long as the process lives."""

    def work() -> None:
        from sqmd.watch import following

        with following(service, lambda message: say(f"sqmd: {message}")):
            threading.Event().wait()

    threading.Thread(target=work, name="following", daemon=True).start()


def _claimed_streams() -> tuple[TextIO, TextIO]:
    """The pipes to the client, under descriptors that nothing else knows.

    What prints, in this process or in a child, reaches stderr instead, and what reads finds an empty input.
    """
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr either
        os.dup2(nothing, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    reading = io.TextIOWrapper(os.fdopen(stdin, "rb"), encoding="utf-8", errors="replace", newline="\n")
    return reading, io.TextIOWrapper(os.fdopen(stdout, "wb"), encoding="utf-8", errors="replace", newline="\n")


class _Lines(io.TextIOBase):
    """Passes lines on; readers that take U+2028 for a line end see none. Calls `after_first` after the first."""

    def __init__(self, out: TextIO, after_first: Callable[[], None]) -> None:
        self._out = out
        self._after_first: Callable[[], None] | None = after_first

    def write(self, text: str) -> int:
        return self._out.write(text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))

    def flush(self) -> None:
        try:
            self._out.flush()
        except (OSError, ValueError):  # the client is gone
            _end(0)
        if self._after_first is not None:
            after, self._after_first = self._after_first, None
            after()


def _watch_signals() -> None:
    """SIGTERM ends with 0, the others with 128 + n, at once: an indexing is safe against being killed."""
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _on_signal)


def _on_signal(number: int, _: FrameType | None) -> None:
    os._exit(0 if number == signal.SIGTERM else 128 + number)


def _end(code: int) -> None:
    """The interpreter's own end would wait for threads that index or read stdin."""
    os._exit(code)
