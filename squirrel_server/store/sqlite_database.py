"""SQLite: one file, write-ahead log, every commit synchronised; any number of threads and processes.

An existing file is never removed, replaced or opened other than by SQLite. The latter matters: a process that
closes any descriptor of a file loses all its POSIX locks on it, those of a store in another thread included.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import uniform
from time import monotonic, sleep

from sqlalchemy import Connection, QueuePool, create_engine
from sqlalchemy.exc import SQLAlchemyError

from squirrel_server.store.database import BUSY_SECONDS, CONNECTIONS
from squirrel_server.store.errors import Full, NotAVault, Unavailable, UnsupportedUrl
from squirrel_server.store.faults import BUSY, NO_SPACE, is_busy, translated
from squirrel_server.store.migrations import is_current, migrate

APPLICATION_ID = 0x5351524C  # in the file's header: the first four letters of "squirrel"
_ASK_AGAIN = 0.0005, 0.003  # seconds between two attempts at the write lock: about one commit's time
_RETIRED = 1  # PRAGMA user_version, which nothing else here uses
_SCRUB_SECONDS = 0.25  # an erasure is committed by then; readers elsewhere should not hold it up for long


class SqliteDatabase:
    """A `Database` in one file.

    Readers see the snapshot of a deferred transaction. Writers begin immediately, so that none finds out
    halfway that another was faster; those of this process queue at a lock, which unlike SQLite's is handed
    over without a pause, and those of other processes are waited for by SQLite.
    """

    def __init__(self, path: str, *, create: bool) -> None:
        if not os.path.isabs(path) or "\0" in path:
            raise UnsupportedUrl("The path of a SQLite store is absolute: sqlite:/// and then /the/path.")
        self._path = path
        self._closed = False
        self._residue = False
        self._writing = threading.Lock()
        if create:
            _make(path)
        self._identity = self._stat()
        if os.path.getsize(path) == 1:  # which SQLite would take for an empty database, and overwrite
            raise NotAVault("The file of one byte is no vault. It was left as it was.")
        # A file that vanishes later must not be made again by a connection the pool opens then: mode=rw.
        self._uri = f"{Path(path).as_uri()}?mode=rw"
        self._engine = create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_use_lifo=True,  # its cache is the warmest
            hide_parameters=True,
        )
        try:
            self._open()
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """See `Database.look`."""
        self._check_usable()
        with translated(self._path), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """See `Database.read`."""
        self._check_usable()
        with translated(self._path), self._engine.connect() as connection:
            _raw(connection).execute("BEGIN")
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """See `Database.write`."""
        if not self._writing.acquire(timeout=BUSY_SECONDS):
            raise Unavailable(BUSY)
        try:
            self._check_usable()
            with translated(self._path), self._engine.begin() as connection:
                _begin_immediately(_raw(connection))
                # Asked under the lock: this process may have opened the file before another one retired it.
                if _is_retired(_raw(connection)):
                    raise Unavailable("The vault was moved to a server; nothing is written to its old file any more.")
                yield connection
        finally:
            self._writing.release()
        if self._residue:
            self.scrub()

    def retire(self, path: str, ready: Callable[[Connection], bool]) -> bool:
        """See `Database.retire`."""
        if not self._writing.acquire(timeout=BUSY_SECONDS):
            raise Unavailable(BUSY)
        try:
            self._check_usable()
            if os.path.exists(path):
                raise Unavailable(f"There is a file at {path} already; the vault was left where it is.")
            with translated(self._path), self._engine.begin() as connection:
                _begin_immediately(_raw(connection))
                if not ready(connection):
                    return False
                _raw(connection).execute(f"PRAGMA user_version = {_RETIRED}")
            self._empty_log()
            self._engine.dispose()  # Windows renames no file that is open
            try:
                os.rename(self._path, path)
            except OSError as error:
                raise Unavailable(f"The vault file cannot be renamed to {path}: {error.strerror}.") from error
            for suffix in ("-wal", "-shm"):  # empty by now, and left behind if another process is still there
                with suppress(OSError):
                    os.unlink(self._path + suffix)
            _synchronise(os.path.dirname(path))
        finally:
            self._writing.release()
        return True

    def _empty_log(self) -> None:
        # What is still in the write-ahead log would stay behind with it; readers hold it for moments.
        deadline = monotonic() + BUSY_SECONDS
        blocked = 1
        while blocked:
            with translated(self._path), self._engine.connect() as connection:
                blocked, _, _ = _raw(connection).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if blocked and monotonic() > deadline:
                raise Unavailable(BUSY)

    def scrub(self) -> None:
        """Empty the write-ahead log, which still has the pages as they were before an erasure.

        Erased cells in the file itself are zeroed by secure_delete. If a reader stands in the way it is tried
        again after the next write; the last process to close the file removes the log in any case.
        """
        self._residue = True
        with self._writing:
            try:
                with self._engine.connect() as connection:
                    raw = _raw(connection)
                    raw.execute(f"PRAGMA busy_timeout = {int(_SCRUB_SECONDS * 1000)}")
                    try:
                        blocked, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                        self._residue = bool(blocked)
                    finally:
                        raw.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
            except (sqlite3.Error, SQLAlchemyError):
                pass  # what was to be erased is; the flag stays up

    def close(self) -> None:
        """See `Database.close`."""
        self._closed = True
        self._engine.dispose()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in (
            "synchronous = FULL",
            "fullfsync = ON",  # macOS, where fsync alone does not reach the disk; elsewhere without effect
            "secure_delete = ON",
            "foreign_keys = ON",
            "trusted_schema = OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _open(self) -> None:
        """Know the file before anything in it is changed, then bring it up to date."""
        with self.read() as connection:
            application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
            if application != APPLICATION_ID:
                tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
                if application or tables:
                    raise NotAVault("This is another program's database. It was left as it is.")
            current = is_current(connection)
        self._use_write_ahead_log()
        if not current:
            with self.write() as connection:
                migrate(connection)
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")

    def _use_write_ahead_log(self) -> None:
        # SQLite does not wait for locks when it changes the journal mode, so the waiting is done here.
        deadline = monotonic() + BUSY_SECONDS
        while True:
            try:
                with translated(self._path), self._engine.connect() as connection:
                    (mode,) = _raw(connection).execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except Unavailable as error:
                if not is_busy(error.__cause__) or monotonic() > deadline:
                    raise
                sleep(uniform(*_ASK_AGAIN))
        if mode != "wal":
            raise Unavailable("The file system of the vault does not support SQLite's write-ahead log.")

    def _stat(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise Unavailable(f"The vault file {self._path} cannot be found: {error.strerror}.") from error
        if not stat.S_ISREG(found.st_mode):
            raise Unavailable(f"The vault file {self._path} is not a file.")
        return found.st_dev, found.st_ino

    def _check_usable(self) -> None:
        """A commit into a file that was moved or replaced would be acknowledged and lost."""
        if self._closed:
            raise Unavailable("The store is closed.")
        if self._stat() != self._identity:
            raise Unavailable(f"The vault file {self._path} was replaced while it was in use. Start again.")


def _raw(connection: Connection) -> sqlite3.Connection:
    # Transactions begin here and not in an event of SQLAlchemy's, which would slow down every statement.
    raw = connection.connection.dbapi_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _is_retired(raw: sqlite3.Connection) -> bool:
    return bool(raw.execute("PRAGMA user_version").fetchone()[0] == _RETIRED)


def _begin_immediately(raw: sqlite3.Connection) -> None:
    """Wait for the writers of other processes by asking often.

    SQLite's own waiting soon asks ten times a second only, which between busy writers may find no gap for long.
    """
    deadline = monotonic() + BUSY_SECONDS
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                raw.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or monotonic() > deadline:
                    raise
            sleep(uniform(*_ASK_AGAIN))
    finally:
        raw.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


def _synchronise(folder: str) -> None:
    """Make the names in it durable."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _make(path: str) -> None:
    """An empty file that only its owner can read, durable in its folder; an existing one is left alone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if os.name == "posix":
                os.fchmod(descriptor, 0o600)  # whatever the umask took away
        finally:
            os.close(descriptor)
        _synchronise(os.path.dirname(path))
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Full(NO_SPACE) from error
        raise Unavailable(f"The vault file {path} cannot be made: {error.strerror}.") from error
