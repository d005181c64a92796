"""What a store checks of a batch of puts and tombstones, without any key. Pure: no I/O, no clock.

`read_batch` and `check_regular` are the shape of a request, before anybody is believed; `check_batch` is the rest,
once the append key fits and the batch starts at the head.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from hmac import compare_digest
from typing import NamedTuple

from squirrel_server.store.errors import (
    AppendDenied,
    Forgotten,
    HeadMoved,
    Malformed,
    TooLarge,
    UnknownMemory,
)
from squirrel_server.store.interface import MAX_BATCH_BYTES, MAX_ENTRIES, Head
from squirrel_server.store.wire import ENTRY_BYTES, HASH_BYTES, Entry, ObjectType, Op, parse_entry, parse_object

_BROUGHT = "a put comes with its object, anything else without one."


class Posted(NamedTuple):
    """An entry as it was sent, its object if it brings one, and the SHA-256 that a put's object has or had."""

    entry: Entry
    object: bytes | None
    digest: bytes | None


class MemoryState(NamedTuple):
    """Where a memory stands: its last revision, whether that is a tombstone, and its seq in the log."""

    revision: int
    forgotten: bool
    seq: int


def read_batch(entries: Sequence[tuple[bytes, bytes | None]]) -> list[Posted]:
    """The batch, parsed and hashed; `Malformed` or `TooLarge` before any of it is compared with the store.

    Hashing is done here, though compared later, because here no lock is held yet. What only an upload may bring,
    `check_regular` refuses once it is known that there is none.
    """
    if not entries:
        raise Malformed("The batch is empty.")
    if len(entries) > MAX_ENTRIES:
        raise TooLarge(f"The batch has {len(entries):,} entries; at most {MAX_ENTRIES:,} are taken at once.")
    size = 0
    batch = []
    for raw, body in entries:
        entry = parse_entry(raw)
        if body is not None and (entry.op != Op.PUT or type(body) is not bytes):
            raise Malformed(f"Entry {entry.seq}: {_BROUGHT}")
        size += ENTRY_BYTES + len(body or b"")
        if size > MAX_BATCH_BYTES:
            raise TooLarge(f"The batch has more than {MAX_BATCH_BYTES:,} bytes.")
        batch.append(Posted(entry, body, _digest(entry, body)))
    return batch


def check_regular(batch: Sequence[Posted]) -> None:
    """`Malformed` for what only an upload may bring: entries of key sets, and puts without their object."""
    for entry, body, _ in batch:
        if entry.op not in (Op.PUT, Op.TOMBSTONE):
            raise Malformed(f"Entry {entry.seq} changes the key set, which is not done by an append.")
        if entry.op == Op.PUT and body is None:
            raise Malformed(f"Entry {entry.seq}: {_BROUGHT}")


def check_append_key(append_key: object, verifier: bytes) -> None:
    """`AppendDenied` unless SHA-256 of the key is the verifier; compared in constant time."""
    if type(append_key) is not bytes or len(append_key) != HASH_BYTES:
        raise AppendDenied  # absent: even if the verifier is the hash of nothing
    if not compare_digest(hashlib.sha256(append_key).digest(), verifier):
        raise AppendDenied


def check_head(entry: Entry, head: Head) -> None:
    """The compare-and-swap: `HeadMoved` unless the entry was made for exactly this head."""
    if entry.prev_mac != head.mac:
        raise HeadMoved(head)


def check_batch(batch: Sequence[Posted], head: Head, memories: Mapping[bytes, MemoryState]) -> dict[bytes, MemoryState]:
    """Everything about a batch that depends on what is stored; the new states of its memories come back.

    memories: the states of those memories of the batch that exist. One rule is left to the log's own unique
    key: that no object was in the account before this batch.
    """
    changed: dict[bytes, MemoryState] = {}
    hashes: set[bytes] = set()
    seq, mac = head
    for posted in batch:
        seq += 1
        check_link(posted.entry, seq, mac)
        mac = posted.entry.mac
        check_memory(posted, memories, changed, hashes)
    return changed


def check_memory(
    posted: Posted, memories: Mapping[bytes, MemoryState], changed: dict[bytes, MemoryState], hashes: set[bytes]
) -> None:
    """A put or a tombstone against what was there before it.

    changed, hashes: what the entries before it in its batch made; this one is added to both.
    """
    entry, body, digest = posted
    if body is not None:
        parse_object(body, ObjectType.MEMORY)
    state = changed.get(entry.memory_id) or memories.get(entry.memory_id)
    if state is None and entry.op == Op.TOMBSTONE:
        raise UnknownMemory(f"Entry {entry.seq} forgets a memory that was never stored.")
    if state is not None and state.forgotten:
        raise Forgotten(f"Entry {entry.seq} changes a memory that was forgotten; nothing brings it back.")
    if entry.revision != (state.revision if state else 0) + 1:
        raise Malformed(f"Entry {entry.seq} is not the next revision of its memory.")
    if digest is not None:
        if entry.sha256 != digest:
            raise Malformed(f"Entry {entry.seq} does not have the hash of its object.")
        if digest in hashes:
            raise Malformed(f"Entry {entry.seq} brings an object that the batch brought before.")
        hashes.add(digest)
    changed[entry.memory_id] = MemoryState(entry.revision, entry.op == Op.TOMBSTONE, entry.seq)


def check_link(entry: Entry, seq: int, prev_mac: bytes) -> None:
    """`Malformed` unless the entry has that seq and follows the entry with that mac."""
    if entry.seq != seq:
        raise Malformed(f"An entry has seq {entry.seq} where {seq} is next.")
    if entry.prev_mac != prev_mac:
        raise Malformed(f"Entry {seq} does not follow the one before it.")


def _digest(entry: Entry, body: bytes | None) -> bytes | None:
    if body is not None:
        return hashlib.sha256(body).digest()
    return entry.sha256 if entry.op == Op.PUT else None
