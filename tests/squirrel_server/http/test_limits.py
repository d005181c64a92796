"""Rate limits: per key and per address, each with the time after which it is worth trying again."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_server.http.limits import Buckets, bucket_of
from squirrel_server.http.options import Rate
from tests.squirrel_server.http.member import Member, joined, problem
from tests.squirrel_server.http.running import UNLIMITED, running

SLOW = Rate(0.001, 5)  # nothing comes back during a test


def test_a_key_is_limited_and_others_of_the_account_are_not(file_url: str) -> None:
    with running(file_url, key_rate=Rate(0.001, 8)) as server, server.client() as web:
        member = joined(server, web)
        other = member.with_key("read")
        answers = [member.call("GET", "/v1/account") for _ in range(9)]
        assert [answer.is_success for answer in answers] == [True] * 7 + [False] * 2
        found = answers[-1]
        problem(found, 429, "rate_limited")
        assert 1 <= int(found.headers["retry-after"]) <= 1_000
        assert other.call("GET", "/v1/account").is_success


def test_an_address_is_limited_whatever_it_asks_for(file_url: str) -> None:
    with running(file_url, address_rate=SLOW) as server, server.client() as web:
        answers = [web.get("/v1/health") for _ in range(6)]
        assert [answer.is_success for answer in answers] == [True] * 5 + [False]
        problem(answers[-1], 429, "rate_limited")
        problem(web.post("/v1/accounts", json={}), 429, "rate_limited")
        problem(web.get("/v1/account", headers={"Authorization": "Bearer x"}), 429, "rate_limited")


@pytest.mark.parametrize("wrong", ["sqn_x", "key"])
def test_wrong_keys_cost_an_address_more(file_url: str, wrong: str) -> None:
    with running(file_url, address_rate=Rate(0.001, 30)) as server, server.client() as web:
        member = joined(server, web)
        key = {"sqn_x": "sqn_x", "key": f"{member.key[:-10]}"}[wrong]
        answers = [web.get("/v1/account", headers={"Authorization": f"Bearer {key}"}).status_code for _ in range(6)]
        assert answers.count(401) == 3 and answers[-1] == 429


def test_a_key_unknown_to_the_server_does_not_use_up_anothers(file_url: str) -> None:
    with running(file_url, key_rate=Rate(0.001, 4)) as server, server.client() as web:
        member = joined(server, web)
        forged = f"{member.key[:17]}{joined(server, web).key[17:]}"
        for _ in range(10):
            problem(web.get("/v1/account", headers={"Authorization": f"Bearer {forged}"}), 401, "unauthenticated")
        assert member.call("GET", "/v1/account").is_success


def test_behind_a_proxy_the_last_forwarded_address_counts(file_url: str) -> None:
    with running(file_url, address_rate=Rate(0.001, 2), behind_proxy=True) as server, server.client() as web:

        def ask(forwarded: str) -> int:
            return web.get("/v1/health", headers={"X-Forwarded-For": forwarded}).status_code

        assert [ask("192.0.2.1") for _ in range(3)] == [200, 200, 429]
        assert ask("192.0.2.9, 192.0.2.1") == 429  # what a client adds itself comes first and is not believed
        assert ask("192.0.2.2") == 200


def test_without_a_proxy_nobody_is_believed_about_an_address(file_url: str) -> None:
    with running(file_url, address_rate=Rate(0.001, 2)) as server, server.client() as web:
        answers = [web.get("/v1/health", headers={"X-Forwarded-For": f"192.0.2.{n}"}).status_code for n in range(3)]
        assert answers == [200, 200, 429]


def test_a_bucket_fills_up_with_time_and_not_beyond_its_size() -> None:
    now = [0.0]
    buckets = Buckets(Rate(2, 3), lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 1]
    now[0] = 0.5
    assert [buckets.take("a"), buckets.take("a")] == [0, 1]
    now[0] = 100.0
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 1]
    now[0] = 50.0  # a clock that goes back gives nothing
    assert buckets.take("a") == 1


def test_a_costly_request_is_paid_for_later() -> None:
    now = [0.0]
    buckets = Buckets(Rate(1, 10), lambda: now[0])
    assert buckets.take("a", 15) == 0
    assert buckets.take("a") == 6
    now[0] = 6.0
    assert buckets.take("a") == 0


def test_a_rate_of_nothing_is_no_limit() -> None:
    buckets = Buckets(UNLIMITED, lambda: 0.0)
    assert not any(buckets.take("a", 1_000) for _ in range(100))


def test_the_number_of_buckets_is_bounded() -> None:
    buckets = Buckets(Rate(1, 1), lambda: 0.0)
    for number in range(10_100):
        buckets.take(str(number))
    assert len(buckets._buckets) == 10_000


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(1, 3)), max_size=40))
def test_no_more_is_granted_than_rate_and_burst_allow(steps: list[tuple[float, float]]) -> None:
    now = [0.0]
    buckets = Buckets(Rate(2, 6), lambda: now[0])
    granted = 0.0
    for wait, cost in steps:
        now[0] += wait
        if buckets.take("a", cost) == 0:
            granted += cost
    assert granted <= 6 + 2 * now[0] + 3  # the last one granted may cost more than was left


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("", "unknown"),
        ("testclient", "unknown"),
    ],
)
def test_an_address_is_counted_under_a_name(address: str, name: str) -> None:
    assert bucket_of(address) == name


def test_a_limited_member_goes_on_after_the_time_it_was_told(file_url: str) -> None:
    with running(file_url, key_rate=Rate(20, 1)) as server, server.client() as web:
        member: Member = joined(server, web)
        statuses = set[int]()
        while statuses != {200, 429}:  # twenty a second: both come within a moment
            answer: httpx.Response = member.call("GET", "/v1/account")
            assert answer.is_success or answer.headers["retry-after"] == "1"
            statuses.add(answer.status_code)
