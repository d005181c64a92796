"""A server's store with the state cache before it: a start asks only for what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Route
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.sync.remote import PAGE_ENTRIES, RemoteStore
from squirrel_mcp.sync.state_cache import StateCache
from squirrel_mcp.sync.store import AccountRecord, LogPage


class CachedStore:
    """Serves the log from the cache as far as that reached when this was made, then from the server."""

    def __init__(self, remote: RemoteStore, cache: StateCache) -> None:
        self._remote, self._cache = remote, cache
        # What other processes add to the file later is not served: a running client has to ask the server.
        self._cached = cache.head()
        self._unsettled: dict[int, LogItem] = {}
        self._dropped = False

    @property
    def route(self) -> Route:
        return self._remote.route

    @property
    def has_cache(self) -> bool:
        """Whether a start is served from the cache."""
        return self._cached != log.EMPTY

    def account(self) -> AccountRecord:
        return self._remote.account()

    def read_log(
        self, after: int, *, limit: int = PAGE_ENTRIES, objects: Literal["latest", "all"] = "latest"
    ) -> LogPage:
        if objects == "latest" and after < self._cached.seq:
            items = self._cache.page(after, min(limit, self._cached.seq - after))
            if items:
                return LogPage(items, self._cached, after + len(items) < self._cached.seq)
            self._cached = log.EMPTY  # it cannot be read any further
        page = self._remote.read_log(after, limit=limit, objects=objects)
        # What was read before and not verified to its head is read again now.
        self._unsettled = {seq: item for seq, item in self._unsettled.items() if seq <= after}
        self._keep(page.items)
        return page

    def append(self, append_key: bytes, items: Sequence[LogItem]) -> Head:
        head = self._remote.append(append_key, items)
        self._keep(items)
        return head

    def replace_key_set(self, append_key: bytes, key_set: KeySet, entry: bytes, append_verifier: bytes | None) -> Head:
        head = self._remote.replace_key_set(append_key, key_set, entry, append_verifier)
        self._keep([(entry, None)])
        return head

    def object(self, sha256: bytes) -> bytes:
        return self._remote.object(sha256)

    def settled(self, head: Head) -> None:
        """Keep what was read and verified."""
        if self._dropped:
            self._cache.drop()
            self._dropped = False
        if self._unsettled:
            self._cache.add([item for seq, item in sorted(self._unsettled.items()) if seq <= head.seq])
            self._unsettled = {}

    def drop_cache(self) -> None:
        """It does not fit the account: ask the server for everything.

        The file goes once what the server says is verified: if it is the server that is wrong, the file may be all
        that is left of what this device has seen.
        """
        self._cached, self._unsettled, self._dropped = log.EMPTY, {}, True

    def close(self) -> None:
        self._cache.close()
        self._remote.close()

    def _keep(self, items: Sequence[LogItem]) -> None:
        for item in items:
            if len(item[0]) == log.ENTRY_BYTES:
                self._unsettled[log.parse(item[0]).seq] = item
