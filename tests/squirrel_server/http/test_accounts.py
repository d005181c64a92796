"""Opening an account with an invite, changing its keys, ending it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.squirrel_server.http.member import Member, joined, key_set_of, opening_of, problem
from tests.squirrel_server.http.running import Running, running
from tests.squirrel_server.store.builder import Client


def opened(web: httpx.Client, body: dict[str, Any]) -> str:
    answer = web.post("/v1/accounts", json=body)
    assert answer.status_code == 201, answer.text
    assert list(answer.json()) == ["apiKey"]
    return str(answer.json()["apiKey"])


def works(web: httpx.Client, key: str) -> bool:
    return web.get("/v1/account", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_an_account_shows_its_key_set_head_and_limits(member: Member) -> None:
    client = member.client
    shown = member.call("GET", "/v1/account").json()
    assert shown["accountId"] == client.account_id.hex()
    assert shown["head"] == {"seq": 1, "mac": client.mac.hex()}
    assert shown["limits"] == {"maxBodyBytes": 2_097_152, "maxEntries": 10_000, "maxObjectBytes": 65_536}
    assert shown["previousKeys"] is None and len(shown["wraps"]) == 1


def test_the_same_request_again_brings_a_new_key_and_revokes_the_first(server: Running, web: httpx.Client) -> None:
    client = Client()
    body = opening_of(client, client.first(), server.invite())
    first, second = opened(web, body), opened(web, body)
    assert not works(web, first) and works(web, second)


def test_of_the_keys_only_the_first_is_revoked_by_a_repetition(server: Running, web: httpx.Client) -> None:
    client = Client()
    request = client.first()
    body = opening_of(client, request, server.invite())
    member = Member(web, client, opened(web, body))
    other = member.with_key("read")
    again = opened(web, body)
    assert not works(web, member.key) and works(web, other.key) and works(web, again)


def test_once_the_log_goes_on_an_invite_is_used_up(server: Running, web: httpx.Client) -> None:
    client = Client()
    request = client.first()
    body = opening_of(client, request, server.invite())
    member = Member(web, client, opened(web, body))
    client.took(request)
    assert member.append(client.put()).is_success
    problem(web.post("/v1/accounts", json=body), 403, "invite_refused")
    assert works(web, member.key)


def test_an_invite_opens_one_account_only(server: Running, web: httpx.Client) -> None:
    invite = server.invite()
    one, other = Client(), Client()
    key = opened(web, opening_of(one, one.first(), invite))
    problem(web.post("/v1/accounts", json=opening_of(other, other.first(), invite)), 403, "invite_refused")
    again = opening_of(one, one.first(), invite)  # the same account, other bytes
    problem(web.post("/v1/accounts", json=again), 403, "invite_refused")
    assert works(web, key)


@pytest.mark.parametrize("change", [{"appendVerifier": "00" * 32}, {"upload": {"seq": 9, "mac": "00" * 32}}])
def test_a_repetition_with_anything_changed_is_refused(
    server: Running, web: httpx.Client, change: dict[str, Any]
) -> None:
    client = Client()
    body = opening_of(client, client.first(), server.invite())
    key = opened(web, body)
    problem(web.post("/v1/accounts", json={**body, **change}), 403, "invite_refused")
    assert works(web, key)


@pytest.mark.parametrize("invite", ["", "x", "sqi_" + "0" * 43 + "_000000", "sqn_" + "0" * 12, "é"])
def test_no_invite_is_no_account(web: httpx.Client, invite: str) -> None:
    client = Client()
    problem(web.post("/v1/accounts", json=opening_of(client, client.first(), invite)), 403, "invite_refused")


def test_an_expired_invite_is_refused_like_an_unknown_one(file_url: str) -> None:
    now = [1_800_000_000.0]
    with running(file_url, clock=lambda: now[0]) as server, server.client() as web:
        invite = server.invite(60)
        client = Client()
        now[0] += 60
        answer = web.post("/v1/accounts", json=opening_of(client, client.first(), invite))
        unknown = web.post("/v1/accounts", json=opening_of(client, client.first(), "x"))
        problem(answer, 403, "invite_refused")
        assert answer.content == unknown.content


def test_an_account_that_is_there_is_not_opened_again(server: Running, member: Member, web: httpx.Client) -> None:
    invite, again = server.invite(), Client(account_id=member.client.account_id)
    problem(web.post("/v1/accounts", json=opening_of(again, again.first(), invite)), 409, "account_exists")
    other = Client()
    opened(web, opening_of(other, other.first(), invite))  # and the invite is still good


def test_a_malformed_request_does_not_use_up_the_invite(server: Running, web: httpx.Client) -> None:
    client = Client()
    body = opening_of(client, client.first(), server.invite())
    problem(web.post("/v1/accounts", json={**body, "wraps": []}), 422, "malformed")
    problem(web.post("/v1/accounts", json={**body, "previousKeys": body["entry"]}), 422, "malformed")
    opened(web, body)


def test_of_ten_at_once_with_one_invite_one_gets_in(server: Running, web: httpx.Client) -> None:
    invite, together = server.invite(), threading.Barrier(10)

    def attempt(_: int) -> int:
        client = Client()
        body = opening_of(client, client.first(), invite)
        together.wait()
        return web.post("/v1/accounts", json=body).status_code

    with ThreadPoolExecutor(10) as pool:
        assert sorted(pool.map(attempt, range(10))) == [201] + [403] * 9


def test_a_deleted_account_is_gone_with_its_keys_and_its_invite(server: Running, web: httpx.Client) -> None:
    client = Client()
    request = client.first()
    body = opening_of(client, request, server.invite())
    member = Member(web, client, opened(web, body))
    other = member.with_key("read")
    answer = member.call("DELETE", "/v1/account")
    assert (answer.status_code, answer.content) == (204, b"")
    for each in (member, other):
        problem(each.call("GET", "/v1/account"), 401, "unauthenticated")
    problem(web.post("/v1/accounts", json=body), 403, "invite_refused")


def test_a_change_of_keys_that_lost_the_race_is_told_the_head(member: Member) -> None:
    client = member.client
    late = key_set_of(client.rewrap())
    assert member.append(client.put()).is_success
    found = problem(member.call("PUT", "/v1/account/key-set", late), 412, "head_moved")
    assert found["head"] == {"seq": client.seq, "mac": client.mac.hex()}


def test_health_needs_no_key_and_says_what_runs_here(server: Running, web: httpx.Client) -> None:
    found = web.get("/v1/health").json()
    assert set(found) == {"status", "version", "protocol"}
    assert (found["status"], found["protocol"]) == ("ok", 1)


def test_two_accounts_on_one_server_do_not_meet(server: Running, web: httpx.Client, member: Member) -> None:
    other = joined(server, web)
    assert other.append(other.client.put()).is_success
    assert member.call("GET", "/v1/account").json()["head"]["seq"] == 1
