"""The two servers: for programs and browsers, and for agents."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sqmd.cli import end_at_once
from sqmd.cli.exits import Exit
from sqmd.cli.options import config_option, loaded
from sqmd.stderr import say

_CLOSING = 2.0  # seconds that an indexing has to come to an end; it is safe against being killed


@click.command()
@click.option("--host", help="The address to listen at; api.host otherwise.")
@click.option("--port", type=click.IntRange(0, 65_535), help="api.port otherwise; 0: any that is free.")
@config_option
def serve(host: str | None, port: int | None, config_file: Path | None) -> int:
    """Serve the REST API and the search page, and index what changes meanwhile."""
    config = loaded(config_file).config
    with _ending_at_once():
        from sqmd.api import serving
        from sqmd.listening import listen
        from sqmd.service import Service
        from sqmd.watch import following

    host = host or config.api.host
    with listen(host, config.api.port if port is None else port) as listening:
        service = Service(config)
        try:
            with following(service, say):
                serving.serve(service, host, listening, announce=say)
        finally:
            closing = threading.Thread(target=service.close, daemon=True)
            closing.start()
            closing.join(_CLOSING)
    return Exit.OK


@click.command()
@click.option("--transport", type=click.Choice(("stdio", "sse", "http")), help="mcp.transport otherwise.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Of sse and http; mcp.sse_port otherwise.")
@config_option
def mcp(transport: str | None, port: int | None, config_file: Path | None) -> int:
    """Serve agents over MCP: on stdin and stdout, or on a port of this machine."""
    config = loaded(config_file, here=False).config
    from sqmd.mcp_server.lifecycle import serve_http, serve_stdio

    chosen = transport or config.mcp.transport
    if chosen == "stdio":
        return serve_stdio(config)
    return serve_http(config, chosen, config.mcp.sse_port if port is None else port)


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """While libraries are imported Ctrl-C ends the program: in a callback of theirs an exception is lost."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
    try:
        yield
    finally:
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)
