"""A store between a replica and the real one that loses answers, fails, or lets somebody else go first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Route
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.errors import StoreUnavailable
from squirrel_mcp.sync.local import LocalStore
from squirrel_mcp.sync.store import AccountRecord, LogPage


class LossyStore:
    """Delegates to a `LocalStore`; each hook runs once, at the next write."""

    def __init__(self, real: LocalStore) -> None:
        self.real = real
        self.lose_answer = False
        self.fail_before = False
        self.before_write: Callable[[], object] | None = None
        self.writes = 0

    @property
    def route(self) -> Route:
        return self.real.route

    def account(self) -> AccountRecord:
        return self.real.account()

    def read_log(self, after: int, *, limit: int = 3, objects: Literal["latest", "all"] = "latest") -> LogPage:
        # Small pages, so that every history in these tests crosses page borders.
        return self.real.read_log(after, limit=min(limit, 3), objects=objects)

    def append(self, append_key: bytes, items: Sequence[LogItem]) -> Head:
        return self._write(lambda: self.real.append(append_key, items))

    def replace_key_set(self, append_key: bytes, key_set: KeySet, entry: bytes, append_verifier: bytes | None) -> Head:
        return self._write(lambda: self.real.replace_key_set(append_key, key_set, entry, append_verifier))

    def object(self, sha256: bytes) -> bytes:
        return self.real.object(sha256)

    def settled(self, head: Head) -> None:
        self.real.settled(head)

    def close(self) -> None:
        self.real.close()

    def _write(self, write: Callable[[], Head]) -> Head:
        self.writes += 1
        hook, self.before_write = self.before_write, None
        if hook is not None:
            hook()
        if self.fail_before:
            self.fail_before = False
            raise StoreUnavailable("the store could not be reached")
        head = write()
        if self.lose_answer:
            self.lose_answer = False
            raise StoreUnavailable("the answer was lost")
        return head
