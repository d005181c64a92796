"""The stores' contract suite over HTTP, on SQLite and on PostgreSQL.

Left out are tests whose arguments no request can carry or whose caps are others here, each with one of its own below,
and those that start processes with a store in them (see test_processes.py).
"""

from __future__ import annotations

import pytest

from squirrel_server.store import Store
from tests.squirrel_server.http.http_store import HttpStore
from tests.squirrel_server.http.member import Member
from tests.squirrel_server.http.running import Running
from tests.squirrel_server.store import (
    test_contract_append,
    test_contract_key_sets,
    test_contract_races,
    test_contract_reading,
    test_contract_registration,
)
from tests.squirrel_server.store.builder import make_object
from tests.squirrel_server.store.contract import opened, refused, refused_append

OTHERWISE = {
    "test_a_batch_is_taken_up_to_its_cap_and_not_beyond",
    "test_a_limit_out_of_range_is_cut_to_it",
    "test_a_page_at_or_behind_the_head_is_empty",
    "test_a_page_ends_before_its_cap_and_the_next_one_goes_on",
    "test_twenty_races_of_four_processes_have_one_winner_each",
    "test_two_processes_that_append_fifty_times_each_lose_nothing",
}

for module in (
    test_contract_append,
    test_contract_key_sets,
    test_contract_races,
    test_contract_reading,
    test_contract_registration,
):
    globals().update(
        {name: value for name, value in vars(module).items() if name.startswith("test_") and name not in OTHERWISE}
    )


def test_what_is_left_out_is_there() -> None:
    modules = (test_contract_append, test_contract_races, test_contract_reading)
    assert {name for module in modules for name in vars(module)} >= OTHERWISE


def test_a_batch_is_taken_up_to_the_cap_of_a_body(store: Store) -> None:
    client = opened(store)
    fits = client.copy()
    pairs = [fits.put(body=make_object(65_536)) for _ in range(23)]
    assert store.append(client.account_id, client.append_key, pairs) == fits.head
    over = fits.copy()
    refused_append(store, fits, "too_large", *[over.put(body=make_object(65_536)) for _ in range(24)])


def test_a_page_ends_before_the_cap_of_a_body_and_the_next_one_goes_on(server: Running, member: Member) -> None:
    sizes = [65_536] * 40 + [348] * 10
    for start in range(0, 50, 20):
        assert member.append(
            *[member.client.put(body=make_object(size)) for size in sizes[start : start + 20]]
        ).is_success
    seen, pages = 0, 0
    while True:
        page = member.call("GET", f"/v1/log?after={seen}")
        assert len(page.content) < 2 * 1024 * 1024
        seen += len(page.json()["entries"])
        pages += 1
        if not page.json()["more"]:
            break
    assert (seen, pages) == (51, 2)


@pytest.mark.parametrize("limit", [0, 10**9, 2**53 - 1])
def test_a_limit_out_of_range_is_cut(store: Store, limit: int) -> None:
    client = opened(store)
    store.append(client.account_id, client.append_key, [client.put()])
    assert len(store.read_log(client.account_id, 0, limit).entries) == (1 if limit < 1 else 2)


@pytest.mark.parametrize("beyond", [0, 1, 2**52])
def test_a_page_behind_the_head_is_empty(store: Store, beyond: int) -> None:
    client = opened(store)
    page = store.read_log(client.account_id, client.seq + beyond)
    assert page.entries == () and page.head == client.head and not page.more


@pytest.mark.parametrize("number", [-1, 2**53, 2**70, "1e3", "+1", "01", " 1", "", "%D9%A3"])
@pytest.mark.parametrize("name", ["after", "limit"])
def test_a_number_that_is_none_is_malformed(store: HttpStore, name: str, number: object) -> None:
    client = opened(store)
    after, limit = (number, 1) if name == "after" else (0, number)
    refused(store, client, "malformed", store.read_log, client.account_id, after, limit)
