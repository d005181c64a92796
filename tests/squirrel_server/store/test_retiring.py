"""A vault file is set aside once its account has moved: nothing is written behind the head that moved with it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from squirrel_server.store import Head, SqlStore, StoreError, sqlite_database
from tests.squirrel_server.store.builder import Client
from tests.squirrel_server.store.conftest import OpenStore
from tests.squirrel_server.store.contract import opened, state_of


@pytest.fixture
def aside(tmp_path: Path) -> str:
    return str(tmp_path / "moved.db")


def head_of(client: Client) -> Head:
    return Head(*client.head)


def test_the_file_is_renamed_with_everything_in_it(vault: Path, open_store: OpenStore, aside: str) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    store.append(client.account_id, client.append_key, [client.put(), client.put()])
    before = state_of(store, client)
    assert store.retire(client.account_id, head_of(client), aside)
    assert os.listdir(vault.parent) == ["moved.db"]
    assert state_of(open_store(f"sqlite:///{aside}"), client) == before


def test_a_head_that_moved_on_leaves_everything_as_it_was(vault: Path, open_store: OpenStore, aside: str) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    old = head_of(client)
    store.append(client.account_id, client.append_key, [client.put()])
    assert not store.retire(client.account_id, old, aside)
    assert not os.path.exists(aside)
    assert store.append(client.account_id, client.append_key, [client.put()]) == client.head


def test_nobody_writes_afterwards_by_whatever_way(vault: Path, open_store: OpenStore, aside: str) -> None:
    store, other = open_store(f"sqlite:///{vault}"), open_store(f"sqlite:///{vault}")
    client = opened(store)
    other.append(client.account_id, client.append_key, [client.put()])
    assert store.retire(client.account_id, head_of(client), aside)
    for writer in (store, other, open_store(f"sqlite:///{aside}")):
        with pytest.raises(StoreError) as caught:
            writer.append(client.account_id, client.append_key, [client.copy().put()])
        assert caught.value.code == "unavailable"


def test_what_was_acknowledged_meanwhile_is_in_the_file(vault: Path, open_store: OpenStore, aside: str) -> None:
    store, other = open_store(f"sqlite:///{vault}"), open_store(f"sqlite:///{vault}")
    client = opened(store)
    acknowledged, written = [client.mac], threading.Event()

    def write() -> None:
        mine = client.copy()
        while True:
            try:
                acknowledged.append(other.append(mine.account_id, mine.append_key, [mine.put()]).mac)
            except StoreError as error:
                assert error.code == "unavailable"
                return
            if len(acknowledged) > 20:
                written.set()

    writer = threading.Thread(target=write)
    writer.start()
    written.wait()
    while not store.retire(client.account_id, store.account(client.account_id).head, aside):
        pass
    writer.join()
    log = state_of(open_store(f"sqlite:///{aside}"), client).log
    assert [entry[106:] for entry, _ in log] == acknowledged


def test_one_that_failed_halfway_is_repeated_and_nothing_is_written_in_between(
    vault: Path, open_store: OpenStore, aside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)

    def fail(*_: object) -> None:
        raise PermissionError(13, "not now")

    with monkeypatch.context() as patch, pytest.raises(StoreError) as caught:
        patch.setattr(sqlite_database.os, "rename", fail)
        store.retire(client.account_id, head_of(client), aside)
    assert caught.value.code == "unavailable"
    again = open_store(f"sqlite:///{vault}")
    with pytest.raises(StoreError):
        again.append(client.account_id, client.append_key, [client.copy().put()])
    assert again.account(client.account_id).head == client.head
    assert again.retire(client.account_id, head_of(client), aside)
    assert os.path.exists(aside) and not vault.exists()


def test_a_file_that_is_in_the_way_is_kept(vault: Path, open_store: OpenStore, aside: str) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    Path(aside).write_bytes(b"mine")
    with pytest.raises(StoreError) as caught:
        store.retire(client.account_id, head_of(client), aside)
    assert caught.value.code == "unavailable" and Path(aside).read_bytes() == b"mine"
    assert store.append(client.account_id, client.append_key, [client.put()]) == client.head


def test_a_server_is_not_set_aside(postgresql: str) -> None:
    store = SqlStore(postgresql)
    client = opened(store)
    with pytest.raises(StoreError) as caught:
        store.retire(client.account_id, head_of(client), "elsewhere.db")
    store.close()
    assert caught.value.code == "unavailable"
