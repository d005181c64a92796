"""What a server, or what stands in its place, can do to one connection; each takes over after a request was read."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from functools import cache

from tests.hostile_server import Asked, Wire

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def raw(*chunks: bytes) -> Wire:
    """Send these bytes and close."""

    def wire(connection: socket.socket, _: Asked) -> None:
        _send(connection, iter(chunks))

    return wire


def body(content: bytes, *headers: bytes, status: bytes = b"200 OK") -> Wire:
    """A whole reply with this body."""
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(content), *headers]
    return raw(b"\r\n".join(lines) + b"\r\n\r\n" + content)


def redirect(to: str, status: int = 307) -> Wire:
    return body(b"", b"Location: " + to.encode(), status=b"%d Elsewhere" % status)


def bomb(encoding: bytes) -> Wire:
    """Little that becomes a lot once it is unpacked; whatever it is called, nobody may look."""
    return body(_packed(), b"Content-Encoding: " + encoding)


@cache
def _packed() -> bytes:
    return gzip.compress(bytes(256 * 1024 * 1024), 1)


def endless(*, chunked: bool = False) -> Wire:
    """A body that never ends, as fast as it is read."""
    block = b" " * 65_536
    head = OK + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Content-Length: 1000000000000\r\n\r\n")
    piece = b"10000\r\n" + block + b"\r\n" if chunked else block

    def blocks() -> Iterator[bytes]:
        yield head
        while True:
            yield piece

    def wire(connection: socket.socket, _: Asked) -> None:
        _send(connection, blocks())

    return wire


def drip(first: bytes, gone: threading.Event, piece: bytes = b" ", pause: float = 0.02) -> Wire:
    """A byte now and then, for ever: each read succeeds, the whole never ends. `gone` is set once nobody reads."""

    def pieces() -> Iterator[bytes]:
        yield first
        while not gone.wait(pause):
            yield piece

    def wire(connection: socket.socket, _: Asked) -> None:
        _send(connection, pieces())
        gone.set()

    return wire


def cut(real: Callable[[Asked], object]) -> Wire:
    """Do what was asked, and close without a word."""

    def wire(connection: socket.socket, asked: Asked) -> None:
        real(asked)
        connection.shutdown(socket.SHUT_RDWR)

    return wire


def page(**fields: object) -> bytes:
    """A well-formed last page of the log with nothing in it, some fields replaced."""
    return json.dumps({"entries": [], "head": {"seq": 1, "mac": "00" * 32}, "more": False, **fields}).encode()


def _send(connection: socket.socket, chunks: Iterator[bytes]) -> None:
    try:
        for chunk in chunks:
            connection.sendall(chunk)
    except OSError:
        pass


def tunnel(port: int) -> Wire:
    """What an honest proxy does after CONNECT."""

    def wire(connection: socket.socket, _: Asked) -> None:
        with socket.create_connection(("127.0.0.1", port)) as target:
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=_pass_on, args=(target, connection))
            back.start()
            _pass_on(connection, target)
            back.join()

    return wire


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
