"""`squirrel-server serve` as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = [sys.executable, "-m", "squirrel_server"]
UNLIMITED = ("--key-rate", "0", "--address-rate", "0")


@dataclass
class ChildServer:
    """A running server and what it said first; its log goes on in `process.stderr`."""

    process: subprocess.Popen[str]
    address: str
    fingerprint: str

    @property
    def host(self) -> tuple[str, int]:
        name, port = self.address.partition("://")[2].rsplit(":", 1)
        return name.strip("[]"), int(port)

    def wait_for(self, text: str) -> None:
        """Read the log until a line has the text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        raise AssertionError(f"the server ended without saying {text!r}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def child_server(environment: dict[str, str], folder: Path, *options: str) -> Iterator[ChildServer]:
    """A server on a free port, up to the line that names it; killed if it is still there at the end."""
    command = [*COMMAND, "serve", "--port", "0", "--data-dir", str(folder), *UNLIMITED, *options]
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert line.startswith("Squirrel server at "), process.stderr.read()
            address = line.removeprefix("Squirrel server at ").strip()
            fingerprint = ""
            if address.startswith("https"):
                fingerprint = process.stdout.readline().removeprefix("Certificate SHA-256 ").strip()
            yield ChildServer(process, address, fingerprint)
        finally:
            process.kill()


def invite(environment: dict[str, str], folder: Path, *options: str) -> str:
    """What `squirrel-server invite` prints."""
    command = [*COMMAND, "invite", "--data-dir", str(folder), *options]
    result = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
    return result.stdout.strip()
