"""An account that is being moved here: what its batches look up and write besides what every append does.

`accounts.upload_seq` stays when the upload is over, so that its last batch can be repeated too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row

from squirrel_server.store import statements
from squirrel_server.store.checks import Posted
from squirrel_server.store.errors import Malformed
from squirrel_server.store.interface import Head
from squirrel_server.store.upload_checks import check_uploaded_key_set
from squirrel_server.store.wire import Entry, parse_entry

_Row = Row[*tuple[Any, ...]]


def was_moved(account: _Row) -> bool:
    """Whether the account came here by an upload, under way or over."""
    return account.upload_seq is not None


def is_uploading(account: _Row) -> bool:
    """Whether the head that was to be reached is not reached yet."""
    return was_moved(account) and account.head_seq < account.upload_seq


def target_of(account: _Row) -> Head:
    """The head an upload ends with."""
    return Head(account.upload_seq, account.upload_mac)


def left_to_store(connection: Connection, account: _Row, batch: Sequence[Posted]) -> Sequence[Posted]:
    """The batch without the entries at its beginning that an earlier try stored; all of it if any differs."""
    first, last = batch[0].entry.seq, batch[-1].entry.seq
    if first > min(account.head_seq, account.upload_seq):
        return batch
    rows = connection.execute(
        statements.ENTRIES_BETWEEN, {"account": account.account, "first": first, "last": last}
    ).scalars()
    stored = list(rows)
    if [posted.entry.raw for posted in batch[: len(stored)]] != stored:
        return batch
    return batch[len(stored) :]


def parts(account: _Row, batch: Sequence[Posted]) -> list[Sequence[Posted]]:
    """The batch up to the head that is to be reached, and what goes on behind it as in any other account.

    An upload that was interrupted may be taken up by an owner who has written more since.
    """
    if not is_uploading(account):
        return [batch]
    count = sum(posted.entry.seq <= account.upload_seq for posted in batch)
    return [part for part in (batch[:count], batch[count:]) if part]


def end_batch(connection: Connection, account: _Row, last: Entry, generation: int) -> None:
    """Note how far the log has come, and at its end that everything is there; `Malformed` undoes the batch."""
    connection.execute(statements.COUNT_GENERATION, {"in_account": account.account, "to_generation": generation})
    if last.seq < account.upload_seq:
        return
    key_change = connection.execute(statements.LAST_KEY_CHANGE, {"account": account.account}).scalar_one()
    check_uploaded_key_set(parse_entry(key_change), account.wraps, account.previous_keys)
    missing = connection.execute(statements.MISSING_OBJECT, {"account": account.account}).scalar()
    if missing is not None:
        raise Malformed(f"The object of entry {missing} was left out, and its memory is not forgotten.")
