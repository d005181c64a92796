"""The store of a server: what `SqlStore` does, and who may ask for it.

Keys and invites come in as hashes made by `squirrel_server.api_keys`; nothing in the database lets anybody in.
Times are seconds since 1970 (UTC), days are counted from the same day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from squirrel_server.store import access, statements
from squirrel_server.store.checks import check_append_key
from squirrel_server.store.errors import InviteRefused, TooManyKeys, UnknownAccount, UnknownKey
from squirrel_server.store.interface import Head
from squirrel_server.store.key_set_checks import KeyChange, read_key_change
from squirrel_server.store.registration import add_account, joined_wraps
from squirrel_server.store.sql_store import SqlStore
from squirrel_server.store.upload_checks import check_target
from squirrel_server.store.wire import ID_BYTES, exact

MAX_KEYS = 100  # of one account
SECONDS_OF_DAY = 86_400


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is kept of an API key besides its hash."""

    key_id: str
    scope: str
    created_day: int
    last_used_day: int | None
    expires: int | None


@dataclass(frozen=True, slots=True)
class Bearer:
    """A key that was looked up: its hash to compare, its account, and whether that one is still being moved here."""

    key: KeyRecord
    digest: bytes
    account_id: bytes
    uploading: bool


@dataclass(frozen=True, slots=True)
class Opening:
    """The request that opens an account: see `Store.register`; `upload` is the head a moved log is to reach."""

    account_id: bytes
    wraps: Sequence[bytes]
    previous_keys: bytes | None
    entry: bytes
    append_verifier: bytes
    upload: tuple[int, bytes] | None = None


class ServerStore(SqlStore):
    """A `SqlStore` with API keys and invites; see there for the addresses it takes."""

    def check(self) -> None:
        """Raise `Failed` unless the database answers."""
        with self._database.read() as connection:
            connection.exec_driver_sql("SELECT 1")

    def add_invite(self, digest: bytes, now: int, expires: int) -> None:
        """Keep an invite; those that expired unused are removed."""
        with self._database.write() as connection:
            connection.execute(access.DROP_EXPIRED_INVITES, {"now": now})
            connection.execute(access.ADD_INVITE, {"digest": digest, "expires": expires})

    def open_account(self, opening: Opening, invite: bytes | None, key_id: str, digest: bytes, now: int) -> None:
        """Open an account and give it its first admin key, for one invite.

        invite: its hash; None is no invite. The same invite with the same request again, while the log has one
        entry, replaces the key. `InviteRefused` for any other, `AccountExists` for an account that is there.
        """
        exact(opening.account_id, ID_BYTES, "an account id")
        change = read_key_change(opening.wraps, opening.previous_keys, opening.entry, opening.append_verifier)
        upload = check_target(opening.upload) if opening.upload is not None else None
        if invite is None:
            raise InviteRefused
        with self._database.write() as connection:
            found = connection.execute(access.LOCK_INVITE, {"digest": invite, "now": now}).first()
            if found is None:
                raise InviteRefused
            if found.account is None:
                account = add_account(connection, opening.account_id, change, upload)
            else:
                account = found.account
                _check_same(connection, account, opening, change, upload)
                connection.execute(access.DROP_KEY, {"account": account, "key_id": found.key_id})
            _add_key(connection, account, key_id, digest, "admin", now, None)
            connection.execute(access.USE_INVITE, {"of_invite": invite, "to_account": account, "to_key": key_id})

    def find_key(self, key_id: str) -> Bearer | None:
        """The key with that id, whoever's it is."""
        with self._database.look() as connection:
            row = connection.execute(access.FIND_KEY, {"key_id": key_id}).first()
        if row is None:
            return None
        record = KeyRecord(row.key_id, row.scope, row.created_day, row.last_used_day, row.expires)
        uploading = row.upload_seq is not None and row.head_seq < row.upload_seq
        return Bearer(record, row.digest, row.account_id, uploading)

    def use_key(self, key_id: str, today: int) -> None:
        """Note that the key was used on that day."""
        with self._database.write() as connection:
            connection.execute(access.USE_KEY, {"of_key": key_id, "today": today})

    def keys(self, account_id: bytes) -> list[KeyRecord]:
        """The account's keys, oldest first, expired ones included."""
        with self._database.look() as connection:
            rows = connection.execute(access.LIST_KEYS, {"account_id": account_id}).all()
        return [KeyRecord(*row) for row in rows]

    def add_key(
        self,
        account_id: bytes,
        append_key: bytes,
        key_id: str,
        digest: bytes,
        scope: str,
        now: int,
        expires: int | None,
    ) -> None:
        """Give the account another key; takes the append key, as all that follows. `TooManyKeys` at MAX_KEYS."""
        with self._database.write() as connection:
            account = _account(connection, account_id, append_key)
            count = connection.execute(access.COUNT_KEYS, {"account": account}).scalar_one()
            if count >= MAX_KEYS:
                raise TooManyKeys(f"The account has {MAX_KEYS} API keys, which is the most; revoke one first.")
            _add_key(connection, account, key_id, digest, scope, now, expires)

    def drop_key(self, account_id: bytes, append_key: bytes, key_id: str) -> None:
        """Revoke a key of the account: it is gone at once. `UnknownKey` for one that is not the account's."""
        with self._database.write() as connection:
            account = _account(connection, account_id, append_key)
            if not connection.execute(access.DROP_KEY, {"account": account, "key_id": key_id}).rowcount:
                raise UnknownKey


def _account(connection: Connection, account_id: bytes, append_key: bytes) -> int:
    row = connection.execute(statements.LOCK_ACCOUNT, {"account_id": account_id}).first()
    if row is None:
        raise UnknownAccount
    check_append_key(append_key, row.append_verifier)
    account: int = row.account
    return account


def _add_key(
    connection: Connection, account: int, key_id: str, digest: bytes, scope: str, now: int, expires: int | None
) -> None:
    row = {
        "key_id": key_id,
        "account": account,
        "digest": digest,
        "scope": scope,
        "created_day": now // SECONDS_OF_DAY,
        "last_used_day": None,
        "expires": expires,
    }
    connection.execute(access.ADD_KEY, row)


def _check_same(connection: Connection, account: int, opening: Opening, change: KeyChange, upload: Head | None) -> None:
    """`InviteRefused` unless the account has one entry and was opened by just this request."""
    row = connection.execute(access.FIND_OPENED, {"account": account}).first()
    if row is None:
        raise InviteRefused
    stored = (
        row.account_id,
        row.entry,
        row.wraps,
        row.previous_keys,
        row.append_verifier,
        row.upload_seq,
        row.upload_mac,
    )
    asked = (
        opening.account_id,
        change.entry.raw,
        joined_wraps(change),
        opening.previous_keys,
        opening.append_verifier,
        upload and upload.seq,
        upload and upload.mac,
    )
    if stored != asked:
        raise InviteRefused
