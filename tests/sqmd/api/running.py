"""A real server on a real socket over a real index, in a thread of the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI

from sqmd.api.app import create_app
from sqmd.api.serving import configuration
from sqmd.config import Api, Config, Paths
from sqmd.embed import Embedder
from sqmd.listening import listen
from sqmd.service import Service
from tests.sqmd.fakes import FakeEmbedder

HOST = "127.0.0.1"


class FakeReranker:
    """Likes short texts."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        return [-float(len(text)) for text in texts]

    def close(self) -> None: ...


@dataclass
class Running:
    """Where the server is, and the service behind it."""

    address: str
    app: FastAPI
    service: Service

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.address, timeout=60, trust_env=False)


def config_for(folder: Path, *, api_key: str = "") -> Config:
    """Of an index beside `folder`, which holds the Markdown."""
    paths = Paths(watch_dirs=(folder,), db_path=str(folder.parent / "index"))
    return Config(paths=paths, api=Api(host=HOST, port=0, api_key=api_key))


@contextmanager
def running(config: Config, embedder: Embedder | None = None) -> Iterator[Running]:
    """A server on a free port of this machine, stopped in an orderly way at the end. Nothing is indexed by itself."""
    service = Service(config, embedder=embedder or FakeEmbedder(), reranker=FakeReranker())
    app = create_app(service, HOST)
    with listen(HOST, 0) as listening:  # connections queue up until the server is ready for them
        server = uvicorn.Server(configuration(app))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield Running(f"http://{HOST}:{listening.getsockname()[1]}", app, service)
        finally:
            server.should_exit = True
            thread.join()
            service.close()
