"""One address, one or several processes behind it, TLS if wanted, and an orderly end."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from squirrel_server.http.app import create_app
from squirrel_server.http.json_log import log_config
from squirrel_server.http.options import ServerOptions

_GRACE_SECONDS = 10  # for requests that were under way when the end came
_PARENT_SECONDS = 1  # between two looks at whether the parent of a worker is there
_BACKLOG = 2_048
_CONNECTIONS = 1_000  # of a process; beyond that 503 at once, so that file descriptors are left for the database


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files; the key may be in the certificate's."""

    certificate: Path
    key: Path | None = None


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on, though nobody answers yet. OSError if it cannot be had."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
    )[0]
    # With the protocol named, asyncio turns Nagle's algorithm off; without, each reply would wait 40 ms.
    listening = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def serve(options: ServerOptions, listening: socket.socket, workers: int, certificate: Certificate | None) -> None:
    """Answer until SIGTERM or SIGINT; then requests that are under way have 10 seconds, and this returns.

    With several workers each is a process of its own on the same socket, and one that dies is replaced.
    """
    if workers == 1:
        server = uvicorn.Server(configuration(partial(create_app, options), certificate))
        with _quiet_end(server):
            server.run([listening])
        return
    with tempfile.TemporaryDirectory(prefix="squirrel-metrics-") as folder:
        # For the workers, which inherit it: this process counts nothing.
        os.putenv("PROMETHEUS_MULTIPROC_DIR", folder)
        factory = partial(_of_worker, options, os.getpid())
        Multiprocess(configuration(factory, certificate, workers), [listening]).run()


def _of_worker(options: ServerOptions, parent: int) -> FastAPI:
    """The application of a worker, which ends when its parent does: one that was killed can tell it nothing."""

    def outlive_nobody() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=outlive_nobody, name="parent", daemon=True).start()
    return create_app(options)


def configuration(
    factory: Callable[[], object], certificate: Certificate | None = None, workers: int = 1
) -> uvicorn.Config:
    """uvicorn as it is meant here; it may be pickled."""
    return uvicorn.Config(
        factory,
        factory=True,
        http="h11",
        ws="none",
        workers=workers,
        log_config=log_config(),
        access_log=False,  # `observation` has one without addresses and paths
        proxy_headers=False,  # `gate` reads the one it trusts
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_worker_healthcheck=30,  # seconds; a busy machine may take a while to import everything
        ssl_certfile=str(certificate.certificate) if certificate else None,
        ssl_keyfile=str(certificate.key) if certificate and certificate.key else None,
    )


@contextmanager
def _quiet_end(server: uvicorn.Server) -> Iterator[None]:
    # uvicorn raises the signal again once it is done, which would end the process with an error's exit code. One that
    # comes before uvicorn listens to signals itself is told to it here, or it would be lost.
    def end(_: int, __: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
