"""What a device waits for when its memories are on a server: first sync, a start with nothing new, a search.

    python scripts/bench/remote.py [--size 10000] [--queries 200]

A real `squirrel-server serve --tls-self-signed` on loopback, a real stdio server as the device, made-up memories
(corpus.py), the key derivation every account has. Bytes are counted by a relay between the two.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from corpus import memories, queries
from machine import describe
from stdio_client import StdioClient, environment

from squirrel_mcp import opening, remote_vault
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync import certificate

_PASSPHRASE = "a passphrase for the bench"
_SERVE = [sys.executable, "-c", "from squirrel_mcp.cli import main; main()"]
_SERVER = [sys.executable, "-c", "from squirrel_server.cli import main; main()"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder) / "server") as (port, pin):
        relay = _Relay(port)
        settings = _account(Path(folder), f"https://127.0.0.1:{relay.port}", pin, arguments.size)
        rows = _measure(settings, relay, arguments.queries, Path(folder))
    print(f"{describe()}\n")
    print(f"{f'{arguments.size:,} memories on a server over loopback TLS':<58}{'':>12}{'target':>12}")
    for name, value, target in rows:
        print(f"{name:<58}{value:>12}{target:>12}")


def _measure(settings: Settings, relay: _Relay, asked: int, folder: Path) -> list[tuple[str, str, str]]:
    environ = environment(
        folder / "device",
        SQUIRREL_PASSPHRASE=_PASSPHRASE,
        SQUIRREL_API_BASE_URL=settings.api_base_url or "",
        SQUIRREL_API_KEY=settings.api_key or "",
        SQUIRREL_CA_FILE=str(settings.ca_file),
    )
    first = _ready(environ)
    relay.reset()
    again = _ready(environ)
    start_bytes = relay.transferred
    with StdioClient(_SERVE, environ) as client:
        client.initialize()
        client.call("search_memory", query="anything")
        relay.reset()
        times = []
        for text in queries(asked, seed=2):
            began = time.perf_counter()
            client.call("search_memory", query=text)
            times.append(time.perf_counter() - began)
        search_bytes = relay.transferred / asked
        connections = relay.connections
    return [
        ("first sync, s", f"{first:.2f}", "4"),
        ("a start with nothing changed: ready, s", f"{again:.2f}", "1.5"),
        ("    transferred, KB", f"{start_bytes / 1e3:.1f}", "100"),
        ("search_memory when nothing changed, p50 ms", f"{statistics.median(times) * 1e3:.1f}", "12"),
        ("    transferred a search, KB", f"{search_bytes / 1e3:.1f}", ""),
        ("    connections made for all of them", f"{connections}", "0"),
    ]


def _ready(environ: dict[str, str]) -> float:
    """Seconds from the first answer, behind which the account is opened, to a reply that needs it."""
    with StdioClient(_SERVE, environ) as client:
        client.initialize()
        began = time.perf_counter()
        client.call("memory_status")
        return time.perf_counter() - began


@contextmanager
def _server(folder: Path) -> Iterator[tuple[int, str]]:
    """(port, fingerprint of the certificate) of a server with its data in `folder`."""
    command = [*_SERVER, "serve", "--port", "0", "--tls-self-signed", "--data-dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            port = re.search(r":(\d+)\s*$", process.stdout.readline())
            pin = process.stdout.readline().split()[-1]
            assert port is not None
            yield int(port[1]), pin
        finally:
            process.terminate()


def _account(folder: Path, origin: str, pin: str, size: int) -> Settings:
    ca_file = folder / "certificate.pem"
    ca_file.write_text(certificate.fetch(origin, certificate.normal_fingerprint(pin)), encoding="ascii")
    invite = subprocess.run(
        [*_SERVER, "invite", "--data-dir", str(folder / "server")], capture_output=True, text=True, check=True
    ).stdout.strip()
    settings = Settings(data_dir=folder / "loader", passphrase=_PASSPHRASE, api_base_url=origin, ca_file=ca_file)
    to = remote_vault.transport(settings)
    key = remote_vault.create(to, invite, _PASSPHRASE)
    to.close()
    settings = replace(settings, api_key=key.secret())
    vault = opening.open_vault(settings, opening.from_settings(settings))
    vault.put_revisions(list(memories(size)))
    vault.close()
    return settings


class _Relay:
    """Passes bytes between a port of its own and the server's, and counts them."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.transferred = self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> None:
        self.transferred = self.connections = 0

    def _accept(self) -> None:
        while True:
            device, _ = self._listener.accept()
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self._to))
            for source, sink in ((device, server), (server, device)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self.transferred += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            sink.close()


if __name__ == "__main__":
    os.environ.pop("SQUIRREL_PASSPHRASE", None)
    main()
