"""A real `squirrel-server serve` process that stays at its address when it is stopped and started again."""

from __future__ import annotations

import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .server_process import PATIENCE, ROOT, Lines


class AccountServer:
    """`origin` and `certificate` (SHA-256, or "" for plain http) are those of the first start."""

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        self.folder, self.origin, self.certificate = folder, "", ""
        self._tls, self._port = tls, 0
        self._process: subprocess.Popen[bytes] | None = None
        self._written: list[Lines] = []
        self.start()

    def start(self) -> None:
        options = ["--port", str(self._port), *(["--tls-self-signed"] if self._tls else [])]
        self._process = subprocess.Popen(
            [*_command("serve", self.folder), *options],
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdout and self._process.stderr
        said, logged = Lines(self._process.stdout), Lines(self._process.stderr)
        self._written += [said, logged]
        self.origin = said.wait_for(lambda line: b"://" in line).split()[-1].decode()
        self._port = int(self.origin.rpartition(":")[2])
        if self._tls:
            self.certificate = said.wait_for(lambda line: b"SHA-256" in line).split()[-1].decode()
        logged.wait_for(lambda line: b"startup complete" in line)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(PATIENCE) == 0
            self._process = None

    def kill(self) -> None:
        """At the end of a test, however it ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def invite(self) -> str:
        return self._ask("invite").strip()

    def backup(self, file: Path) -> None:
        self._ask("backup", str(file))

    def restore(self, file: Path) -> None:
        """Put a backup in the place of the database of the server that is stopped."""
        assert self._process is None
        for path in self.folder.glob("server.db*"):
            path.unlink()
        (self.folder / "server.db").write_bytes(file.read_bytes())

    def holds(self) -> bytes:
        """Every byte in its folder and everything it printed; it is stopped."""
        assert self._process is None
        files = [path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()]
        return b"\n".join([*files, self.logged()])

    def logged(self) -> bytes:
        """Every line of its log; it is stopped."""
        assert self._process is None
        return b"".join(lines.all() for lines in self._written)

    def _ask(self, *command: str) -> str:
        result = subprocess.run(
            [*_command(command[0], self.folder), *command[1:]],
            env=_environment(), capture_output=True, encoding="utf-8", check=True,
        )  # fmt: skip
        return result.stdout


def _command(name: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", "squirrel_server", name, "--data-dir", str(folder)]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


class Relay(socketserver.ThreadingTCPServer):
    """Passes bytes on to a server on this machine, and keeps them all."""

    daemon_threads = False  # so that closing it waits for the connections

    def __init__(self, to: int) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.to, self.pieces = to, list[bytes]()
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"

    def seen(self) -> bytes:
        """What went either way, piece after piece as it came."""
        return b"".join(self.pieces)


class _Passing(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.to)) as target:
            back = threading.Thread(target=self._pass, args=(target, self.request))
            back.start()
            self._pass(self.request, target)
            back.join()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # one of the two went away
            while piece := source.recv(65_536):
                self.server.pieces.append(piece)
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)


@contextmanager
def account_server(folder: Path, *, tls: bool = False) -> Iterator[AccountServer]:
    server = AccountServer(folder, tls=tls)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def relay(origin: str) -> Iterator[Relay]:
    with Relay(int(origin.rpartition(":")[2])) as passing:
        threading.Thread(target=passing.serve_forever, daemon=True).start()
        try:
            yield passing
        finally:
            passing.shutdown()
