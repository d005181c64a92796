"""The backends of the contract suite, and stores of a test's own.

PostgreSQL is used if it listens at `POSTGRESQL`, in a schema that is made for the run and dropped after it; else
its half of the suite is skipped with a reason, or fails where CI is set.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from squirrel_server.store import SqlStore

POSTGRESQL = "postgresql+psycopg://postgres@127.0.0.1:5432/test"

OpenStore = Callable[[str], SqlStore]


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a SQLite database that is not there yet."""
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/vault.db"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of an empty schema in a PostgreSQL database."""
    schema = f"squirrel_{uuid.uuid4().hex}"
    try:
        engine = create_engine(POSTGRESQL, connect_args={"connect_timeout": 5})
        with engine.begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {schema}"))
    except (ImportError, SQLAlchemyError) as error:
        reason = f"no PostgreSQL at 127.0.0.1:5432 ({type(error).__name__})"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    try:
        yield f"{POSTGRESQL}?options=-csearch_path%3D{schema}"
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
        engine.dispose()


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of each backend in turn."""
    address: str = request.getfixturevalue(request.param)
    return address


@pytest.fixture(scope="session")
def store(url: str) -> Iterator[SqlStore]:
    """The store under test. It is shared: each test opens an account of its own in it."""
    store = SqlStore(url)
    yield store
    store.close()


@pytest.fixture
def open_store() -> Iterator[OpenStore]:
    """Opens stores that are closed when the test is over."""
    stores: list[SqlStore] = []

    def open_(url: str) -> SqlStore:
        stores.append(SqlStore(url))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Where a test's own SQLite file will be; `sqlite:///` in front makes it an address."""
    return tmp_path / "vault.db"


@pytest.fixture
def child_environment() -> dict[str, str]:
    """For child processes: they find the packages where this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
