"""What a store checks of a key set and of the entry that logs it, without any key. Pure: no I/O, no clock."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from squirrel_server.store.checks import check_link
from squirrel_server.store.errors import Malformed
from squirrel_server.store.interface import Head
from squirrel_server.store.wire import (
    HASH_BYTES,
    WRAP_BYTES,
    ZERO_HASH,
    Entry,
    ObjectType,
    Op,
    Slot,
    Wrap,
    exact,
    parse_entry,
    parse_object,
    parse_wrap,
)

_START = Head(0, ZERO_HASH)


class KeyChange(NamedTuple):
    """A request for another key set, read but not yet compared with what is stored."""

    entry: Entry
    wraps: tuple[Wrap, ...]
    previous_keys: bytes | None
    append_verifier: bytes | None


class StoredKeySet(NamedTuple):
    """The key set in force; `wraps` are its records one after the other, as stored."""

    generation: int
    wraps: bytes
    previous_keys: bytes | None
    append_verifier: bytes


def read_key_change(
    wraps: Sequence[bytes], previous_keys: bytes | None, entry: bytes, append_verifier: bytes | None
) -> KeyChange:
    """The request, parsed; `Malformed` before any of it is compared with the store."""
    parsed = parse_entry(entry)
    if parsed.op not in (Op.REWRAP, Op.ROTATE):
        raise Malformed("A key set is logged by a rewrap or a rotate entry.")
    if append_verifier is not None:
        exact(append_verifier, HASH_BYTES, "an append verifier")
    if previous_keys is not None and type(previous_keys) is not bytes:
        raise Malformed("The previous keys are bytes.")
    return KeyChange(parsed, tuple(parse_wrap(wrap) for wrap in wraps), previous_keys, append_verifier)


def check_first_key_set(change: KeyChange, account_id: bytes) -> None:
    """The key set an account is registered with: everything made anew, and no keys before it."""
    check_first_entry(change)
    if change.previous_keys is not None:
        raise Malformed("An account that was never rotated has no previous keys.")
    _check_generation(change, 1)
    _check_key_set(change, account_id)
    if any(wrap.generation != 1 for wrap in change.wraps):
        raise Malformed("A slot of the first key set was not made at generation 1.")


def check_first_entry(change: KeyChange) -> None:
    """What opens a log, whatever key set comes with it."""
    if change.entry.op != Op.REWRAP or change.append_verifier is None:
        raise Malformed("The first entry of a log is a rewrap, and comes with an append verifier.")
    check_link(change.entry, _START.seq + 1, _START.mac)
    if change.entry.revision != 1:
        raise Malformed(f"The first entry of a log has generation {change.entry.revision} and not 1.")


def check_key_change(change: KeyChange, account_id: bytes, head: Head, stored: StoredKeySet) -> None:
    """A rewrap or a rotate against the key set in force."""
    check_link(change.entry, head.seq + 1, head.mac)
    _check_generation(change, stored.generation + 1)
    kid = _check_key_set(change, account_id)
    old = [parse_wrap(wrap) for wrap in split_wraps(stored.wraps)]
    kept = [wrap for wrap in change.wraps if wrap.generation != change.entry.revision]
    if any(wrap not in old for wrap in kept):
        raise Malformed("A slot is neither made anew nor kept byte for byte.")
    same_key = kid == old[0].kid
    if change.entry.op == Op.REWRAP:
        if change.append_verifier is not None or not same_key:
            raise Malformed("A rewrap keeps the key, and with it the append verifier.")
        if (change.previous_keys is None) != (stored.previous_keys is None):
            raise Malformed("A rewrap keeps the previous keys, if there are any.")
    else:
        if change.append_verifier is None or change.previous_keys is None:
            raise Malformed("A rotate comes with a new append verifier and with the previous keys.")
        # Another key means all slots anew: a kept one would still hold the old key, and all hold the same.
        if same_key or change.append_verifier == stored.append_verifier:
            raise Malformed("A rotate makes the key, all slots and the append verifier anew.")
    if change.previous_keys is not None and change.previous_keys == stored.previous_keys:
        raise Malformed("The previous keys were not sealed anew.")


def split_wraps(wraps: bytes) -> tuple[bytes, ...]:
    """Stored wrap records, one by one."""
    return tuple(wraps[start : start + WRAP_BYTES] for start in range(0, len(wraps), WRAP_BYTES))


def _check_generation(change: KeyChange, generation: int) -> None:
    if change.entry.revision != generation:
        raise Malformed(f"The entry has generation {change.entry.revision} where {generation} is next.")
    if not change.wraps or max(wrap.generation for wrap in change.wraps) != generation:
        raise Malformed(f"The newest slot of the key set was not made at generation {generation}.")


def _check_key_set(change: KeyChange, account_id: bytes) -> bytes:
    """`check_slots`, and that the entry has the hash of the key set; its kid comes back."""
    kid = check_slots(change, account_id)
    key_set = b"".join(wrap.raw for wrap in change.wraps) + (change.previous_keys or b"")
    if change.entry.sha256 != hashlib.sha256(key_set).digest():
        raise Malformed("The entry does not have the hash of its key set.")
    return kid


def check_slots(change: KeyChange, account_id: bytes) -> bytes:
    """The rules a key set keeps by itself; its kid comes back."""
    if tuple(wrap.slot for wrap in change.wraps) not in _SLOT_ORDERS:
        raise Malformed("A key set has slot 1, then slot 2 or nothing.")
    kid = change.wraps[0].kid
    if any(wrap.account_id != account_id or wrap.kid != kid for wrap in change.wraps):
        raise Malformed("The slots of a key set are not of one account and one key.")
    previous = change.previous_keys
    if previous is not None and parse_object(previous, ObjectType.PREVIOUS_KEYS) != kid:
        raise Malformed("The previous keys are sealed under another key than the slots hold.")
    return kid


_SLOT_ORDERS = frozenset(((Slot.PASSPHRASE,), (Slot.PASSPHRASE, Slot.RECOVERY)))
