"""Around every request: one line in the log, the metrics, two headers, and an answer if all else failed.

What is noted is method, route template, status, milliseconds and bytes: no address, no id, no path as it was sent.
"""

from __future__ import annotations

import logging
from time import perf_counter

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from squirrel_server.http.json_log import REQUESTS, error_place
from squirrel_server.http.metrics import Metrics
from squirrel_server.http.problems import Problem

_log = logging.getLogger(REQUESTS)
_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class Observation:
    """An ASGI middleware, outside of all others."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = perf_counter()
        status = received = sent = 0

        async def receiving() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            sent += len(message.get("body", b""))
            await send(message)

        fields = {}
        try:
            await self._app(scope, receiving, sending)
        except ClientDisconnect:
            pass  # nobody is there to be answered; status 0 says so
        except Exception as error:  # noqa: BLE001 - the outermost border: told in the log by its place, never by its text
            fields["error"] = error_place(error)
            if not status:
                await _failed(scope, receive, sending)
        seconds = perf_counter() - begun
        method, route = scope["method"], getattr(scope.get("route"), "path", "none")
        self._metrics.count(method, route, status, seconds, received, sent)
        noted = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 1)}
        _log.info("request", extra={"fields": {**noted, "in": received, "out": sent, **fields}})


async def _failed(scope: Scope, receive: Receive, send: Send) -> None:
    response = Problem(500, "internal", "The server made a mistake; it is in its log.").response()
    await response(scope, receive, send)
