"""PostgreSQL where it differs: how it is addressed, and what is said when it cannot be used."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest
from sqlalchemy.exc import DBAPIError

from squirrel_server.store import SqlStore, StoreError
from squirrel_server.store.database import CONNECTIONS
from squirrel_server.store.faults import translated
from squirrel_server.store.postgresql_database import PostgresqlDatabase
from tests.squirrel_server.store.conftest import OpenStore


@pytest.mark.parametrize("url", ["postgresql+psycopg://host:port/name", "postgresql+psycopg://[::1/name"])
def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        SqlStore(url)
    assert caught.value.code == "unsupported_url"
    assert "name" not in str(caught.value)


def test_a_server_that_does_not_listen_is_unavailable_and_the_password_unsaid() -> None:
    pytest.importorskip("psycopg")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else answers there
        port = taken.getsockname()[1]
        with pytest.raises(StoreError) as caught:
            SqlStore(f"postgresql+psycopg://someone:hunter2@127.0.0.1:{port}/none")
    assert caught.value.code == "unavailable"
    assert f"Cannot connect to 127.0.0.1:{port}:" in str(caught.value) and "someone" not in str(caught.value)
    assert "hunter2" not in f"{caught.value}{caught.value.__cause__}"


STATES = {
    "53100": "full",
    "53300": "unavailable",
    "55P03": "unavailable",
    "57P01": "unavailable",
    "40001": "unavailable",
    "25006": "unavailable",
    "08006": "unavailable",
    "XX001": "not_a_vault",
}


@pytest.mark.parametrize(("state", "code"), STATES.items())
def test_a_servers_error_is_told_by_its_state(state: str, code: str) -> None:
    with pytest.raises(StoreError) as caught, translated():
        raise _driver_error(state)
    assert caught.value.code == code


def test_a_mistake_of_ours_stays_what_it_is() -> None:
    with pytest.raises(DBAPIError), translated():
        raise _driver_error("42601")  # a syntax error


def test_commits_are_durable_by_setting(postgresql: str, open_store: OpenStore) -> None:
    store = open_store(postgresql)
    with store._database.write() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar_one() == "read committed"
    with store._database.read() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar_one() == "repeatable read"
        assert connection.exec_driver_sql("SHOW transaction_read_only").scalar_one() == "on"


def test_a_connection_that_the_server_ended_is_replaced_before_it_is_used(
    postgresql: str, open_store: OpenStore
) -> None:
    store, other = open_store(postgresql), open_store(postgresql)
    with store._database.look() as connection:
        process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with other._database.look() as connection:  # returns once the process is gone
        assert connection.exec_driver_sql(f"SELECT pg_terminate_backend({process}, 10000)").scalar_one()
    with store._database.look() as connection:
        assert connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() != process


def test_no_connection_is_closed_for_being_one_too_many(postgresql: str, open_store: OpenStore) -> None:
    database = open_store(postgresql)._database
    assert isinstance(database, PostgresqlDatabase)

    def processes() -> set[int]:
        with ExitStack() as stack:
            connections = [stack.enter_context(database.look()) for _ in range(CONNECTIONS)]
            return {each.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for each in connections}

    assert processes() == processes()


def _driver_error(state: str) -> DBAPIError:
    error = Exception("as psycopg would say it")
    error.sqlstate = state  # type: ignore[attr-defined]
    return DBAPIError("statement", None, error)
