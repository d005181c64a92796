"""Bodies that nobody who means well would send: each is refused by its name, none is a server's error."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_server.http import bodies, strict_json
from squirrel_server.http.bodies import BodyBudget
from squirrel_server.http.encoding import from_base64, from_hex, to_base64
from squirrel_server.http.problems import Problem
from tests.squirrel_server.http.member import Member, batch_of, problem
from tests.squirrel_server.http.running import Running
from tests.squirrel_server.store.builder import make_object

CAP = 2 * 1024 * 1024
ROUTES = [("POST", "/v1/accounts"), ("PUT", "/v1/account/key-set"), ("POST", "/v1/log"), ("POST", "/v1/keys")]

NOT_JSON: dict[str, bytes] = {
    "nothing": b"",
    "text": b"hello",
    "half": b'{"entries": [',
    "two values": b"{} {}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"entries": []}'.encode("utf-16"),
    "invalid UTF-8": b'{"entries": "\xff"}',
    "an encoded surrogate": b'{"entries": "\xed\xa0\x80"}',
    "depth": b"[" * 100_000,
    "closed depth": b'{"entries":' * 50_000 + b"0" + b"}" * 50_000,
    "NaN": b'{"entries": NaN}',
    "infinity": b'{"entries": -Infinity}',
    "a float": b'{"entries": 1.0}',
    "an exponent": b'{"entries": 1e3}',
    "5,000 digits": b'{"entries": ' + b"9" * 5_000 + b"}",
    "2^53": b'{"entries": 9007199254740992}',
    "the same name twice": b'{"entries": [], "entries": []}',
    "a control character": b'{"entries": "\x01"}',
}
WRONG_SHAPES: dict[str, Any] = {
    "null": None,
    "an array": [],
    "a number": 1,
    "a string": "entries",
    "no field": {},
    "another field": {"other": 1},
    "a name with a lone surrogate": {"\ud800": 1},
}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route))
@pytest.mark.parametrize("what", NOT_JSON)
def test_what_is_not_strict_json_is_malformed(member: Member, route: tuple[str, str], what: str) -> None:
    headers = {**member.headers, "Content-Type": "application/json"}
    problem(member.web.request(*route, headers=headers, content=NOT_JSON[what]), 422, "malformed")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route))
@pytest.mark.parametrize("what", WRONG_SHAPES)
def test_json_of_another_shape_is_malformed(member: Member, route: tuple[str, str], what: str) -> None:
    headers = {**member.headers, "Content-Type": "application/json"}
    content = json.dumps(WRONG_SHAPES[what]).encode()
    found = problem(member.web.request(*route, headers=headers, content=content), 422, "malformed")
    assert "other" not in found["detail"] and "\ud800" not in found["detail"]


def _changed(batch: dict[str, Any], **changes: Any) -> dict[str, Any]:
    (item,) = batch["entries"]
    return {"entries": [{**item, **changes}]}


WRONG_FIELDS: dict[str, Any] = {
    "base64 without padding": lambda item: {"object": item["object"].rstrip("=")},
    "base64 with a line break": lambda item: {"entry": item["entry"] + "\n"},
    "base64 of the URL alphabet": lambda _: {"entry": "-_" * 92},
    "base64 that is not canonical": lambda _: {"object": "QUJ="},
    "base64 with too much padding": lambda _: {"object": "QUJD===="},
    "bytes as a list": lambda _: {"entry": [1, 2, 3]},
    "a number": lambda _: {"entry": 5},
    "true": lambda _: {"object": True},
    "an unknown field": lambda _: {"more": "x"},
    "beyond ASCII": lambda _: {"entry": "é" * 184},
    "a lone surrogate": lambda _: {"entry": "\ud800"},
}


@pytest.mark.parametrize("what", WRONG_FIELDS)
def test_a_field_that_does_not_fit_is_malformed_and_nothing_is_stored(member: Member, what: str) -> None:
    batch = batch_of([member.client.copy().put(body=make_object(349))])
    changed = _changed(batch, **WRONG_FIELDS[what](batch["entries"][0]))
    content = json.dumps(changed).encode()
    headers = {**member.headers, "Content-Type": "application/json"}
    problem(member.web.post("/v1/log", headers=headers, content=content), 422, "malformed")
    assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1


@pytest.mark.parametrize("kind", [None, "text/plain", "application/json; charset=utf-16", "application/jsonx", "x"])
def test_another_type_of_body_is_refused(member: Member, kind: str | None) -> None:
    headers = {**member.headers, **({} if kind is None else {"Content-Type": kind})}
    problem(member.web.post("/v1/log", headers=headers, content=b"{}"), 415, "unsupported_type")


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_json_may_name_its_charset(member: Member, kind: str) -> None:
    content = json.dumps(batch_of([member.client.put()])).encode()
    assert member.web.post("/v1/log", headers={**member.headers, "Content-Type": kind}, content=content).is_success


@pytest.mark.parametrize("coding", ["gzip", "br", "identity", ""])
def test_a_coded_body_is_refused_unread(member: Member, coding: str) -> None:
    headers = {**member.headers, "Content-Type": "application/json", "Content-Encoding": coding}
    problem(
        member.web.post("/v1/log", headers=headers, content=b"\x1f\x8b" + bytes(1_000)), 415, "unsupported_encoding"
    )


def test_a_body_over_the_cap_is_refused_by_its_length(member: Member) -> None:
    headers = {**member.headers, "Content-Type": "application/json"}
    problem(member.web.post("/v1/log", headers=headers, content=b" " * (CAP + 1)), 413, "too_large")


def test_a_body_in_chunks_is_counted_while_it_is_read(server: Running, member: Member) -> None:
    # Endless: the server has to end it.
    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * 65_536

    headers = {**member.headers, "Content-Type": "application/json"}
    problem(member.web.post("/v1/log", headers=headers, content=endless()), 413, "too_large")


def test_a_body_at_the_cap_is_read(member: Member) -> None:
    headers = {**member.headers, "Content-Type": "application/json"}
    content = json.dumps(batch_of([member.client.put()])).encode()
    assert member.web.post("/v1/log", headers=headers, content=content.ljust(CAP)).is_success


def _exchange(server: Running, request: bytes, *, finish: bool = True) -> bytes:
    """Raw bytes to the server, and everything it says until it closes."""
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        if finish:
            connection.shutdown(socket.SHUT_WR)
        said = b""
        while data := connection.recv(65_536):
            said += data
        return said


def _raw(member: Member, *more: str) -> bytes:
    lines = [
        "POST /v1/log HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Authorization: Bearer {member.key}",
    ]
    return "\r\n".join([*lines, *more, "", ""]).encode()


def test_a_length_that_promises_too_much_ends_with_the_connection(server: Running, member: Member) -> None:
    assert b" 200 " not in _exchange(server, _raw(member, "Content-Length: 1000") + b"{}")
    assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1


def test_a_length_that_promises_too_little_cuts_the_body_there(server: Running, member: Member) -> None:
    body = json.dumps(batch_of([member.client.copy().put()])).encode()
    said = _exchange(server, _raw(member, "Content-Length: 10") + body, finish=False)
    assert b" 422 " in said.split(b"\r\n")[0]
    assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1


@pytest.mark.parametrize(
    "line",
    ["Content-Length: x", "Content-Length: -1", "Content-Length: 1\r\nContent-Length: 2", "Transfer-Encoding: x"],
)
def test_a_length_that_is_none_is_a_bad_request(server: Running, member: Member, line: str) -> None:
    status = _exchange(server, _raw(member, line) + b"{}").split(b"\r\n")[0]
    assert b" 40" in status or b" 501" in status


def test_a_body_that_does_not_come_to_its_end_is_given_up(
    server: Running, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_SECONDS", 0.05)
    said = _exchange(server, _raw(member, "Content-Length: 1000") + b"{", finish=False)
    assert b" 408 " in said.split(b"\r\n")[0] and b"too_slow" in said


def test_a_length_of_many_digits_is_too_large(server: Running, member: Member) -> None:
    assert b" 413 " in _exchange(server, _raw(member, f"Content-Length: {'9' * 18}")).split(b"\r\n")[0]


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/log/", "//v1/log", "/v1/objects/", "/v1/keys/a/b", "/openapi.json", "/docs"]
)
def test_a_path_that_is_none_is_not_found_and_never_redirected(member: Member, path: str) -> None:
    problem(member.call("GET", path), 404, "not_found")


@pytest.mark.parametrize(
    ("path", "allowed"), [("/v1/log", "GET, POST"), ("/v1/account", "GET, DELETE"), ("/v1/health", "GET")]
)
def test_a_method_that_is_none_is_told_those_there_are(member: Member, path: str, allowed: str) -> None:
    answer = member.call("PATCH", path)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "query", ["after=1&after=2", "objects=some", "cursor=1", "limit=", "objects=latest&objects=all"]
)
def test_a_question_that_cannot_be_meant_is_malformed(member: Member, query: str) -> None:
    problem(member.call("GET", f"/v1/log?{query}"), 422, "malformed")


@pytest.mark.parametrize("name", ["x", "0" * 63, "0" * 65, "A" * 64, "%00" * 64, "é" * 64])
def test_a_name_that_is_no_hash_is_malformed(member: Member, name: str) -> None:
    problem(member.call("GET", f"/v1/objects/{name}"), 422, "malformed")


def test_every_reply_forbids_caching_and_guessing_its_type(member: Member) -> None:
    for path in ("/v1/account", "/v1/nothing", "/v1/health"):
        headers = member.call("GET", path).headers
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
        assert "server" not in headers


def test_bodies_that_are_held_at_once_are_bounded() -> None:
    budget = BodyBudget(100)
    budget.take(60)
    with pytest.raises(Problem) as caught:
        budget.take(41)
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "1")
    budget.give_back(60)
    budget.take(100)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_as_json_has_them_or_refused(data: bytes) -> None:
    try:
        value = strict_json.parse(data)
    except Problem as refused:
        assert refused.status == 422
    else:
        assert json.loads(data.decode("utf-8")) == value


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(_VALUES)
def test_json_without_floats_is_parsed(value: Any) -> None:
    assert strict_json.parse(json.dumps(value).encode("utf-8")) == value


@given(st.binary(max_size=100))
def test_base64_and_hex_have_one_text_for_some_bytes(data: bytes) -> None:
    assert from_base64(to_base64(data)) == data
    assert from_hex(data.hex(), len(data)) == data


@given(st.text(alphabet="AQZgw09+/=-_ \nA", max_size=12))
def test_a_text_that_is_read_as_base64_is_what_would_have_been_written(text: str) -> None:
    try:
        data = from_base64(text)
    except ValueError:
        return
    assert to_base64(data) == text


@pytest.mark.parametrize("text", ["AA", "Aa" * 16, " " * 32, "0x" + "0" * 30, "٣" * 32, None, 5])
def test_what_is_no_lower_case_hex_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="not lower-case hex"):
        from_hex(text, 16)
