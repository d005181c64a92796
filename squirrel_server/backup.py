"""A copy of a SQLite database that is in use, by SQLite's own online backup."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

_APPLICATION = 0x5351524C  # "SQRL", see store/sqlite_database.py, which would bring SQLAlchemy along


class BackupFailed(Exception):
    """One sentence for people."""


def back_up(source: Path, target: Path) -> int:
    """Copy the database at `source`, as it is at one moment, to `target` (0600); the bytes of the copy come back.

    The copy appears as a whole or not at all. An earlier copy is replaced; any other file is not.
    """
    if str(target) == "-":
        raise BackupFailed("A backup is written to a file: give its name instead of -.")
    if not _is_ours(source):
        raise BackupFailed(f"{source} is no Squirrel database.")
    if target.exists() and (target.samefile(source) or not _is_ours(target)):
        raise BackupFailed(f"{target} exists and is no earlier backup; it was left as it is.")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise BackupFailed(f"{target} cannot be written: {error.strerror}.") from error
    try:
        if os.name == "posix":
            os.chmod(draft, 0o600)  # whatever the umask took away
        with (
            closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as original,
            closing(sqlite3.connect(draft)) as copy,
        ):
            # All pages in one step: readers and writers of the original go on, and it is not begun again for them.
            original.backup(copy)
            (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
            # Else its readers would leave a -wal file beside it.
            copy.execute("PRAGMA journal_mode = DELETE")
        if verdict != "ok":
            raise BackupFailed("The database is damaged: the copy was checked and not kept.")
        _synchronise(draft)
        os.replace(draft, target)
        if os.name == "posix":
            _synchronise(target.absolute().parent)
        return target.stat().st_size
    except (sqlite3.Error, OSError) as error:
        raise BackupFailed(f"The backup was not made: {error}.") from error
    finally:
        draft.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    # Asked of SQLite, not read from the header: of a database in use that may still be in the write-ahead log.
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.OperationalError as error:
        raise BackupFailed(f"{path} cannot be read: {error}.") from error
    except sqlite3.DatabaseError:
        return False
    return bool(application == _APPLICATION)


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
