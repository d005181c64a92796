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
from typing import Any

from squirrel_mcp import private_files
from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.verifier import LogItem

_FORMAT = 1  # kept in user_version; a file of another format is made anew
_TABLES = """
    CREATE TABLE items (seq INTEGER PRIMARY KEY, entry BLOB NOT NULL, memory_id BLOB NOT NULL, object BLOB);
    CREATE INDEX objects ON items (memory_id) WHERE object IS NOT NULL;
"""


class StateCache:
    """A file that may be lost at any time. Errors of reading or writing it never stop what it serves."""

    def __init__(self, path: Path) -> None:
        """UnsafeFile for a link and the like; a file that is damaged is replaced."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._open()

    def head(self) -> Head:
        """The last entry in the file; `log.EMPTY` if there is none."""
        for (raw,) in self._select("SELECT entry FROM items ORDER BY seq DESC LIMIT 1"):
            if len(raw) == log.ENTRY_BYTES:
                return log.parse(raw).head
        return log.EMPTY

    def page(self, after: int, limit: int) -> list[LogItem]:
        """Up to `limit` items behind seq `after`."""
        rows = self._select("SELECT entry, object FROM items WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
        return [(entry, content) for entry, content in rows]

    def add(self, items: Sequence[LogItem]) -> None:
        """Verified items that follow what is here."""
        if self._connection is None:
            return
        with suppress(sqlite3.Error), self._connection:
            for raw, content in items:
                entry = log.parse(raw)
                if entry.op not in log.KEY_OPS:
                    self._connection.execute(
                        "UPDATE items SET object = NULL WHERE memory_id = ? AND object IS NOT NULL AND seq < ?",
                        (entry.memory_id, entry.seq),
                    )
                self._connection.execute(
                    # Another process may have been here with later entries already.
                    "INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?)",
                    (entry.seq, raw, entry.memory_id, content),
                )

    def drop(self) -> None:
        """Begin anew, empty."""
        self.close()
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        self._open()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _select(self, query: str, *parameters: int) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(query, parameters).fetchall()
        except sqlite3.Error:
            return []

    def _open(self) -> None:
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
