"""What is said once: lines on stderr for a person, and the note about the recovery code for an agent."""

from __future__ import annotations

import sys
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from squirrel_mcp.advice import NO_RECOVERY_CODE, explained
from squirrel_mcp.errors import SquirrelError
from squirrel_mcp.escaping import escape

if TYPE_CHECKING:
    from squirrel_mcp.edition import Edition
    from squirrel_mcp.service import MemoryService, Status

_MOST = 100  # different lines; a process that has said more has said enough


def startup_line(status: Status, edition: Edition) -> str:
    """Where the memories are and how they are searched, or why not; the companion's ranker tells of its model."""
    searched = "words and meaning" if edition.by_meaning else "words"
    if status.unlocked:
        trouble = f"; {status.problem[1]}" if status.problem else ""
        return f"memory: {status.place}, search by {searched}{trouble}"
    return _trouble(*(status.problem or ("", "")))


def _trouble(code: str, message: str) -> str:
    return f"memory: {explained(code, message)} ({code})"


class Notices:
    """Thread-safe. A client that closed our stderr costs nothing but the lines."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._lock = Lock()
        self._recovery_told = False

    def say(self, line: str) -> None:
        """Write one line to stderr, if it was not written before."""
        line = escape(line).replace("\n", " ")
        with self._lock:
            if line in self._said or len(self._said) >= _MOST:
                return
            self._said.add(line)
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    def trouble(self, code: str, message: str) -> None:
        """Say what is wrong, and what to do, as the start-up line does."""
        self.say(_trouble(code, message))

    def recovery_code(self, service: MemoryService) -> str:
        """The note that there is none, for the first reply that can tell; "" afterwards, or where there is one."""
        with self._lock:
            if self._recovery_told:
                return ""
            try:
                status = service.status()
            except SquirrelError:
                return ""
            self._recovery_told = status.unlocked
            return NO_RECOVERY_CODE if status.unlocked and not status.recovery_code else ""
