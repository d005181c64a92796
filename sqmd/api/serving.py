"""One address, one process, an orderly end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from sqmd.api.app import create_app
from sqmd.api.hosts import Hosts
from sqmd.service import Service

_GRACE_SECONDS = 3  # for requests that were under way when the end came
_HEAD_BYTES = 256 * 1024  # of a request: a query of 10,000 characters is up to 120,000 bytes when percent-encoded


def serve(
    service: Service, host: str, listening: socket.socket, *, announce: Callable[[str], None] = lambda line: None
) -> None:
    """Answer at a socket of `host` until SIGTERM or SIGINT; then requests under way have 3 seconds, and this returns.

    announce: told the page's address, and in a second line what is dangerous about it. `service` and the socket stay
    open.
    """
    with _quiet_end() as to_be_ended:
        server = uvicorn.Server(configuration(create_app(service, host)))
        to_be_ended(server)
        announce(address(host, listening))
        if not Hosts(host).local and not service.config.api.api_key:
            announce("Everyone who reaches this address can read what is indexed: set api.api_key.")
        server.run([listening])


def address(host: str, listening: socket.socket) -> str:
    """Where the page is, for a browser on this machine."""
    name = host.strip("[]")
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(name, name)
    return f"http://{f'[{name}]' if ':' in name else name}:{listening.getsockname()[1]}/"


def configuration(app: FastAPI) -> uvicorn.Config:
    """uvicorn as it is meant here."""
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # paths and queries are nobody's business
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=_HEAD_BYTES,
    )


@contextmanager
def _quiet_end() -> Iterator[Callable[[uvicorn.Server], None]]:
    """Takes the server that a signal ends, also one that came before.

    uvicorn raises the signal again once it is done, which would end the process with an error's exit code. Before it
    listens to signals itself, an exception in their place is lost where a library calls back while the application is
    put together.
    """
    ended = False
    servers: list[uvicorn.Server] = []

    def end(_: int, __: FrameType | None) -> None:
        nonlocal ended
        ended = True
        for server in servers:
            server.should_exit = True

    def to_be_ended(server: uvicorn.Server) -> None:
        servers.append(server)
        if ended:
            server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield to_be_ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
