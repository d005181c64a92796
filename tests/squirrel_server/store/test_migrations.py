"""The schema: the tables that queries believe in are the ones that are made, step by step and in one piece."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text

from squirrel_server.store import SqlStore, StoreError
from squirrel_server.store.migrations import MIGRATIONS, migrate, schema_version
from squirrel_server.store.schema import metadata
from tests.squirrel_server.store.conftest import OpenStore
from tests.squirrel_server.store.contract import opened, state_of


@pytest.fixture
def migrating(store: SqlStore) -> Iterator[Connection]:
    """A transaction on the store's database that comes to nothing in the end."""
    with pytest.raises(ZeroDivisionError), store._database.write() as connection:
        yield connection
        raise ZeroDivisionError


def test_the_tables_are_those_that_queries_name(migrating: Connection) -> None:
    if migrating.dialect.name == "postgresql":
        migrating.execute(text("RESET ALL"))  # the store's planner settings make the catalogue's own queries slow
    inspector = inspect(migrating)
    assert set(inspector.get_table_names()) == set(metadata.tables)
    for name, table in metadata.tables.items():
        columns = {column["name"]: column for column in inspector.get_columns(name)}
        key = inspector.get_pk_constraint(name)["constrained_columns"]
        assert list(columns) == [column.name for column in table.columns]
        assert key == [column.name for column in table.primary_key]
        for column in table.columns:
            if column.name not in key:
                assert columns[column.name]["nullable"] == column.nullable, f"{name}.{column.name}"
    (unique,) = inspector.get_unique_constraints("log")
    assert unique["column_names"] == ["account", "object_sha256"]
    assert inspector.get_unique_constraints("accounts")[0]["column_names"] == ["account_id"]
    indexes = [index["column_names"] for index in inspector.get_indexes("objects")]
    assert ["account", "memory_id"] in indexes


def test_a_missing_step_is_taken_and_counted(migrating: Connection) -> None:
    def second(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE later (number INTEGER)"))

    migrate(migrating, (*MIGRATIONS, second))
    assert schema_version(migrating) == len(MIGRATIONS) + 1
    assert inspect(migrating).has_table("later")
    migrate(migrating, (*MIGRATIONS, second))  # and not a second time


def test_a_step_that_fails_leaves_the_schema_as_it_was(store: SqlStore) -> None:
    client = opened(store)
    before = state_of(store, client)

    def good(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE later (number INTEGER)"))
        connection.execute(text("DELETE FROM memories"))

    def bad(_: Connection) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), store._database.write() as connection:
        migrate(connection, (*MIGRATIONS, good, bad))
    with store._database.read() as connection:
        assert schema_version(connection) == len(MIGRATIONS)
        assert not inspect(connection).has_table("later")
    assert state_of(store, client) == before


def test_a_newer_schema_is_refused_in_a_sentence(store: SqlStore, url: str) -> None:
    with store._database.write() as connection:
        connection.execute(text("UPDATE store_schema SET version = 99"))
    try:
        with pytest.raises(StoreError) as caught:
            SqlStore(url)
        assert caught.value.code == "newer_schema"
        assert "99" in str(caught.value) and "newer version" in str(caught.value)
    finally:
        with store._database.write() as connection:
            connection.execute(text(f"UPDATE store_schema SET version = {len(MIGRATIONS)}"))


def test_a_file_of_a_newer_schema_is_left_as_it_was(vault: Path, open_store: OpenStore) -> None:
    open_store(f"sqlite:///{vault}").close()
    connection = sqlite3.connect(vault)
    with connection:
        connection.execute("UPDATE store_schema SET version = 99")
    connection.close()
    before = vault.read_bytes()
    with pytest.raises(StoreError) as caught:
        open_store(f"sqlite:///{vault}")
    assert caught.value.code == "newer_schema"
    assert vault.read_bytes() == before
