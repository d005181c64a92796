"""A real server on a real socket, in a thread of the test's own process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import uvicorn
from fastapi import FastAPI

from squirrel_server.api_keys import make_invite
from squirrel_server.http.app import create_app
from squirrel_server.http.options import Rate, ServerOptions
from squirrel_server.http.serving import Certificate, configuration, listen
from squirrel_server.store.server_store import ServerStore

UNLIMITED = Rate(0, 0)


@dataclass
class Running:
    """Where the server is, and the store behind it, opened once more for what has no route."""

    address: str
    app: FastAPI
    store: ServerStore
    clock: Callable[[], float] = time.time

    def invite(self, seconds: int = 3_600) -> str:
        """An invite as `squirrel-server invite` makes it."""
        token, digest = make_invite(os.urandom)
        now = int(self.clock())
        self.store.add_invite(digest, now, now + seconds)
        return token

    def client(self) -> httpx.Client:
        """A plain client, which is up to no good or to nothing in particular."""
        return httpx.Client(base_url=self.address, timeout=30, trust_env=False)


@contextmanager
def running(
    url: str,
    *,
    key_rate: Rate = UNLIMITED,
    address_rate: Rate = UNLIMITED,
    behind_proxy: bool = False,
    open_metrics: bool = False,
    clock: Callable[[], float] = time.time,
    certificate: Certificate | None = None,
) -> Iterator[Running]:
    """A server on a free port of this machine, stopped in an orderly way at the end."""
    options = ServerOptions(url, key_rate, address_rate, behind_proxy, open_metrics)
    app = create_app(options, clock=clock)
    store = ServerStore(url)
    with listen("127.0.0.1", 0) as listening:  # connections queue up until the server is ready for them
        port = listening.getsockname()[1]
        server = uvicorn.Server(configuration(lambda: app, certificate))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield Running(f"{'https' if certificate else 'http'}://127.0.0.1:{port}", app, store, clock)
        finally:
            server.should_exit = True
            thread.join()
            store.close()
