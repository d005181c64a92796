"""Who gets in: keys, scopes, the append key, other accounts' things, revocation and expiry."""

from __future__ import annotations

import os
from itertools import product

import httpx
import pytest

from squirrel_server.api_keys import make_key
from tests.squirrel_server.http.member import Member, base64, batch_of, joined, key_set_of, problem
from tests.squirrel_server.http.running import Running, running
from tests.squirrel_server.store.builder import sha256

NEEDED = {
    ("GET", "/v1/account"): "read",
    ("PUT", "/v1/account/key-set"): "admin",
    ("DELETE", "/v1/account"): "admin",
    ("GET", "/v1/log"): "read",
    ("POST", "/v1/log"): "write",
    ("GET", "/v1/objects/" + "0" * 64): "read",
    ("GET", "/v1/keys"): "admin",
    ("POST", "/v1/keys"): "admin",
    ("DELETE", "/v1/keys/abcdefghijkl"): "admin",
}
SCOPES = ["read", "write", "admin"]
OPEN = {("GET", "/v1/health"), ("POST", "/v1/accounts")}
BODIES = {"PUT", "POST"}


def _templates(server: Running) -> set[tuple[str, str]]:
    paths = server.app.openapi()["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def test_no_route_is_left_out_here(server: Running) -> None:
    named = {path.replace("0" * 64, "{sha256}").replace("abcdefghijkl", "{id}") for _, path in NEEDED}
    assert {path for _, path in _templates(server)} == named | {path for _, path in OPEN}
    assert len(_templates(server)) == len(NEEDED) + len(OPEN)


@pytest.mark.parametrize(("route", "scope"), list(product(NEEDED, SCOPES)))
def test_a_key_of_a_smaller_scope_is_refused(member: Member, route: tuple[str, str], scope: str) -> None:
    method, path = route
    answer = member.with_key(scope).call(method, path, {} if method in BODIES else None)
    if SCOPES.index(scope) < SCOPES.index(NEEDED[route]):
        problem(answer, 403, "scope_denied")
        assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1
    else:
        assert answer.status_code not in (401, 403)


WRONG = {
    "absent": None,
    "empty": "",
    "no scheme": "sqn_",
    "another scheme": "Basic c3FuOng=",
    "nothing behind the scheme": "Bearer",
    "not a key": "Bearer hunter2",
    "unknown": f"Bearer {make_key(os.urandom).text}",
    "beyond ASCII": "Bearer sqn_\xe9",
    "very long": "Bearer " + "x" * 20_000,
}


@pytest.mark.parametrize("route", NEEDED)
def test_every_wrong_key_gets_the_same_answer(server: Running, member: Member, route: tuple[str, str]) -> None:
    method, path = route
    key = member.key
    wrong = {name: value and value.encode("latin-1") for name, value in WRONG.items()} | {
        "a digit changed": f"Bearer {key[:20]}{'A' if key[20] != 'A' else 'B'}{key[21:]}".encode(),
        "another's secret": f"Bearer {key[:17]}{make_key(os.urandom).text[17:]}".encode(),
        "revoked": f"Bearer {_revoked(member)}".encode(),
        "a newline inside": f"Bearer {key[:30]}\t{key[30:]}".encode(),
    }
    answers = set()
    with server.client() as web:
        for value in wrong.values():
            headers = {} if value is None else {"Authorization": value}
            body = {"content": b"not JSON either"} if method in BODIES else {}
            answer = web.request(method, path, headers={"Content-Type": "application/json", **headers}, **body)  # type: ignore[arg-type]
            problem(answer, 401, "unauthenticated")
            answers.add((answer.content, tuple(item for item in answer.headers.multi_items() if item[0] != "date")))
    assert len(answers) == 1
    assert "bearer" in dict(answers.pop()[1])["www-authenticate"].lower()


def _revoked(member: Member) -> str:
    other = member.with_key("admin")
    assert member.call("DELETE", f"/v1/keys/{other.key.split('_')[1]}").status_code == 204
    return other.key


def test_two_keys_in_one_request_are_none(server: Running, member: Member) -> None:
    with server.client() as web:
        headers = [("Authorization", f"Bearer {member.key}")] * 2
        problem(web.get("/v1/account", headers=headers), 401, "unauthenticated")


def test_the_name_of_the_scheme_has_no_case(member: Member) -> None:
    assert member.call("GET", "/v1/account", authorization=f"bearer {member.key}").is_success


@pytest.mark.parametrize("append", [None, "", "AAAA", base64(bytes(32)), base64(bytes(31)), "=" * 44])
def test_without_the_append_key_nothing_is_written(member: Member, append: str | None) -> None:
    client = member.client
    put = batch_of([client.copy().put()])
    writes = [
        ("POST", "/v1/log", put),
        ("PUT", "/v1/account/key-set", key_set_of(client.rewrap())),
        ("POST", "/v1/keys", {"scope": "admin"}),
        ("DELETE", f"/v1/keys/{member.key.split('_')[1]}", None),
        ("DELETE", "/v1/account", None),
    ]
    for method, path, body in writes:
        problem(member.call(method, path, body, squirrel_append=append), 403, "append_denied")
    assert len(member.call("GET", "/v1/keys").json()["keys"]) == 1
    assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1
    assert member.call("POST", "/v1/log", put).is_success


def test_after_a_rotate_the_old_append_key_is_denied_and_the_api_key_stays(member: Member) -> None:
    renewed, request = member.client.rotate()
    assert member.call("PUT", "/v1/account/key-set", key_set_of(request)).is_success
    problem(member.call("POST", "/v1/keys", {"scope": "read"}), 403, "append_denied")
    member.client = renewed
    assert member.append(renewed.put()).is_success


def test_what_is_anothers_is_answered_like_what_is_not_there(
    server: Running, web: httpx.Client, member: Member
) -> None:
    other = joined(server, web)
    entry, body = other.client.put()
    assert other.append((entry, body)).is_success
    theirs, none = sha256(body or b"").hex(), sha256(os.urandom(9)).hex()
    answers = {(found := member.call("GET", f"/v1/objects/{name}")).content for name in (theirs, none)}
    problem(found, 404, "unknown_object")
    assert len(answers) == 1
    key_id = other.key.split("_")[1]
    answers = {
        (found := member.call("DELETE", f"/v1/keys/{name}")).content for name in (key_id, "0" * 12, "x", "0" * 99)
    }
    problem(found, 404, "unknown_key")
    assert len(answers) == 1
    assert other.call("GET", "/v1/account").is_success


def test_a_key_revoked_in_use_is_refused_at_its_next_request(server: Running, member: Member) -> None:
    other = member.with_key("write")
    with server.client() as web:
        used = Member(web, member.client, other.key)
        assert used.append(member.client.put()).is_success
        assert member.call("DELETE", f"/v1/keys/{other.key.split('_')[1]}").status_code == 204
        problem(used.append(member.client.copy().put()), 401, "unauthenticated")
        problem(used.call("GET", "/v1/account"), 401, "unauthenticated")


def test_a_key_is_refused_from_the_second_it_expires(file_url: str) -> None:
    now = [1_800_000_000.0]
    with running(file_url, clock=lambda: now[0]) as server, server.client() as web:
        member = joined(server, web)
        short = member.with_key("read", expiresAt=1_800_000_060)
        now[0] += 59
        assert short.call("GET", "/v1/account").is_success
        now[0] += 1
        problem(short.call("GET", "/v1/account"), 401, "unauthenticated")
        problem(member.call("POST", "/v1/keys", {"scope": "read", "expiresAt": int(now[0])}), 422, "malformed")


def test_the_last_use_of_a_key_is_noted_by_its_day(file_url: str) -> None:
    now = [1_800_000_000.0]
    with running(file_url, clock=lambda: now[0]) as server, server.client() as web:
        member = joined(server, web)
        other = member.with_key("read")
        assert [key["lastUsed"] for key in _keys(member)].count(None) == 1
        now[0] += 86_400
        assert other.call("GET", "/v1/account").is_success
        shown = {key["id"]: key for key in _keys(member)}[other.key.split("_")[1]]
        assert shown == {
            "id": other.key.split("_")[1],
            "scope": "read",
            "created": "2027-01-15",
            "lastUsed": "2027-01-16",
            "expiresAt": None,
        }
        now[0] -= 10 * 86_400  # a clock that was set back does not set the day back
        assert other.call("GET", "/v1/account").is_success
        assert "2027-01-16" in {key["lastUsed"] for key in _keys(member)}


def test_an_account_has_a_hundred_keys_at_most(member: Member) -> None:
    for _ in range(99):
        assert member.call("POST", "/v1/keys", {"scope": "read"}).status_code == 201
    problem(member.call("POST", "/v1/keys", {"scope": "read"}), 409, "too_many_keys")


def _keys(member: Member) -> list[dict[str, object]]:
    found: list[dict[str, object]] = member.call("GET", "/v1/keys").json()["keys"]
    return found
