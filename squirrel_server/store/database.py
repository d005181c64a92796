"""One database behind a store, whichever it is: transactions in, translated errors out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection

from squirrel_server.store.errors import UnsupportedUrl

BUSY_SECONDS = 10.0  # how long a writer waits for the writers before it
CONNECTIONS = 15  # of a process at most; they are kept, since a new one costs more than many appends


class Database(Protocol):
    """What `SqlStore` needs of a database; all that gives a connection raises `Failed` for a driver's errors."""

    def look(self) -> AbstractContextManager[Connection]:
        """For one SELECT, whose rows are fetched at once: a snapshot by itself, without a transaction around it."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of everything, and never waits for a writer."""
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """A transaction that is durable once left without an exception, and undone otherwise."""
        ...

    def scrub(self) -> None:
        """Remove, as far as can be done now, what erased rows left behind. Raises nothing."""
        ...

    def retire(self, path: str, ready: Callable[[Connection], bool]) -> bool:
        """Let nobody write any more and rename the file to `path`, if `ready` says so inside a transaction."""
        ...

    def close(self) -> None:
        """Close all connections; transactions from here on raise `Unavailable`."""
        ...


def open_database(url: str, *, create: bool) -> Database:
    """The database at `url`, made and migrated if need be.

    url: `sqlite:///` and an absolute path (so `sqlite:////home/...`), taken literally to its end, or
    `postgresql+psycopg://user@host/name`. create: whether a file that is not there is made.
    Raises `UnsupportedUrl`, `NewerSchema`, `NotAVault`, `Unavailable` or `Full`.
    """
    # Each is imported only when it is asked for: an embedded vault does not load PostgreSQL's half, nor the
    # server SQLite's.
    if url.startswith("sqlite:///"):
        from squirrel_server.store.sqlite_database import SqliteDatabase

        return SqliteDatabase(url.removeprefix("sqlite:///"), create=create)
    if url.startswith("postgresql+psycopg://"):
        from squirrel_server.store.postgresql_database import PostgresqlDatabase

        return PostgresqlDatabase(url)
    raise UnsupportedUrl(
        "A store's address is sqlite:/// and an absolute path, or postgresql+psycopg://user@host/name."
    )
