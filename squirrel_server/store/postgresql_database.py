"""PostgreSQL: the same tables at another address. psycopg is loaded by the engine, and only here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event, text
from sqlalchemy.exc import ArgumentError, DisconnectionError

from squirrel_server.store.database import BUSY_SECONDS, CONNECTIONS
from squirrel_server.store.errors import Unavailable, UnsupportedUrl
from squirrel_server.store.faults import translated
from squirrel_server.store.migrations import is_current, migrate

_CONNECT_SECONDS = 10
_MIGRATION_LOCK = 0x5351524C  # any number that is always the same: the first four letters of "squirrel"

_SETTINGS = {
    # Not left to the server's configuration: an answer means that the commit is on disk.
    "synchronous_commit": "on",
    "lock_timeout": f"{int(BUSY_SECONDS * 1000)}",
    # Every statement here is best served by walking an index. The planner cannot know that of tables it has no
    # statistics of yet: in the first minute of a big upload it takes an account for a few rows, and would fetch
    # and sort all of it for each page.
    "enable_bitmapscan": "off",
    "enable_seqscan": "off",
    "enable_sort": "off",
}


class PostgresqlDatabase:
    """A `Database` of a PostgreSQL server's primary.

    Writers lock the row of their account (the queries say FOR UPDATE), so that accounts do not wait for each
    other; a reader's snapshot is a read-only transaction at REPEATABLE READ, which cannot fail to serialise.
    """

    def __init__(self, url: str) -> None:
        try:
            engine = create_engine(
                url,
                hide_parameters=True,
                # Said outright, whatever the default: FOR UPDATE must see the row as the last writer left it.
                isolation_level="READ COMMITTED",
                pool_size=CONNECTIONS,
                max_overflow=0,
                pool_use_lifo=True,  # the fewer are in use, the more of their statements are prepared
                connect_args={"connect_timeout": _CONNECT_SECONDS},
            )
        except (ArgumentError, ValueError):
            raise UnsupportedUrl("The address of the PostgreSQL database cannot be read.") from None
        except ModuleNotFoundError as error:
            raise UnsupportedUrl("PostgreSQL needs psycopg: install squirrel-server[postgresql].") from error
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "checkout", _check_alive)
        self._engine = engine
        self._looker = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._closed = False
        try:
            self._open()
        except BaseException as error:
            engine.dispose()
            # psycopg has no state for a connection that was never made.
            if isinstance(error, Unavailable) and getattr(error.__cause__, "sqlstate", None) is None:
                raise Unavailable(
                    f"Cannot connect to {_address(engine.url)}: no PostgreSQL server answers there, or it does not let "
                    "this user in."
                ) from error.__cause__
            raise

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """See `Database.look`."""
        self._check_open()
        with translated(), self._looker.connect() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """See `Database.read`."""
        self._check_open()
        with translated(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """See `Database.write`."""
        self._check_open()
        with translated(), self._engine.begin() as connection:
            yield connection

    def scrub(self) -> None:
        """Nothing to do: the server's own vacuum frees erased rows, and its archives are its operator's."""

    def retire(self, path: str, ready: Callable[[Connection], bool]) -> bool:
        """Not for a server: its accounts are deleted one by one."""
        raise Unavailable("A PostgreSQL database is no file that could be set aside.")

    def close(self) -> None:
        """See `Database.close`."""
        self._closed = True
        self._engine.dispose()

    def _open(self) -> None:
        with self.read() as connection:
            current = is_current(connection)
        if not current:
            with self.write() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
                migrate(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The store is closed.")


def _address(url: URL) -> str:
    """HOST:PORT of a database, and nothing of its user."""
    host = url.host or url.query.get("host")
    return f"{host}:{url.port or 5432}" if isinstance(host, str) else "the PostgreSQL server of this machine"


def _prepare(connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        for name, value in _SETTINGS.items():
            cursor.execute(f"SET {name} = {value}")
    connection.commit()


def _check_alive(connection: Any, _: object, __: object) -> None:
    """Have the pool replace a connection that has something to say before it is asked.

    That is how one looks whose server ended or was restarted, which should not cost the next caller its request.
    Unlike the pool's own ping it asks nothing, and so does not wait.
    """
    with DefaultSelector() as selector:
        selector.register(connection.fileno(), EVENT_READ)
        if selector.select(0):
            raise DisconnectionError
