"""What went wrong in a driver, in this package's words.

The driver's exception is told by its number (SQLite's result code, PostgreSQL's SQLSTATE), never by its text.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from squirrel_server.store.errors import Failed, Full, NotAVault, Unavailable

BUSY = "The database is busy with another program's work. Try again in a moment."
_DAMAGED = "This is not a vault: the file is damaged, or belongs to another program. It was left as it is."
NO_SPACE = "There is no space left that the database may use; nothing was stored."
_NO_ACCESS = "The database {} cannot be read or written: {}."
_READ_ONLY = "The database {} cannot be used: its folder, {}, cannot be written."
_NO_CONNECTION = "The database server does not answer as it should: {}."

# Result codes, primary but for _SQLITE_FULL: https://www.sqlite.org/rescode.html
_SQLITE_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
_SQLITE_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
# A write that fails is nearly always space again: a quota, a limit of the file's size, or the shared-memory file.
_SQLITE_FULL = frozenset((sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE))
_SQLITE_NO_ACCESS = frozenset(
    (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    )
)

# Classes of SQLSTATE, PostgreSQL manual, appendix A
_DISK_FULL = "53100"
_DATA_CORRUPTED = "XX001", "XX002"
_NOT_NOW = (
    "08",  # connection
    "25006",  # read-only transaction: a standby, not the primary
    "28",  # authorisation
    "3D",  # no such database
    "40",  # rolled back in a deadlock or a conflict
    "42501",  # insufficient privilege
    "53",  # resources
    "55P03",  # a lock was not to be had in time
    "57",  # an operator's intervention, shutdown among them
    "58",  # errors of the system, I/O among them
)


@contextmanager
def translated(path: str = "") -> Iterator[None]:
    """Turn what a driver or its pool raises inside into `Failed`; a mistake of ours stays what it is.

    path: the database's file, if it is one.
    """
    try:
        yield
    except PoolTimeout as error:
        raise Unavailable(BUSY) from error
    except DBAPIError as error:
        cause = error.orig
        failed = _failed(cause, path) if isinstance(cause, Exception) else None
        if failed is None:
            raise
        raise failed from cause
    except sqlite3.Error as error:
        failed = _failed(error, path)
        if failed is None:
            raise
        raise failed from error


def is_busy(error: BaseException | None) -> bool:
    """Whether this is SQLite saying that another connection holds a lock."""
    return isinstance(error, sqlite3.Error) and _primary(error) in _SQLITE_BUSY


def _failed(cause: Exception, path: str) -> Failed | None:
    return _sqlite(cause, path) if isinstance(cause, sqlite3.Error) else _postgresql(cause)


def _extended(error: sqlite3.Error) -> int:
    # Errors of the Python module itself have no code.
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK))


def _primary(error: sqlite3.Error) -> int:
    return _extended(error) & 0xFF


def _sqlite(error: sqlite3.Error, path: str) -> Failed | None:
    code = _primary(error)
    if code in _SQLITE_BUSY:
        return Unavailable(BUSY)
    if code == sqlite3.SQLITE_FULL or _extended(error) in _SQLITE_FULL:
        return Full(NO_SPACE)
    if code in _SQLITE_DAMAGED:
        return NotAVault(_DAMAGED)
    if code in _SQLITE_NO_ACCESS:
        # SQLite says of a folder where it cannot make its log only that the file cannot be opened.
        folder = os.path.dirname(path)
        if os.path.isdir(folder) and not os.access(folder, os.W_OK):
            return Unavailable(_READ_ONLY.format(path, folder))
        return Unavailable(_NO_ACCESS.format(path, error))
    return None


def _postgresql(error: Exception) -> Failed | None:
    state = getattr(error, "sqlstate", None)
    if state is None:
        # psycopg has no state for a connection that broke or was never made.
        lost = type(error).__name__ in ("OperationalError", "ConnectionTimeout", "InterfaceError")
        return Unavailable(_NO_CONNECTION.format(type(error).__name__)) if lost else None
    if state == _DISK_FULL:
        return Full(NO_SPACE)
    if state in _DATA_CORRUPTED:
        return NotAVault("The database server reports damaged data.")
    if state.startswith(_NOT_NOW):
        return Unavailable(_NO_CONNECTION.format(f"SQLSTATE {state}"))
    return None
