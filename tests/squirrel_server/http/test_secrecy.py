"""What is not to be found afterwards: keys in the database, and ids, keys or addresses in logs and metrics."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from sqlalchemy import MetaData, create_engine

from squirrel_server.api_keys import read_key
from squirrel_server.http.json_log import error_place
from squirrel_server.store.server_store import ServerStore
from tests.squirrel_server.http.member import Member, batch_of, joined, problem
from tests.squirrel_server.http.running import Running, running


def _forms(secret: bytes) -> list[bytes]:
    return [secret, secret.hex().encode(), b64encode(secret)]


def _dump(url: str) -> bytes:
    """Every value of every table, as bytes."""
    engine = create_engine(url)
    metadata = MetaData()
    metadata.reflect(engine)
    with engine.connect() as connection:
        rows = [row for table in metadata.tables.values() for row in connection.execute(table.select())]
    engine.dispose()
    return b"\n".join(
        bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode() for row in rows for value in row
    )


def test_a_dump_of_the_database_lets_nobody_in(server: Running, web: httpx.Client, url: str, member: Member) -> None:
    invite = server.invite()
    other = member.with_key("read")
    assert member.append(member.client.put()).is_success
    dump = _dump(url)
    presented = read_key(member.key)
    assert presented is not None and presented.digest in dump  # it is looked for in the right place
    for text in (member.key, other.key, invite):
        secret = text.split("_")[-2]
        assert text.encode() not in dump and secret.encode() not in dump
    for form in _forms(member.client.append_key):
        assert form not in dump
    # What is in there, tried as a key: an id and a hash are no secret.
    for guess in (presented.digest.hex(), b64encode(presented.digest).decode()):
        key = f"sqn_{presented.key_id}_{guess[:43]}_000000"
        problem(web.get("/v1/account", headers={"Authorization": f"Bearer {key}"}), 401, "unauthenticated")


def test_logs_hold_one_line_per_request_and_nobodys_ids(file_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with running(file_url) as server, server.client() as web:
        member = joined(server, web)
        client = member.client
        entry, body = client.put()
        assert member.append((entry, body)).is_success
        problem(member.append((entry, body)), 412, "head_moved")
        other = member.with_key("read")
        member.call("GET", f"/v1/objects/{entry[42:74].hex()}")
        member.call("GET", f"/v1/{client.account_id.hex()}")
        member.call("GET", "/v1/log?after=0&secret=query")
        member.call("DELETE", f"/v1/keys/{other.key.split('_')[1]}")
        web.get("/v1/account", headers={"Authorization": f"Bearer {member.key}x"})
    written = capsys.readouterr().err
    found = [json.loads(line) for line in written.splitlines()]
    requests = [line for line in found if line["event"] == "request"]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [
        ("POST", "/v1/accounts", 201),
        ("POST", "/v1/log", 200),
        ("POST", "/v1/log", 412),
        ("POST", "/v1/keys", 201),
        ("GET", "/v1/objects/{sha256}", 200),
        ("GET", "none", 404),
        ("GET", "/v1/log", 422),
        ("DELETE", "/v1/keys/{id}", 204),
        ("GET", "/v1/account", 401),
    ]
    assert set(requests[1]) == {"time", "level", "event", "method", "route", "status", "ms", "in", "out"}
    everything = written.encode()
    secrets = [client.append_key, client.account_id, client.kid, entry[18:34], entry[42:74], entry[106:]]
    for form in [form for secret in secrets for form in _forms(secret)]:
        assert form not in everything
    for text in (member.key, *member.key.split("_")[1:3], other.key.split("_")[1], "127.0.0.1", "secret=query"):
        assert text.encode() not in everything


def test_metrics_count_by_route_template_and_hold_no_ids(file_url: str) -> None:
    with running(file_url) as server, server.client() as web:
        member = joined(server, web)
        entry, body = member.client.put()
        assert member.append((entry, body)).is_success
        digest = entry[42:74].hex()
        member.call("GET", f"/v1/objects/{digest}")
        web.request("BREW", "/v1/log")
        answer = web.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.text
    assert 'squirrel_requests_total{method="GET",route="/v1/objects/{sha256}",status="200"} 1.0' in text
    assert 'squirrel_requests_total{method="POST",route="/v1/accounts",status="201"} 1.0' in text
    assert 'method="other"' in text and "BREW" not in text
    assert "process_resident_memory_bytes" in text
    for secret in (digest, member.client.account_id.hex(), member.key.split("_")[1], "127.0.0.1"):
        assert secret not in text


def test_metrics_are_for_this_machine_unless_they_are_opened(file_url: str) -> None:
    with running(file_url, behind_proxy=True) as server, server.client() as web:
        problem(web.get("/metrics"), 404, "not_found")  # whoever asks, it is the proxy that does
    with running(file_url, behind_proxy=True, open_metrics=True) as server, server.client() as web:
        assert web.get("/metrics").is_success


def test_a_mistake_of_the_server_is_told_by_its_place_and_not_its_text(
    file_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(file_url) as server, server.client() as web:
        member = joined(server, web)

        def fail(*_: object) -> None:
            raise KeyError("a canary of the client's")

        monkeypatch.setattr(ServerStore, "append", fail)
        answer = member.append(member.client.put())
    problem(answer, 500, "internal")
    written = capsys.readouterr().err
    (line,) = [line for line in written.splitlines() if '"status": 500' in line]
    assert json.loads(line)["error"].startswith("KeyError in ")
    assert "canary" not in written + answer.text


def test_an_error_without_a_place_is_told_by_its_type() -> None:
    assert error_place(ValueError("canary")) == "ValueError"


def test_problems_repeat_nothing_of_what_was_sent(member: Member) -> None:
    canary = "canary" * 7
    answers = [
        member.call("POST", "/v1/keys", {"scope": canary}),
        member.call("POST", "/v1/keys", {canary: 1}),
        member.call("GET", f"/v1/log?after={canary}"),
        member.call("GET", f"/v1/log?{canary}=1"),
        member.call("GET", f"/v1/objects/{canary}"),
        member.call("DELETE", f"/v1/keys/{canary}"),
        member.call("GET", f"/{canary}"),
        member.call("POST", "/v1/log", {"entries": [{"entry": canary, "object": canary}]}),
        member.call("POST", "/v1/log", batch_of([(canary.encode(), None)])),
    ]
    assert not [answer.text for answer in answers if canary in answer.text or answer.status_code >= 500]


def test_secrets_are_not_in_the_sqlite_files_either(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path / 'server.db'}") as server, server.client() as web:
        member = joined(server, web)
        assert member.append(member.client.put()).is_success
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert member.key.split("_")[1].encode() in files
    assert member.key.split("_")[2].encode() not in files
    for form in _forms(member.client.append_key):
        assert form not in files
    with closing(sqlite3.connect(tmp_path / "server.db")) as connection:
        assert connection.execute("SELECT count(*) FROM api_keys").fetchone() == (1,)
