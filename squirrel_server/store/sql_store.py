"""The store over SQL: looks things up, lets the checks decide, and writes what they let through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from sqlalchemy import Connection, Row

from squirrel_server.store import statements
from squirrel_server.store.batch_writer import look_up, write_batch
from squirrel_server.store.checks import (
    MemoryState,
    Posted,
    check_append_key,
    check_batch,
    check_head,
    check_regular,
    read_batch,
)
from squirrel_server.store.database import open_database
from squirrel_server.store.errors import Malformed, UnknownAccount, UnknownObject
from squirrel_server.store.interface import (
    MAX_ENTRIES,
    MAX_PAGE_BYTES,
    AccountRecord,
    Head,
    LogPage,
    Objects,
)
from squirrel_server.store.key_set_checks import StoredKeySet, check_key_change, read_key_change, split_wraps
from squirrel_server.store.registration import add_account, joined_wraps, log_key_change
from squirrel_server.store.upload_checks import check_uploaded_batch
from squirrel_server.store.uploads import end_batch, is_uploading, left_to_store, parts, target_of, was_moved
from squirrel_server.store.wire import ENTRY_BYTES, HASH_BYTES, ID_BYTES, exact

_Row = Row[*tuple[Any, ...]]

_FETCH = 64  # rows: a page that ends at its size has read at most 4 MiB too much


class SqlStore:
    """A `Store` in a SQLite file or a PostgreSQL database; one object for all threads of a process.

    url: `sqlite:///` and an absolute path, or `postgresql+psycopg://user@host/name`; see `open_database`.
    create: whether a SQLite file that is not there is made (`Unavailable` otherwise).
    Opening makes or migrates the tables; it raises `UnsupportedUrl`, `NewerSchema`, `NotAVault`,
    `Unavailable` or `Full`, and then has left what it found as it was.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._database = open_database(url, create=create)

    def register(
        self,
        account_id: bytes,
        wraps: Sequence[bytes],
        previous_keys: bytes | None,
        entry: bytes,
        append_verifier: bytes,
    ) -> Head:
        """See `Store.register`."""
        _account_id(account_id)
        change = read_key_change(wraps, previous_keys, entry, append_verifier)
        with self._database.write() as connection:
            add_account(connection, account_id, change)
        return Head(change.entry.seq, change.entry.mac)

    def account(self, account_id: bytes) -> AccountRecord:
        """See `Store.account`."""
        _account_id(account_id)
        with self._database.look() as connection:
            row = _found(connection.execute(statements.FIND_ACCOUNT, {"account_id": account_id}).first())
        return AccountRecord(account_id, split_wraps(row.wraps), row.previous_keys, _head(row))

    def account_ids(self) -> list[bytes]:
        """All accounts, in the order of their registration. An embedded vault has one."""
        with self._database.look() as connection:
            return list(connection.execute(statements.ACCOUNT_IDS).scalars())

    def read_log(self, account_id: bytes, after: int, limit: int = MAX_ENTRIES, objects: Objects = "latest") -> LogPage:
        """See `Store.read_log`."""
        _account_id(account_id)
        if type(after) is not int or after < 0 or type(limit) is not int:
            raise Malformed("A page of the log is asked for by a seq from 0 and a number of entries.")
        if objects not in get_args(Objects):
            raise Malformed("The objects of a page are the latest or all.")
        with self._database.read() as connection:
            found = _found(connection.execute(statements.FIND_HEAD, {"account_id": account_id}).first())
            head = _head(found)
            if after >= head.seq:
                return LogPage((), head, False)
            rows = connection.execute(
                statements.READ_LATEST if objects == "latest" else statements.READ_ALL,
                {"account": found.account, "after": after, "limit": max(1, min(limit, MAX_ENTRIES))},
                # Without it psycopg fetches all rows of the limit before the first is looked at.
                execution_options={"stream_results": True, "max_row_buffer": _FETCH},
            )
            entries = _fill(rows.partitions(_FETCH))
            rows.close()
        return LogPage(entries, head, after + len(entries) < head.seq)

    def append(self, account_id: bytes, append_key: bytes, entries: Sequence[tuple[bytes, bytes | None]]) -> Head:
        """See `Store.append`."""
        _account_id(account_id)
        batch: Sequence[Posted] = read_batch(entries)
        with self._database.write() as connection:
            row = _locked(connection, account_id)
            if not was_moved(row):
                check_regular(batch)
            check_append_key(append_key, row.append_verifier)
            if was_moved(row) and not (batch := left_to_store(connection, row, batch)):
                return _head(row)  # an upload's batch was repeated
            changed: dict[bytes, MemoryState] = {}
            for number, part in enumerate(parts(row, batch)):
                if number:
                    row = _locked(connection, account_id)  # as the first part left it
                changed |= _add(connection, row, part)
                head = _move_head(connection, row.account, part[-1].entry.seq, part[-1].entry.mac)
        if any(state.forgotten for state in changed.values()):
            self._database.scrub()
        return head

    def replace_key_set(
        self,
        account_id: bytes,
        append_key: bytes,
        wraps: Sequence[bytes],
        previous_keys: bytes | None,
        entry: bytes,
        append_verifier: bytes | None,
    ) -> Head:
        """See `Store.replace_key_set`."""
        _account_id(account_id)
        change = read_key_change(wraps, previous_keys, entry, append_verifier)
        with self._database.write() as connection:
            row = _lock(connection, account_id, append_key)
            check_head(change.entry, _head(row))
            stored = StoredKeySet(row.generation, row.wraps, row.previous_keys, row.append_verifier)
            check_key_change(change, account_id, _head(row), stored)
            connection.execute(
                statements.CHANGE_KEY_SET,
                {
                    "in_account": row.account,
                    "to_generation": change.entry.revision,
                    "to_wraps": joined_wraps(change),
                    "to_previous_keys": change.previous_keys,
                    "to_append_verifier": change.append_verifier or row.append_verifier,
                },
            )
            log_key_change(connection, row.account, change)
            return _move_head(connection, row.account, change.entry.seq, change.entry.mac)

    def object(self, account_id: bytes, sha256: bytes) -> bytes:
        """See `Store.object`."""
        _account_id(account_id)
        exact(sha256, HASH_BYTES, "the hash of an object")
        with self._database.read() as connection:
            found = _found(connection.execute(statements.FIND_HEAD, {"account_id": account_id}).first())
            body: bytes | None = connection.execute(
                statements.FIND_OBJECT, {"account": found.account, "sha256": sha256}
            ).scalar()
        if body is None:
            raise UnknownObject
        return body

    def delete_account(self, account_id: bytes, append_key: bytes) -> None:
        """See `Store.delete_account`."""
        _account_id(account_id)
        with self._database.write() as connection:
            row = _lock(connection, account_id, append_key)
            for statement in statements.ERASE_ACCOUNT:
                connection.execute(statement, {"account": row.account})
        self._database.scrub()

    def retire(self, account_id: bytes, head: Head, path: str) -> bool:
        """Rename a SQLite file to `path` if that is its account's head; False, and nothing done, if it has moved on.

        After True no process writes to it any more, wherever it is: a commit behind that head would be lost to
        whoever was told it. If it fails halfway it may be repeated, and nobody writes in between. `Unavailable`
        if there is a file at `path`, or if others do not let go of this one.
        """
        _account_id(account_id)

        def at_head(connection: Connection) -> bool:
            row = _found(connection.execute(statements.FIND_HEAD, {"account_id": account_id}).first())
            return bool(_head(row) == head)

        return self._database.retire(path, at_head)

    def close(self) -> None:
        """See `Store.close`."""
        self._database.close()


