"""The rows of a new account, written inside a transaction that somebody else holds."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from squirrel_server.store import statements
from squirrel_server.store.errors import AccountExists
from squirrel_server.store.interface import Head
from squirrel_server.store.key_set_checks import KeyChange, check_first_key_set
from squirrel_server.store.upload_checks import check_uploaded_account


def add_account(connection: Connection, account_id: bytes, change: KeyChange, upload: Head | None = None) -> int:
    """Check and store the key set an account begins with, and its entry; the account's number comes back.

    upload: the head the account is going to be brought to; the key set is the one in force there.
    """
    if connection.execute(statements.FIND_HEAD, {"account_id": account_id}).first():
        raise AccountExists
    if upload is None or upload == (change.entry.seq, change.entry.mac):  # a log of one entry is complete with it
        check_first_key_set(change, account_id)
    else:
        check_uploaded_account(change, account_id, upload)
    row = {
        "account_id": account_id,
        "head_seq": change.entry.seq,
        "head_mac": change.entry.mac,
        "generation": change.entry.revision,
        "wraps": joined_wraps(change),
        "previous_keys": change.previous_keys,
        "append_verifier": change.append_verifier,
        "upload_seq": upload and upload.seq,
        "upload_mac": upload and upload.mac,
    }
    try:
        added = connection.execute(statements.ADD_ACCOUNT, row)
    except IntegrityError:
        # PostgreSQL only: somebody else registered it since we looked.
        raise AccountExists from None
    assert added.inserted_primary_key is not None
    account: int = added.inserted_primary_key[0]
    log_key_change(connection, account, change)
    return account


def log_key_change(connection: Connection, account: int, change: KeyChange) -> Head:
    """Add the entry of a key set to the log; it is the new head, which comes back."""
    entry = change.entry
    row = {"account": account, "seq": entry.seq, "entry": entry.raw, "memory_id": None, "object_sha256": None}
    connection.execute(statements.ADD_ENTRIES, [row])
    return Head(entry.seq, entry.mac)


def joined_wraps(change: KeyChange) -> bytes:
    """The wrap records of a request one after the other, as they are stored."""
    return b"".join(wrap.raw for wrap in change.wraps)
