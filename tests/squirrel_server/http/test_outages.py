"""The database goes away and comes back, or has no room: a typed answer, nothing lost, and on it goes."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from squirrel_server.store import sql_store
from squirrel_server.store.sqlite_database import SqliteDatabase
from tests.squirrel_server.http.member import Member, joined, problem
from tests.squirrel_server.http.running import running
from tests.squirrel_server.store.builder import make_object

POSTGRESQL = ("127.0.0.1", 5432)


class Line:
    """A way to PostgreSQL that can be cut: a port of its own that passes bytes on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._up = True
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection, and refuse new ones."""
        with self._lock:
            self._up = False
            for end in self._ends:
                _shut(end)
            self._ends.clear()

    def mend(self) -> None:
        """Let new connections through."""
        with self._lock:
            self._up = True

    def close(self) -> None:
        self.cut()
        _shut(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                if not self._up:
                    near.close()
                    continue
                far = socket.create_connection(POSTGRESQL)
                self._ends += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    _shut(sink)
    source.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def line(postgresql: str) -> Iterator[Line]:
    found = Line()
    yield found
    found.close()


def by(line: Line, postgresql: str) -> str:
    assert ":5432/" in postgresql
    return postgresql.replace(":5432/", f":{line.port}/")


def test_a_database_that_goes_away_is_unavailable_until_it_is_back(line: Line, postgresql: str) -> None:
    with running(by(line, postgresql)) as server, server.client() as web:
        member = joined(server, web)
        assert member.append(member.client.put()).is_success
        line.cut()
        pair = member.client.copy().put()
        for answer in (member.append(pair), member.call("GET", "/v1/account"), web.get("/v1/health")):
            problem(answer, 503, "unavailable")
            assert answer.headers["retry-after"]
        line.mend()
        assert member.append(pair).is_success
        assert web.get("/v1/health").is_success


@pytest.mark.parametrize("when", ["before it writes", "after it wrote"])
def test_a_database_that_goes_away_within_a_request_has_kept_nothing_of_it(
    line: Line, postgresql: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    write = sql_store.write_batch

    def interrupted(*arguments: Any) -> None:
        if when == "before it writes":
            line.cut()
            write(*arguments)
        else:
            write(*arguments)
            line.cut()

    with running(by(line, postgresql)) as server, server.client() as web:
        member = joined(server, web)
        pair = member.client.copy().put()
        with monkeypatch.context() as patch:
            patch.setattr(sql_store, "write_batch", interrupted)
            problem(member.append(pair), 503, "unavailable")
        line.mend()
        assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1
        assert member.append(pair).is_success


def test_a_sqlite_file_that_is_moved_away_is_unavailable_until_it_is_back(tmp_path: Path) -> None:
    file = tmp_path / "server.db"
    with running(f"sqlite:///{file}") as server, server.client() as web:
        member = joined(server, web)
        file.rename(tmp_path / "elsewhere.db")
        answer = member.append(member.client.copy().put())
        problem(answer, 503, "unavailable")
        assert str(tmp_path) not in answer.text
        (tmp_path / "elsewhere.db").rename(file)
        assert member.append(member.client.put()).is_success


@contextmanager
def no_room_for_more(patch: pytest.MonkeyPatch, pages: int) -> Iterator[None]:
    connect = SqliteDatabase._connect

    def limited(database: SqliteDatabase) -> sqlite3.Connection:
        connection = connect(database)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with patch.context() as inner:
        inner.setattr(SqliteDatabase, "_connect", limited)
        yield


def test_a_full_disk_refuses_writes_and_goes_on_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, now = f"sqlite:///{tmp_path / 'server.db'}", [1_800_000_000.0]
    with running(url, clock=lambda: now[0]) as server, server.client() as web:
        member = joined(server, web)
        assert member.append(member.client.put()).is_success
    with closing(sqlite3.connect(tmp_path / "server.db")) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    large = [member.client.copy().put(body=make_object(65_536))]
    with (
        no_room_for_more(monkeypatch, pages + 2),
        running(url, clock=lambda: now[0]) as server,
        server.client() as web,
    ):
        member = Member(web, member.client, member.key)
        problem(member.append(*large), 507, "full")
        now[0] += 86_400  # the note of the key's new day has to fit as well, or be left out
        assert member.call("GET", "/v1/account").json()["head"]["seq"] == 2
        problem(member.append(*large), 507, "full")
    with running(url, clock=lambda: now[0]) as server, server.client() as web:
        member = Member(web, member.client, member.key)
        assert member.append(*large).is_success


def test_a_key_is_let_in_though_its_use_cannot_be_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, now = f"sqlite:///{tmp_path / 'server.db'}", [1_800_000_000.0]
    monkeypatch.setattr("squirrel_server.store.sqlite_database.BUSY_SECONDS", 0.1)
    with running(url, clock=lambda: now[0]) as server, server.client() as web:
        member = joined(server, web)
        other = member.with_key("read")
        with closing(sqlite3.connect(tmp_path / "server.db", isolation_level=None)) as busy:
            busy.execute("BEGIN IMMEDIATE")
            assert other.call("GET", "/v1/account").is_success
            problem(member.append(member.client.copy().put()), 503, "unavailable")
            busy.execute("ROLLBACK")
        noted = {key["id"]: key["lastUsed"] for key in member.call("GET", "/v1/keys").json()["keys"]}
        assert noted[other.key.split("_")[1]] is None