def _account_id(account_id: bytes) -> None:
    exact(account_id, ID_BYTES, "an account id")


def _found(row: _Row | None) -> _Row:
    if row is None:
        raise UnknownAccount
    return row


def _head(row: _Row) -> Head:
    return Head(row.head_seq, row.head_mac)


def _lock(connection: Connection, account_id: bytes, append_key: bytes) -> _Row:
    """`_locked`, for one who has the append key."""
    row = _locked(connection, account_id)
    check_append_key(append_key, row.append_verifier)
    return row


def _locked(connection: Connection, account_id: bytes) -> _Row:
    """The account's row; other writers wait until the transaction ends."""
    return _found(connection.execute(statements.LOCK_ACCOUNT, {"account_id": account_id}).first())


def _add(connection: Connection, row: _Row, batch: Sequence[Posted]) -> dict[bytes, MemoryState]:
    """Check a batch and write it; the new states of its memories come back."""
    head = _head(row)
    uploading = is_uploading(row)
    if not uploading:
        check_regular(batch)
    check_head(batch[0].entry, head)
    memories = look_up(connection, row.account, batch)
    if uploading:
        changed, generation = check_uploaded_batch(batch, head, target_of(row), memories, row.generation)
    else:
        changed = check_batch(batch, head, memories)
    write_batch(connection, row.account, batch, changed, memories.keys())
    if uploading:
        end_batch(connection, row, batch[-1].entry, generation)
    return changed


def _move_head(connection: Connection, account: int, seq: int, mac: bytes) -> Head:
    connection.execute(statements.MOVE_HEAD, {"in_account": account, "to_seq": seq, "to_mac": mac})
    return Head(seq, mac)


def _fill(partitions: Iterable[Sequence[_Row]]) -> tuple[tuple[bytes, bytes | None], ...]:
    """As many rows as a page holds; the first one fits whatever its size."""
    entries: list[tuple[bytes, bytes | None]] = []
    size = 0
    for rows in partitions:
        for entry, body in rows:
            size += ENTRY_BYTES + len(body or b"")
            if entries and size >= MAX_PAGE_BYTES:
                return tuple(entries)
            entries.append((entry, body))
    return tuple(entries)
