"""One address, one process, an orderly end."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from sqmd.api.app import create_app
from sqmd.api.hosts import Hosts
from sqmd.errors import ConfigError, PortBusy
from sqmd.service import Service

_GRACE_SECONDS = 3  # for requests that were under way when the end came
_BACKLOG = 128
_CONNECTIONS = 200  # beyond that 503 at once
_HEAD_BYTES = 256 * 1024  # of a request: a query of 10,000 characters is up to 120,000 bytes when percent-encoded


def serve(service: Service, host: str, port: int, *, announce: Callable[[str], None] = lambda line: None) -> None:
    """Answer until SIGTERM or SIGINT; then requests that are under way have 3 seconds, and this returns.

    port 0: any that is free. announce: told the page's address once connections are taken, and in a second line what
    is dangerous about it. PortBusy, ConfigError for an address that is none of this machine's. `service` stays open.
    """
    with listen(host, port) as listening, _quiet_end() as to_be_ended:
        server = uvicorn.Server(configuration(create_app(service, host)))
        to_be_ended(server)
        announce(address(host, listening))
        if not Hosts(host).local and not service.config.api.api_key:
            announce("Everyone who reaches this address can read what is indexed: set api.api_key.")
        server.run([listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on, though nobody answers yet. PortBusy, ConfigError."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # With the protocol named, asyncio turns Nagle's algorithm off; without, each reply would wait 40 ms.
        listening = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
            listening.listen(_BACKLOG)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortBusy(f"Port {port} of {host} is taken by another program: choose another with --port.") from error
        raise ConfigError(f"Port {port} of {host} cannot be listened at: {error.strerror or error}.") from error
    return listening


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
        limit_concurrency=_CONNECTIONS,
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
