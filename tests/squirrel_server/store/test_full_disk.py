"""A full disk refuses the write, keeps what was there, and is forgotten once there is room."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from squirrel_server.store import StoreError
from squirrel_server.store.sqlite_database import SqliteDatabase
from tests.squirrel_server.store.builder import make_object
from tests.squirrel_server.store.conftest import OpenStore
from tests.squirrel_server.store.contract import opened, refused_append

LIMITED = """
import resource, signal, sys
from squirrel_server.store import SqlStore, StoreError
from tests.squirrel_server.store.builder import make_object
from tests.squirrel_server.store.contract import opened, refused_append, state_of

store = SqlStore(sys.argv[1])
client = opened(store)
store.append(client.account_id, client.append_key, [client.put()])
most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most[1]))
refused_append(store, client, "full", *[client.copy().put(body=make_object(65_536))])
ahead = client.copy()
refused_append(store, client, "full", *[ahead.put(body=make_object(20_000)) for _ in range(20)])
resource.setrlimit(resource.RLIMIT_FSIZE, most)
pairs = [client.put(body=make_object(20_000)) for _ in range(20)]
assert store.append(client.account_id, client.append_key, pairs) == client.head
assert [body for _, body in state_of(store, client).log[2:]] == [body for _, body in pairs]
store.close()
"""


def test_a_database_that_may_not_grow_is_full_and_works_again_when_it_may(
    vault: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    store.close()
    connect = SqliteDatabase._connect

    def limited(database: SqliteDatabase) -> sqlite3.Connection:
        connection = connect(database)
        connection.execute("PRAGMA max_page_count = 30")
        return connection

    monkeypatch.setattr(SqliteDatabase, "_connect", limited)
    store = open_store(f"sqlite:///{vault}")
    ahead = client.copy()
    refused_append(store, client, "full", *[ahead.put(body=make_object(65_536)) for _ in range(3)])
    assert store.append(client.account_id, client.append_key, [client.put()]) == client.head  # small enough
    store.close()
    monkeypatch.undo()
    store = open_store(f"sqlite:///{vault}")
    pairs = [client.put(body=make_object(65_536)) for _ in range(3)]
    assert store.append(client.account_id, client.append_key, pairs) == client.head


def test_a_new_store_that_does_not_fit_is_full_and_can_be_made_later(
    vault: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = SqliteDatabase._connect

    def limited(database: SqliteDatabase) -> sqlite3.Connection:
        connection = connect(database)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(SqliteDatabase, "_connect", limited)
        with pytest.raises(StoreError) as caught:
            open_store(f"sqlite:///{vault}")
        assert caught.value.code == "full"
    assert open_store(f"sqlite:///{vault}").account_ids() == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_write_that_fails_halfway_leaves_nothing_and_the_store_works_afterwards(
    vault: Path, child_environment: dict[str, str]
) -> None:
    command = [sys.executable, "-c", LIMITED, f"sqlite:///{vault}"]
    child = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")
