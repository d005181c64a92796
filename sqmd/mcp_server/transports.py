"""MCP over HTTP, for programs of this machine only: what a web page can make a browser send is refused.

The SDK's own checks do that: of the Host header, against DNS rebinding, and of the Origin header.
"""

from __future__ import annotations

import socket
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_SECURITY = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=[f"{name}:*" for name in _NAMES],
    allowed_origins=[f"http://{name}:*" for name in _NAMES],
)
_MESSAGES = "/messages/"
_CLOSING = 1  # seconds that open streams have at the end


def app_of(server: Server[Any], transport: str) -> tuple[ASGIApp, str]:
    """The application for `http` or `sse`, and the path that clients connect to."""
    if transport == "http":
        return server.streamable_http_app(streamable_http_path="/mcp", transport_security=_SECURITY), "/mcp"
    events = _Events(server)
    return Starlette(routes=[Route("/sse", endpoint=events), Mount(_MESSAGES, app=events.messages)]), "/sse"


class _Events:
    """The older transport: answers are events of one long GET, messages come by POST."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._transport = SseServerTransport(_MESSAGES, security_settings=_SECURITY)
        self.messages = self._transport.handle_post_message

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._transport.connect_sse(scope, receive, send) as (reading, writing):
                await self._server.run(reading, writing, self._server.create_initialization_options())
        except ValueError:  # it was refused, and has its answer
            pass


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Until a signal comes."""
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=_CLOSING)
    uvicorn.Server(config).run(sockets=[listener])
