"""The SQLite file: what is taken for a vault and what is not, and that no existing file is harmed."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from squirrel_server.store import SqlStore, StoreError, sqlite_database
from squirrel_server.store.faults import BUSY
from tests.squirrel_server.store.builder import Client, make_object
from tests.squirrel_server.store.conftest import OpenStore
from tests.squirrel_server.store.contract import opened, state_of

posix_only = pytest.mark.skipif(os.name != "posix", reason="about POSIX files")


def refused_file(path: Path, code: str) -> StoreError:
    """The error of opening the file, which is then the same to the byte, and the only one in its folder."""
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        SqlStore(f"sqlite:///{path}")
    assert caught.value.code == code, str(caught.value)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    return caught.value


def in_sqlite(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_store_is_there_again_after_it_was_closed(vault: Path, open_store: OpenStore) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    store.append(client.account_id, client.append_key, [client.put()])
    before = state_of(store, client)
    store.close()
    assert os.listdir(vault.parent) == [vault.name]  # the write-ahead log went into the file
    assert state_of(open_store(f"sqlite:///{vault}"), client) == before


def test_accounts_are_listed_in_the_order_of_their_registration(vault: Path, open_store: OpenStore) -> None:
    store = open_store(f"sqlite:///{vault}")
    assert store.account_ids() == []
    clients = [opened(store) for _ in range(3)]
    assert store.account_ids() == [client.account_id for client in clients]


def test_a_file_of_no_bytes_counts_as_new(vault: Path, open_store: OpenStore) -> None:
    vault.touch()
    assert open_store(f"sqlite:///{vault}").account_ids() == []


def test_a_database_of_no_tables_counts_as_new(vault: Path, open_store: OpenStore) -> None:
    # What is left if the process that made it was killed before its first commit.
    in_sqlite(vault, "PRAGMA journal_mode = WAL", "VACUUM")
    assert open_store(f"sqlite:///{vault}").account_ids() == []


def test_eight_that_make_the_same_store_at_once_share_it(vault: Path, open_store: OpenStore) -> None:
    together = threading.Barrier(8)

    def make(_: int) -> SqlStore:
        together.wait()
        return open_store(f"sqlite:///{vault}")

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(make, range(8)))
    clients = [opened(store) for store in stores]
    assert stores[0].account_ids() == [client.account_id for client in clients]


def test_a_file_that_is_not_there_is_made_only_if_wanted(vault: Path) -> None:
    with pytest.raises(StoreError) as caught:
        SqlStore(f"sqlite:///{vault}", create=False)
    assert caught.value.code == "unavailable" and str(vault) in str(caught.value)
    assert not vault.exists()
    SqlStore(f"sqlite:///{vault}").close()
    SqlStore(f"sqlite:///{vault}", create=False).close()


@posix_only
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_files_are_their_owners_whatever_the_umask(vault: Path, open_store: OpenStore, umask: int) -> None:
    before = os.umask(umask)
    try:
        opened(open_store(f"sqlite:///{vault}"))
    finally:
        os.umask(before)
    files = list(vault.parent.iterdir())
    assert {path.name for path in files} == {"vault.db", "vault.db-wal", "vault.db-shm"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@pytest.mark.parametrize("name", ["with space.db", "per%20cent.db", "question?.db", "hash#.db", "Ünïcödé.db"])
def test_a_path_is_taken_literally(tmp_path: Path, open_store: OpenStore, name: str) -> None:
    if sys.platform == "win32" and "?" in name:
        pytest.skip("no such names on Windows")
    open_store(f"sqlite:///{tmp_path / name}").close()
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///vault.db",
        "sqlite:///",
        "mysql://x",
        "",
        "/a.db",
        "sqlite:////a\0.db",
    ],
)
def test_an_address_that_names_no_absolute_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as caught:
        SqlStore(url)
    assert caught.value.code == "unsupported_url"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content", [b"x", b"\0", b"xy", b"not a database" * 500, bytes(8_192), b"SQLite format 3\0" * 300]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(vault: Path, content: bytes) -> None:
    vault.write_bytes(content)
    refused_file(vault, "not_a_vault")


def test_another_programs_database_is_refused_and_left_alone(vault: Path) -> None:
    in_sqlite(vault, "CREATE TABLE accounts (account INTEGER)")
    refused_file(vault, "not_a_vault")


def test_another_programs_empty_database_is_refused_and_left_alone(vault: Path) -> None:
    in_sqlite(vault, "PRAGMA application_id = 252006675", "VACUUM")
    refused_file(vault, "not_a_vault")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        SqlStore(f"sqlite:///{tmp_path}")
    assert caught.value.code == "unavailable"


@posix_only
def test_a_fifo_is_refused_without_waiting_for_it(vault: Path) -> None:
    os.mkfifo(vault)
    with pytest.raises(StoreError) as caught:
        SqlStore(f"sqlite:///{vault}")
    assert caught.value.code == "unavailable"


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        SqlStore(f"sqlite:///{tmp_path}/none/vault.db")
    assert caught.value.code == "unavailable"
    assert os.listdir(tmp_path) == []


def test_damaged_pages_are_reported_as_such_and_left_alone(vault: Path, open_store: OpenStore) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    store.append(client.account_id, client.append_key, [client.put(body=make_object(60_000))])
    store.close()
    content = vault.read_bytes()
    damaged = content[:4_096] + bytes(byte ^ 0xA5 for byte in content[4_096:])
    vault.write_bytes(damaged)
    codes = set()
    try:
        store = open_store(f"sqlite:///{vault}")
        state_of(store, client)
    except StoreError as error:
        codes.add(error.code)
    assert codes == {"not_a_vault"}
    assert vault.read_bytes() == damaged


@posix_only
@pytest.mark.parametrize("replaced", [False, True])
def test_a_vault_that_is_moved_away_while_in_use_takes_no_more_writes(
    vault: Path, open_store: OpenStore, replaced: bool
) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    vault.rename(vault.with_name("elsewhere.db"))
    if replaced:
        SqlStore(f"sqlite:///{vault}").close()
    with pytest.raises(StoreError) as caught:
        store.append(client.account_id, client.append_key, [client.put()])
    assert caught.value.code == "unavailable"
    with pytest.raises(StoreError) as caught:
        store.account(client.account_id)
    assert caught.value.code == "unavailable"
    assert vault.exists() == replaced


def test_a_closed_store_says_so(vault: Path, open_store: OpenStore) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    store.close()
    store.close()
    for call in (
        lambda: store.account(client.account_id),
        lambda: store.append(client.account_id, client.append_key, [client.copy().put()]),
    ):
        with pytest.raises(StoreError) as caught:
            call()
        assert caught.value.code == "unavailable"


def test_a_lock_that_is_never_released_ends_in_unavailable_and_then_all_is_well(
    vault: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "BUSY_SECONDS", 0.05)
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    other = sqlite3.connect(vault, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        before = state_of(store, client)  # readers do not wait
        with pytest.raises(StoreError) as caught:
            store.append(client.account_id, client.append_key, [client.copy().put()])
        assert (caught.value.code, str(caught.value)) == ("unavailable", BUSY)
        assert state_of(store, client) == before
    finally:
        other.close()
    assert store.append(client.account_id, client.append_key, [client.put()]) == client.head


def test_commits_are_durable_and_erasures_thorough_by_setting(vault: Path, open_store: OpenStore) -> None:
    store = open_store(f"sqlite:///{vault}")
    with store._database.read() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}


def test_registering_in_one_process_is_seen_by_another_store_on_the_file(vault: Path, open_store: OpenStore) -> None:
    one, other = (open_store(f"sqlite:///{vault}") for _ in range(2))
    client: Client = opened(one)
    other.append(client.account_id, client.append_key, [client.put()])
    assert one.account(client.account_id).head == client.head


@pytest.mark.skipif(sys.platform != "linux", reason="about POSIX modes, and how root does without its privileges")
@pytest.mark.parametrize("beside", [False, True])
def test_a_folder_that_cannot_be_written_is_named(vault: Path, open_store: OpenStore, beside: bool) -> None:
    open_store(f"sqlite:///{vault}").close()
    if beside:  # where only its log cannot be made
        Path(f"{vault}-wal").mkdir()
    else:
        vault.parent.chmod(0o500)
    program = (
        "import sys; from squirrel_server.store import SqlStore, StoreError\n"
        "try: SqlStore(sys.argv[1])\n"
        "except StoreError as error: print(error.code, error)"
    )
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    try:
        ran = subprocess.run(
            [*drop, sys.executable, "-c", program, f"sqlite:///{vault}"], capture_output=True, text=True, check=True
        )
    finally:
        vault.parent.chmod(0o700)
    assert ran.stdout.startswith("unavailable ") and str(vault) in ran.stdout
    assert ("its folder" in ran.stdout and "cannot be written" in ran.stdout) != beside
