"""A real process of the command line at a real (pseudo) terminal, with somebody who reads and types."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping

_PATIENCE = 120.0  # seconds of silence until a process counts as hanging
# The session's first terminal becomes its controlling one: Ctrl-C reaches the process, and getpass finds it.
_LAUNCH = """
import os, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Terminal:
    """`screen` is everything that was shown, what was typed included where it was echoed."""

    def __init__(self, *args: str, environment: Mapping[str, str], module: str = "squirrel_mcp") -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, "-m", module, *args],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**environment, "TERM": "xterm", "COLUMNS": "120"},
        )
        os.close(theirs)
        self.screen = ""
        self._seen = 0

    def wait_for(self, text: str) -> str:
        """Read until `text` is shown; what was shown since the last wait."""
        while text not in self.screen[self._seen :]:
            if not self._read():
                raise AssertionError(f"It ended before it showed {text!r}:\n{self.screen}")
        start, self._seen = self._seen, self.screen.index(text, self._seen) + len(text)
        return self.screen[start : self._seen]

    def type(self, line: str) -> None:
        os.write(self._ours, line.encode() + b"\n")

    def end_with_ctrl_c(self) -> int:
        """Press Ctrl-C, and again while nothing comes of it (the C library may have been about to read just then)."""
        while True:
            os.write(self._ours, b"\x03")
            while select.select([self._ours], [], [], 1.0)[0]:
                if not self._read():
                    return self._process.wait(_PATIENCE)

    def answer(self, question: str, line: str) -> None:
        self.wait_for(question)
        self.type(line)

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self._process.wait(_PATIENCE)

    def kill(self) -> None:
        """At the end of a test, however it ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], _PATIENCE)
        if not ready:
            raise AssertionError(f"It hangs after:\n{self.screen}")
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # the other side is closed
            return False
        self.screen += piece.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(piece)
