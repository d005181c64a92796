"""The log of an account, with all its objects: taken from a store for an export, and opened into memories.

It is verified whenever it is read, from a store and from a file alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from squirrel_mcp.crypto import envelope, log
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.crypto.verifier import LogItem, LogVerifier, Update
from squirrel_mcp.errors import OmissionDetected, RecordDamaged, StoreUnavailable, Verdict
from squirrel_mcp.memory import Memory, from_json
from squirrel_mcp.portability.incoming import Incoming
from squirrel_mcp.portability.sealed_file import SealedExport
from squirrel_mcp.sync.store import Store
from squirrel_mcp.vault import Vault

_ATTEMPTS = 20  # each failed one means that somebody wrote in between
Progress = Callable[[int, int], None]
"""Told (entries read, of how many)."""


class Taken(NamedTuple):
    """An export, and the memories in it."""

    export: SealedExport
    content: Incoming


def take(store: Store, vault: Vault, progress: Progress = lambda done, total: None) -> Taken:
    """Everything the store holds for the account, verified to its head; a Verdict where that does not hold."""
    for _ in range(_ATTEMPTS):
        vault.sync()
        seen = vault.head
        record = store.account()
        key_set = KeySet.parse(record.wraps, record.previous_keys, vault.account_id)
        if key_set.raw != vault.key_set.raw:
            continue  # the keys were changed between the two
        items: list[LogItem] = []
        for page in _pages(store):
            items += page
            progress(min(len(items), record.head.seq), record.head.seq)
            if len(items) >= record.head.seq:
                break
        export = SealedExport(key_set, record.head, tuple(items[: record.head.seq]))
        try:
            return Taken(export, open_export(export, vault.ring, seen))
        except OmissionDetected:
            # Forgotten since we looked: its objects are gone, and its tombstone is not in this snapshot.
            if store.account().head == record.head:
                raise
    raise StoreUnavailable("Others kept writing while the vault was read; try again.")


def open_export(export: SealedExport, ring: KeyRing, pinned: Head | None = None) -> Incoming:
    """The memories of an export, its log verified first: a Verdict, and nothing, for a log that does not hold.

    pinned: a head of the same account that the log must have reached.
    """
    account_id = export.key_set.account_id
    verifier = LogVerifier(account_id, export.key_set, ring, pinned)
    verifier.expect(export.head)
    verifier.page(export.items, export.head, more=False)
    updates = verifier.drain()
    verifier.finish()
    return _open(account_id, updates)


def open_verified_part(store: Store, vault: Vault, pinned: Head | None) -> Incoming:
    """What can be shown of a vault whose log does not hold: everything up to the entry that the verdict is about.

    pinned: the head this device had verified before, if any; entries up to there are certain.
    """
    verifier = LogVerifier(vault.account_id, vault.key_set, vault.ring, pinned)
    updates: list[Update] = []
    try:
        while True:
            page = store.read_log(verifier.reading.seq, objects="all")
            try:
                verifier.page(_intact(page.items), page.head, more=page.more)
            finally:
                updates += verifier.drain()
            if not page.more:
                break
    except Verdict:
        pass  # the reason for being here; the caller has told it already
    return _open(vault.account_id, updates[: verifier.confirmed])


def _pages(store: Store) -> Iterator[list[LogItem]]:
    seq = 0
    while True:
        page = store.read_log(seq, objects="all")
        if not page.items:
            return  # the verifier names what is missing
        yield _intact(page.items)
        seq += len(page.items)


def _intact(items: Iterable[LogItem]) -> list[LogItem]:
    """A superseded object that rotted costs that one revision, not the whole export: it counts as absent."""
    intact = []
    for raw, content in items:
        is_entry = len(raw) == log.ENTRY_BYTES
        if content is not None and is_entry and hash_bytes(content) != log.parse(raw).sha256:
            content = None
        intact.append((raw, content))
    return intact


def _open(account_id: bytes, updates: Sequence[Update]) -> Incoming:
    forgotten = {entry.memory_id for entry, _, _ in updates if entry.op == log.TOMBSTONE}
    revisions: dict[str, list[Memory]] = {}
    damaged: set[str] = set()
    for entry, content, dek in updates:
        if entry.memory_id in forgotten:
            continue
        memory_id = entry.memory_id.hex()
        context = envelope.Context(account_id, entry.memory_id, entry.revision)
        payload = None if content is None else envelope.open_record(dek, context, content)
        try:
            if payload is None:
                raise RecordDamaged(memory_id)
            revisions.setdefault(memory_id, []).append(from_json(payload, memory_id, entry.revision))
        except RecordDamaged:
            damaged.add(memory_id)
    return Incoming(revisions=revisions, forgotten=len(forgotten), damaged=sorted(damaged))
