"""What a store checks of an account that is moved here with its history, without any key. Pure: no I/O, no clock.

Its owner names the head to be reached and the key set in force there; the log then comes in batches, and the last
one has to lead to both. Section 5 of docs/protocol.md, "Moving".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from squirrel_server.store.checks import MemoryState, Posted, check_link, check_memory
from squirrel_server.store.errors import Malformed
from squirrel_server.store.interface import Head
from squirrel_server.store.key_set_checks import KeyChange, check_first_entry, check_slots, split_wraps
from squirrel_server.store.wire import HASH_BYTES, Entry, Op, exact, parse_wrap

_MOST = 2**63  # what a database can count; the protocol's JSON ends earlier


def check_target(upload: tuple[int, bytes]) -> Head:
    """The head an upload is to reach; `Malformed` if it cannot be one."""
    seq, mac = upload
    if type(seq) is not int or not 1 <= seq < _MOST:
        raise Malformed("The head to be reached has a seq from 1.")
    return Head(seq, exact(mac, HASH_BYTES, "the mac of the head to be reached"))


def check_uploaded_account(change: KeyChange, account_id: bytes, target: Head) -> None:
    """The current key set, and the log's first entry, which is not expected to have logged it."""
    check_first_entry(change)
    if target.seq <= change.entry.seq:
        raise Malformed("The head to be reached is not behind the first entry.")
    check_slots(change, account_id)


def check_uploaded_batch(
    batch: Sequence[Posted],
    head: Head,
    target: Head,
    memories: Mapping[bytes, MemoryState],
    generation: int,
) -> tuple[dict[bytes, MemoryState], int]:
    """`check_batch` with ops 3 and 4 among the entries; the generation the batch ends with comes back too."""
    changed: dict[bytes, MemoryState] = {}
    hashes: set[bytes] = set()
    seq, mac = head
    for posted in batch:
        seq += 1
        check_link(posted.entry, seq, mac)
        mac = posted.entry.mac
        if posted.entry.op in (Op.PUT, Op.TOMBSTONE):
            check_memory(posted, memories, changed, hashes)
            continue
        generation += 1
        if posted.entry.revision != generation:
            raise Malformed(f"Entry {seq} has generation {posted.entry.revision} where {generation} is next.")
    if seq > target.seq or (seq == target.seq) != (mac == target.mac):
        raise Malformed("The batch does not lead to the head that was to be reached.")
    return changed, generation


def check_uploaded_key_set(last: Entry, wraps: bytes, previous_keys: bytes | None) -> None:
    """At the end: the key set that came first must be the one that the last op 3 or 4 logged."""
    if last.sha256 != hashlib.sha256(wraps + (previous_keys or b"")).digest():
        raise Malformed("The last entry of a key set does not have the hash of the account's key set.")
    if last.revision != max(parse_wrap(wrap).generation for wrap in split_wraps(wraps)):
        raise Malformed("The last entry of a key set does not have the generation of the account's key set.")
