"""What a store is: the calls, the values that go in and out, and the caps.

Everything is bytes: entries, objects and key records are passed on as the client sealed them, and no call
takes or returns anything that could open one. Section 4 of docs/protocol.md is the contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

MAX_OBJECT_BYTES = 65_536
MAX_BATCH_BYTES = 2 * 1024 * 1024  # entries and objects of one append
MAX_PAGE_BYTES = 2 * 1024 * 1024  # entries and objects of one page of the log, excluded
MAX_ENTRIES = 10_000  # of one append or one page

Objects = Literal["latest", "all"]


class Head(NamedTuple):
    """Where a log ends: the seq of its last entry and that entry's 32-byte mac."""

    seq: int
    mac: bytes


@dataclass(frozen=True, slots=True)
class AccountRecord:
    """An account at one moment: `wraps` are 164 bytes each in slot order, `previous_keys` is sealed."""

    account_id: bytes
    wraps: tuple[bytes, ...]
    previous_keys: bytes | None
    head: Head


@dataclass(frozen=True, slots=True)
class LogPage:
    """Consecutive (entry, object or None) pairs and the head of that moment; `more` if entries follow."""

    entries: tuple[tuple[bytes, bytes | None], ...]
    head: Head
    more: bool


class Store(Protocol):
    """One log per account. Every call may raise `Failed`; what else it raises is named there.

    A call that writes returns only after its commit is durable, and changes everything it says or nothing.
    Checks run in this order: shape (`Malformed`, `TooLarge`); the account (`UnknownAccount`); the append key
    (`AppendDenied`); the first entry's prev_mac against the head (`HeadMoved`); then all the rest.
    Calls may come from several threads, and from several processes with a store of their own each.
    """

    def register(
        self,
        account_id: bytes,
        wraps: Sequence[bytes],
        previous_keys: bytes | None,
        entry: bytes,
        append_verifier: bytes,
    ) -> Head:
        """Open an account with its first key set. `AccountExists` if it is there already.

        account_id: 16 bytes. wraps: one or two wrap records. previous_keys: None, as nothing was rotated yet.
        entry: a rewrap entry at seq 1. append_verifier: SHA-256 of the append key, taken as it is.
        """
        ...

    def account(self, account_id: bytes) -> AccountRecord:
        """The key set and the head it belongs to, as one snapshot."""
        ...

    def read_log(self, account_id: bytes, after: int, limit: int = MAX_ENTRIES, objects: Objects = "latest") -> LogPage:
        """The entries behind seq `after`, as one snapshot with the head.

        A page ends before `limit` entries (cut to 1..MAX_ENTRIES) or MAX_PAGE_BYTES are passed, but holds at
        least one entry if any follow. objects: "latest" brings the object of a put only if it is the last one
        of a memory that lives, "all" brings each that was not erased.
        """
        ...

    def append(self, account_id: bytes, append_key: bytes, entries: Sequence[tuple[bytes, bytes | None]]) -> Head:
        """Add puts (entry, object) and tombstones (entry, None), all or none; the new head comes back.

        `Forgotten` for whatever follows a tombstone, `UnknownMemory` for a tombstone without a put. A
        tombstone erases every object of its memory in the same transaction.
        """
        ...

    def replace_key_set(
        self,
        account_id: bytes,
        append_key: bytes,
        wraps: Sequence[bytes],
        previous_keys: bytes | None,
        entry: bytes,
        append_verifier: bytes | None,
    ) -> Head:
        """Replace the key set by a rewrap (no verifier) or a rotate (with the new verifier), and log it."""
        ...

    def object(self, account_id: bytes, sha256: bytes) -> bytes:
        """One object by its hash, superseded ones included. `UnknownObject` if absent or erased."""
        ...

    def delete_account(self, account_id: bytes, append_key: bytes) -> None:
        """Erase the account: key set, log and objects."""
        ...

    def close(self) -> None:
        """Let go of the database. Later calls raise `Unavailable`; closing again does nothing."""
        ...
