"""Servers on both databases, and somebody who has an account there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.squirrel_server.http.http_store import HttpStore
from tests.squirrel_server.http.member import Member, joined
from tests.squirrel_server.http.running import Running, running
from tests.squirrel_server.store.conftest import child_environment, postgresql, sqlite, url

__all__ = ["child_environment", "postgresql", "sqlite", "url"]


@pytest.fixture(scope="session")
def server(url: str) -> Iterator[Running]:
    """A server without rate limits, shared by the tests of one database."""
    with running(url) as found:
        yield found


@pytest.fixture(scope="session")
def store(server: Running) -> Iterator[HttpStore]:
    """The server as the contract suite sees it."""
    found = HttpStore(server)
    yield found
    found.close()


@pytest.fixture
def web(server: Running) -> Iterator[httpx.Client]:
    with server.client() as found:
        yield found


@pytest.fixture
def member(server: Running, web: httpx.Client) -> Member:
    """A new account and its admin key."""
    return joined(server, web)


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """A test's own SQLite database."""
    return f"sqlite:///{tmp_path / 'server.db'}"
