"""What a client asks of a store, whichever way it is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Route
from squirrel_mcp.crypto.verifier import LogItem


class AccountRecord(NamedTuple):
    """An account as the store tells it, nothing checked: key set and head of one snapshot."""

    account_id: bytes
    wraps: Sequence[bytes]
    previous_keys: bytes | None
    head: Head


class LogPage(NamedTuple):
    """A stretch of the log; `head` is that of the whole log at the time."""

    items: Sequence[LogItem]
    head: Head
    more: bool


class Store(Protocol):
    """One account on a store. Raises the StoreError family; anything it returns may be a lie."""

    @property
    def route(self) -> Route: ...

    def account(self) -> AccountRecord: ...

    def read_log(self, after: int, *, limit: int = ..., objects: Literal["latest", "all"] = "latest") -> LogPage:
        """Entries after seq `after`, which is exclusive; at least one if there is any."""

    def append(self, append_key: bytes, items: Sequence[LogItem]) -> Head:
        """All or nothing, durable. HeadMoved if the first entry does not follow the head."""

    def replace_key_set(self, append_key: bytes, key_set: KeySet, entry: bytes, append_verifier: bytes | None) -> Head:
        """Exactly one op 3 or 4; the verifier (SHA-256 of the new append key) goes with op 4."""

    def object(self, sha256: bytes) -> bytes:
        """One object of the account, history included; NotFound once forgotten."""

    def settled(self, head: Head) -> None:
        """The log is verified to `head`: what was read of it may be kept."""

    def close(self) -> None: ...
