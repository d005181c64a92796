"""A backup of a database that is in use: whole, private, or not there at all."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from squirrel_server.backup import BackupFailed, back_up
from squirrel_server.store import HeadMoved, SqlStore
from tests.squirrel_server.store.builder import make_object
from tests.squirrel_server.store.contract import opened, state_of


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "server"
    folder.mkdir()
    return folder / "server.db"


def test_a_backup_of_an_open_database_holds_what_was_committed(source: Path, tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{source}")
    client = opened(store)
    store.append(client.account_id, client.append_key, [client.put()])
    size = back_up(source, tmp_path / "copy.db")  # its newest pages are in the write-ahead log still
    before = state_of(store, client)
    store.append(client.account_id, client.append_key, [client.put()])
    store.close()
    assert size == (tmp_path / "copy.db").stat().st_size
    copy = SqlStore(f"sqlite:///{tmp_path / 'copy.db'}", create=False)
    assert state_of(copy, client) == before
    copy.close()


def test_a_backup_while_somebody_writes_is_one_moment_of_it(source: Path, tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{source}")
    client = opened(store)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            try:
                store.append(client.account_id, client.append_key, [client.put(body=make_object(5_000))])
            except HeadMoved:
                raise AssertionError from None

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            back_up(source, tmp_path / f"{number}.db")
    finally:
        done.set()
        writer.join()
    store.close()
    for number in range(3):
        copy = SqlStore(f"sqlite:///{tmp_path / f'{number}.db'}", create=False)
        found = state_of(copy, client)
        assert found.account.head == (len(found.log), found.log[-1][0][106:])
        copy.close()


@pytest.mark.skipif(os.name != "posix", reason="about POSIX files")
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_a_backup_is_its_owners_alone_and_leaves_nothing_beside_it(source: Path, tmp_path: Path, umask: int) -> None:
    SqlStore(f"sqlite:///{source}").close()
    target = tmp_path / "backups" / "copy.db"
    target.parent.mkdir()
    before = os.umask(umask)
    try:
        back_up(source, target)
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert os.listdir(target.parent) == ["copy.db"]


def test_an_earlier_backup_is_replaced(source: Path, tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{source}")
    back_up(source, tmp_path / "copy.db")
    client = opened(store)
    back_up(source, tmp_path / "copy.db")
    store.close()
    copy = SqlStore(f"sqlite:///{tmp_path / 'copy.db'}", create=False)
    assert copy.account_ids() == [client.account_id]
    copy.close()


@pytest.mark.parametrize("content", [b"", b"a letter", bytes(5_000)])
def test_another_file_is_not_replaced(source: Path, tmp_path: Path, content: bytes) -> None:
    SqlStore(f"sqlite:///{source}").close()
    target = tmp_path / "letter"
    target.write_bytes(content)
    with pytest.raises(BackupFailed, match="no earlier backup"):
        back_up(source, target)
    assert target.read_bytes() == content
    assert set(os.listdir(tmp_path)) == {"server", "letter"}


def test_a_database_is_not_its_own_backup(source: Path) -> None:
    SqlStore(f"sqlite:///{source}").close()
    before = source.read_bytes()
    with pytest.raises(BackupFailed):
        back_up(source, source)
    assert source.read_bytes() == before


def test_what_is_no_database_of_ours_is_not_backed_up(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (number)")
    connection.close()
    with pytest.raises(BackupFailed, match="no Squirrel database"):
        back_up(other, tmp_path / "copy.db")
    with pytest.raises(BackupFailed, match="cannot be read"):
        back_up(tmp_path / "missing.db", tmp_path / "copy.db")
    assert os.listdir(tmp_path) == ["other.db"]


def test_a_folder_that_is_not_there_is_told(source: Path, tmp_path: Path) -> None:
    SqlStore(f"sqlite:///{source}").close()
    with pytest.raises(BackupFailed, match="cannot be written"):
        back_up(source, tmp_path / "nowhere" / "copy.db")


def test_a_damaged_database_is_not_kept_as_a_backup(source: Path, tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{source}")
    client = opened(store)
    store.append(client.account_id, client.append_key, [client.put(body=make_object(60_000)) for _ in range(5)])
    store.close()
    data = bytearray(source.read_bytes())
    for page in range(3, len(data) // 4_096):
        data[page * 4_096 : page * 4_096 + 64] = b"\xff" * 64
    source.write_bytes(data)
    with pytest.raises(BackupFailed):
        back_up(source, tmp_path / "copy.db")
    assert os.listdir(tmp_path) == ["server"]
