"""What an append looks up before its batch is checked, and what it writes afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from squirrel_server.store import statements
from squirrel_server.store.checks import MemoryState, Posted
from squirrel_server.store.errors import Malformed
from squirrel_server.store.wire import Op

_CHUNK = 500  # values of one IN list: well below the number of parameters any database takes


def look_up(connection: Connection, account: int, batch: Sequence[Posted]) -> dict[bytes, MemoryState]:
    """The states of those memories of the batch that exist."""
    memories: dict[bytes, MemoryState] = {}
    for ids in _chunks({posted.entry.memory_id for posted in batch if posted.entry.op < Op.REWRAP}):
        rows = connection.execute(statements.FIND_MEMORIES, {"account": account, "ids": ids})
        memories.update((memory_id, MemoryState(*state)) for memory_id, *state in rows)
    return memories


def write_batch(
    connection: Connection,
    account: int,
    batch: Sequence[Posted],
    changed: Mapping[bytes, MemoryState],
    existing: Set[bytes],
) -> None:
    """Entries, objects and new states of a checked batch; the objects of forgotten memories are erased.

    `Malformed` for an object the account had before, erased ones included: the log keeps their hashes.
    changed: the states after the batch. existing: the memories among them that were there before.
    """
    execute = connection.execute
    entries = [
        {
            "account": account,
            "seq": entry.seq,
            "entry": entry.raw,
            "memory_id": entry.memory_id if entry.op < Op.REWRAP else None,
            "object_sha256": digest,
        }
        for entry, _, digest in batch
    ]
    try:
        execute(statements.ADD_ENTRIES, entries)
    except IntegrityError:
        # The seqs are next, as was checked under the account's lock; so it is the hash of an object.
        raise Malformed("The batch brings an object that this account had before.") from None
    # What the same batch forgets again need not be written first.
    bodies: list[dict[str, Any]] = [
        {"account": account, "seq": entry.seq, "memory_id": entry.memory_id, "body": body}
        for entry, body, _ in batch
        if body is not None and not changed[entry.memory_id].forgotten
    ]
    if bodies:
        execute(statements.ADD_OBJECTS, bodies)
    added = [
        {"account": account, "memory_id": memory_id, **state._asdict()}
        for memory_id, state in changed.items()
        if memory_id not in existing
    ]
    if added:
        execute(statements.ADD_MEMORIES, added)
    moved = [
        {
            "in_account": account,
            "in_memory": memory_id,
            "to_revision": state.revision,
            "to_forgotten": state.forgotten,
            "to_seq": state.seq,
        }
        for memory_id, state in changed.items()
        if memory_id in existing
    ]
    if moved:
        execute(statements.MOVE_MEMORIES, moved)
    erased = [
        {"account": account, "memory_id": memory_id}
        for memory_id, state in changed.items()
        if state.forgotten and memory_id in existing
    ]
    if erased:
        execute(statements.ERASE_OBJECTS, erased)


def _chunks(values: set[bytes]) -> Iterator[list[bytes]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), _CHUNK):
        yield ordered[start : start + _CHUNK]
