"""What a server has sent of one account, kept so that a start transfers only what changed.

Entries and the latest objects as they were served: ciphertext. Nothing here is believed: the log in it is verified
like any other at every start, and the file is dropped and fetched anew when it does not fit. An object goes as soon
as its memory was corrected or forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from squirrel_mcp import private_files
from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.verifier import LogItem

_FORMAT = 1  # kept in user_version; a file of another format is made anew
_PASSING = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
)  # fmt: skip
_TABLES = """
    CREATE TABLE items (seq INTEGER PRIMARY KEY, entry BLOB NOT NULL, memory_id BLOB NOT NULL, object BLOB);
    CREATE INDEX objects ON items (memory_id) WHERE object IS NOT NULL;
"""


class StateCache:
    """A file that may be lost at any time. Errors of reading or writing it never stop what it serves."""

    def __init__(self, path: Path) -> None:
        """UnsafeFile for a link and the like; a file that is damaged is replaced, and a missing one made by `add`."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._damaged = False  # what is read next from the server takes its place
        self._is_new = not private_files.check(path)
        if not self._is_new:
            self._open()

    def head(self) -> Head:
        """The last entry in the file; `log.EMPTY` if there is none."""
        for raw, _ in self._select("SELECT entry, object FROM items ORDER BY seq DESC LIMIT 1"):
            if len(raw) == log.ENTRY_BYTES and log.parse(raw).seq > 0:
                return log.parse(raw).head
            self._damaged = True
        return log.EMPTY

    def page(self, after: int, limit: int) -> list[LogItem]:
        """Up to `limit` items behind seq `after`."""
        return self._select("SELECT entry, object FROM items WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)

    def add(self, items: Sequence[LogItem]) -> None:
        """Verified items that follow what is here."""
        if self._damaged:
            self.drop()
        if self._is_new:
            self._open()
        if self._connection is None:
            return
        try:
            with self._connection:
                for raw, content in items:
                    self._add(self._connection, raw, content)
        except sqlite3.Error as error:
            self._note(error)

    def drop(self) -> None:
        """Begin anew, empty."""
        self.close()
        self._damaged = False
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        self._is_new = True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _add(self, connection: sqlite3.Connection, raw: bytes, content: bytes | None) -> None:
        entry = log.parse(raw)
        if entry.op not in log.KEY_OPS:
            connection.execute(
                "UPDATE items SET object = NULL WHERE memory_id = ? AND object IS NOT NULL AND seq < ?",
                (entry.memory_id, entry.seq),
            )
        connection.execute(
            # Another process may have been here with later entries already.
            "INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?)",
            (entry.seq, raw, entry.memory_id, content),
        )

    def _select(self, query: str, *parameters: int) -> list[LogItem]:
        """Rows of entry and object. What cannot be read, or is neither, is fetched anew."""
        if self._connection is None:
            return []
        try:
            rows = self._connection.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            self._note(error)
            return []
        if all(type(raw) is bytes and (content is None or type(content) is bytes) for raw, content in rows):
            return rows
        self._damaged = True
        return []

    def _note(self, error: sqlite3.Error) -> None:
        # A file that is locked, or has no space, is still good: the next start only fetches more.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        self._damaged = self._damaged or code & 0xFF not in _PASSING

    def _open(self) -> None:
        self._is_new = False
        if not private_files.check(self._path):
            with suppress(FileExistsError):
                private_files.create(self._path)
        try:
            self._connection = _connect(self._path)
        except sqlite3.OperationalError:
            self._connection = None  # another process is at it: without a cache everything is fetched
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
            private_files.create(self._path)
            self._connection = _connect(self._path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=1.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA secure_delete = ON")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {_FORMAT}; COMMIT;")
        elif version != _FORMAT:
            raise sqlite3.DatabaseError("another format")
    except BaseException:
        connection.close()
        raise
    return connection
