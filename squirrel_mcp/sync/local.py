"""The embedded vault: the same store, called in-process on a SQLite file. No port, no HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from squirrel_mcp import private_files
from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Route
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.errors import (
    AppendDenied,
    ConfigurationError,
    HeadMoved,
    NewerSchema,
    NotFound,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
)
from squirrel_mcp.sync.store import AccountRecord, LogPage
from squirrel_server import store as sql

PAGE_ENTRIES = 10_000


def route_of(path: Path) -> Route:
    """An embedded vault's origin is the real path of its file."""
    return (str(path.resolve()), "")


class LocalStore:
    """The one account in the vault file at `path`."""

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it; UnsafeFile, NewerSchema, StoreUnavailable."""
        if not private_files.check(path):
            private_files.create(path)
        self._route = route_of(path)
        with _translated():
            self._sql = sql.SqlStore(f"sqlite:///{path.resolve()}")
        self._account_id: bytes | None = None

    @property
    def route(self) -> Route:
        return self._route

    def is_empty(self) -> bool:
        """Whether no account was made in the file yet."""
        with _translated():
            return not self._sql.account_ids()

    def register(self, key_set: KeySet, entry: bytes, append_verifier: bytes) -> Head:
        """Make the file's one account."""
        wraps = [wrap.raw for wrap in key_set.wraps]
        with _translated():
            head = self._sql.register(key_set.account_id, wraps, key_set.previous_keys, entry, append_verifier)
        return Head(*head)

    def account(self) -> AccountRecord:
        with _translated():
            record = self._sql.account(self._id())
        return AccountRecord(record.account_id, record.wraps, record.previous_keys, Head(*record.head))

    def read_log(
        self, after: int, *, limit: int = PAGE_ENTRIES, objects: Literal["latest", "all"] = "latest"
    ) -> LogPage:
        with _translated():
            page = self._sql.read_log(self._id(), after, limit, objects)
        return LogPage(page.entries, Head(*page.head), page.more)

    def append(self, append_key: bytes, items: Sequence[LogItem]) -> Head:
        with _translated():
            return Head(*self._sql.append(self._id(), append_key, items))

    def replace_key_set(self, append_key: bytes, key_set: KeySet, entry: bytes, append_verifier: bytes | None) -> Head:
        wraps = [wrap.raw for wrap in key_set.wraps]
        with _translated():
            head = self._sql.replace_key_set(
                self._id(), append_key, wraps, key_set.previous_keys, entry, append_verifier
            )
        return Head(*head)

    def object(self, sha256: bytes) -> bytes:
        with _translated():
            return self._sql.object(self._id(), sha256)

    def delete_account(self, append_key: bytes) -> None:
        """Erase everything; the file then holds no account."""
        with _translated():
            self._sql.delete_account(self._id(), append_key)

    def retire(self, head: Head, path: Path) -> bool:
        """Rename the file to `path` if its head is still `head`; from then on no process writes to it any more."""
        with _translated():
            return self._sql.retire(self._id(), sql.Head(*head), str(path))

    def settled(self, head: Head) -> None:
        """The file is the account itself: there is nothing to keep beside it."""

    def close(self) -> None:
        self._sql.close()

    def _id(self) -> bytes:
        if self._account_id is None:
            ids = self._sql.account_ids()
            if len(ids) != 1:
                raise ConfigurationError(
                    f"{self._route[0]} holds {len(ids)} accounts; a vault on this machine has one."
                )
            self._account_id = ids[0]
        return self._account_id


@contextmanager
def _translated() -> Iterator[None]:
    """The store's errors as this package's; their sentences are the store's own."""
    try:
        yield
    except sql.StoreError as error:
        if isinstance(error, sql.HeadMoved):
            raise HeadMoved(Head(*error.head)) from None
        if error.code == "append_denied":
            raise AppendDenied from None
        if error.code in ("unknown_object", "unknown_account"):
            raise NotFound(str(error)) from None
        kind = {"unavailable": StoreUnavailable, "full": StoreFull, "newer_schema": NewerSchema}.get(error.code)
        if kind is not None:
            raise kind(str(error)) from None
        raise StoreRefused(error.code, str(error)) from None
