"""A server that is honest until it is told a lie: real sockets on loopback, the real store, the protocol's JSON.

It speaks the protocol by itself and not through `squirrel_server.http`, so that it can say what that one never would.
`lie` changes what is shown of an account; `answer` changes one reply; `wire` takes over the connection.
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import sqlite3
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from squirrel_server.store import HeadMoved, SqlStore, StoreError

Item = tuple[bytes, bytes | None]
JSON = dict[str, Any]

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_STATUS = {
    "append_denied": 403,
    "unknown_account": 404,
    "unknown_object": 404,
    "account_exists": 409,
    "forgotten": 409,
    "unknown_memory": 409,
    "head_moved": 412,
    "too_large": 413,
    "malformed": 422,
    "unavailable": 503,
    "full": 507,
}


class Asked(NamedTuple):
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """A reply before it goes out; a dict becomes JSON, bytes go as they are."""

    status: int
    body: JSON | bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Shown:
    """An account as it is shown; the lies change this. `head` is the log's, `account_head` the one beside the keys."""

    account_id: bytes
    wraps: tuple[bytes, ...]
    previous_keys: bytes | None
    items: tuple[Item, ...]
    head: tuple[int, bytes]
    account_head: tuple[int, bytes]


Lie = Callable[[Shown], Shown]
Change = Callable[[Asked, Answer], Answer]
Wire = Callable[[socket, Asked], bool | None]


def make_key() -> str:
    """A well-formed API key."""
    body = "sqn_" + "_".join("".join(secrets.choice(_BASE62) for _ in range(length)) for length in (12, 43))
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return f"{body}_{digits}"


class HostileServer:
    """One server, one account per API key. Start it with `running`."""

    def __init__(self, folder: Path, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self._file = folder / "server.db"
        self._lock = threading.RLock()
        self.store = SqlStore(f"sqlite:///{self._file}")
        self.keys: dict[str, bytes] = {}
        self.lie: Lie | None = None
        self.answer: Change | None = None
        self.wire: Wire | None = None
        self.page_entries = 10_000
        self.asked: list[Asked] = []
        self.sent = 0  # bytes of bodies
        self.connections = 0
        self._http = _Listener(self, tls, port)
        scheme = "https" if tls else "http"
        self.port = self._http.server_address[1]
        self.origin = f"{scheme}://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[HostileServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()
            self.store.close()

    def honest(self) -> None:
        """No lies any more, and nothing counted yet."""
        self.lie = self.answer = self.wire = None
        self.page_entries = 10_000
        self.asked.clear()
        self.sent = self.connections = 0

    def requests(self) -> list[str]:
        """Method and path of everything asked so far."""
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def registrar(self, key: str) -> Registrar:
        """Where a new account for `key` can be made without HTTP."""
        return Registrar(self, key)

    def back_up(self, to: Path) -> None:
        """A copy of the database as it is now."""
        with self._lock:
            source, target = sqlite3.connect(self._file), sqlite3.connect(to)
            source.backup(target)
            source.close()
            target.close()

    def restore(self, source: Path) -> None:
        """Go on from such a copy."""
        with self._lock:
            self.store.close()
            for path in self._file.parent.glob("server.db*"):
                path.unlink()
            shutil.copy(source, self._file)
            self.store = SqlStore(f"sqlite:///{self._file}")

    def shown(self, account_id: bytes, objects: Any = "all") -> Shown:
        """The whole account, honestly."""
        with self._lock:
            record = self.store.account(account_id)
            items: list[Item] = []
            while True:
                page = self.store.read_log(account_id, len(items), 10_000, objects)
                items += page.entries
                if not page.more:
                    break
        head = (record.head.seq, record.head.mac)
        return Shown(account_id, record.wraps, record.previous_keys, tuple(items), head, head)

    def reply_to(self, asked: Asked) -> Answer:
        """What goes out, lies included."""
        with self._lock:
            try:
                answer = self._honest_reply(asked)
            except HeadMoved as error:
                answer = _problem(412, "head_moved", head=_head((error.head.seq, error.head.mac)))
            except StoreError as error:
                answer = _problem(_STATUS.get(error.code, 500), error.code)
        return self.answer(asked, answer) if self.answer else answer

    def _honest_reply(self, asked: Asked) -> Answer:
        body = json.loads(asked.body) if asked.body else {}
        if (asked.method, asked.path) == ("POST", "/v1/accounts"):
            return self._register(body)
        key = asked.headers.get("Authorization", "").removeprefix("Bearer ")
        account_id = self.keys.get(key)
        if account_id is None:
            return _problem(401, "unauthenticated")
        append_key = base64.b64decode(asked.headers.get("Squirrel-Append", ""))
        match asked.method, asked.path.split("/")[2:]:
            case "GET", ["account"]:
                return Answer(200, account_json(self._lied(account_id, "latest")))
            case "GET", ["log"]:
                return Answer(200, self._page(account_id, asked.query))
            case "POST", ["log"]:
                items = [(_bytes(item["entry"]), _maybe(item["object"])) for item in body["entries"]]
                return self._moved(self.store.append(account_id, append_key, items))
            case "PUT", ["account", "key-set"]:
                wraps, verifier = [_bytes(wrap) for wrap in body["wraps"]], body["appendVerifier"]
                head = self.store.replace_key_set(
                    account_id, append_key, wraps, _maybe(body["previousKeys"]), _bytes(body["entry"]),
                    bytes.fromhex(verifier) if verifier else None,
                )  # fmt: skip
                return self._moved(head)
            case "GET", ["objects", sha256]:
                content = self.store.object(account_id, bytes.fromhex(sha256))
                return Answer(200, {"object": base64.b64encode(content).decode()})
            case "DELETE", ["account"]:
                self.store.delete_account(account_id, append_key)
                return Answer(204, b"")
        return _problem(404, "not_found")

    def _register(self, body: JSON) -> Answer:
        account_id = bytes.fromhex(body["accountId"])
        wraps = [_bytes(wrap) for wrap in body["wraps"]]
        self.store.register(account_id, wraps, None, _bytes(body["entry"]), bytes.fromhex(body["appendVerifier"]))
        key = make_key()
        self.keys[key] = account_id
        return Answer(201, {"apiKey": key})

    def _lied(self, account_id: bytes, objects: Any) -> Shown:
        shown = self.shown(account_id, objects)
        return self.lie(shown) if self.lie else shown

    def _page(self, account_id: bytes, query: dict[str, str]) -> JSON:
        after, limit = int(query.get("after", 0)), min(int(query.get("limit", 10_000)), self.page_entries)
        objects = query.get("objects", "latest")
        if self.lie is None:
            page = self.store.read_log(account_id, after, limit, objects)  # type: ignore[arg-type]
            return page_json(page.entries, (page.head.seq, page.head.mac), page.more)
        shown = self._lied(account_id, objects)
        start = next((at + 1 for at, (raw, _) in enumerate(shown.items) if seq_of(raw) == after), after)
        rest = shown.items[start:]
        return page_json(rest[:limit], shown.head, len(rest) > limit)

    def _moved(self, head: Any) -> Answer:
        return Answer(200, {"head": _head((head.seq, head.mac))})


class Registrar:
    """Makes the account of one API key."""

    def __init__(self, server: HostileServer, key: str) -> None:
        self._server, self._key = server, key

    def register(self, key_set: Any, entry: bytes, append_verifier: bytes) -> Any:
        wraps = [wrap.raw for wrap in key_set.wraps]
        head = self._server.store.register(key_set.account_id, wraps, key_set.previous_keys, entry, append_verifier)
        self._server.keys[self._key] = key_set.account_id
        return head


def account_json(shown: Shown) -> JSON:
    return {
        "accountId": shown.account_id.hex(),
        "wraps": [base64.b64encode(wrap).decode() for wrap in shown.wraps],
        "previousKeys": None if shown.previous_keys is None else base64.b64encode(shown.previous_keys).decode(),
        "head": _head(shown.account_head),
        "limits": {"maxBodyBytes": 2**21, "maxEntries": 10_000, "maxObjectBytes": 65_536},
    }


def page_json(items: Any, head: tuple[int, bytes], more: bool) -> JSON:
    entries = [
        {
            "entry": base64.b64encode(raw).decode(),
            "object": None if content is None else base64.b64encode(content).decode(),
        }
        for raw, content in items
    ]
    return {"entries": entries, "head": _head(head), "more": more}


def seq_of(raw: bytes) -> int | None:
    """The seq an entry claims; None for what is too short to have one."""
    return int.from_bytes(raw[2:10], "big") if len(raw) >= 10 else None


def _head(head: tuple[int, bytes]) -> JSON:
    return {"seq": head[0], "mac": head[1].hex()}


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _maybe(text: str | None) -> bytes | None:
    return None if text is None else _bytes(text)


def _problem(status: int, code: str, **more: Any) -> Answer:
    body = {"type": "about:blank", "title": code, "status": status, "code": code, **more}
    return Answer(status, body, (("Content-Type", "application/problem+json"),))


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: HostileServer, tls: ssl.SSLContext | None, port: int) -> None:
        self.owner, self._tls = owner, tls
        super().__init__(("127.0.0.1", port), _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        # The handshake belongs to the connection's own thread: one who never finishes it must not stop the others.
        self.owner.connections += 1
        with suppress(OSError):
            if self._tls:
                request = self._tls.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)
            if self._tls:
                request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("Content-Length", "0"))
        parts = urlsplit(self.path)
        asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), self.headers, self.rfile.read(length))
        owner.asked.append(asked)
        if owner.wire is not None and owner.wire(self.connection, asked) is not False:
            self.close_connection = True
            return
        answer = owner.reply_to(asked)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response_only(answer.status)
        names = {name.lower() for name, _ in answer.headers}
        for name, value in answer.headers:
            self.send_header(name, value)
        if "content-type" not in names:
            self.send_header("Content-Type", "application/json")
        if answer.status != 204 and "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        owner.sent += len(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_CONNECT = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""
