"""Contract: pages of the log, single objects, erasure, and the end of an account."""

from __future__ import annotations

import os

import pytest

from squirrel_server.store import MAX_PAGE_BYTES, Store, StoreError
from tests.squirrel_server.store.builder import Pair, make_object, sha256
from tests.squirrel_server.store.contract import opened, refused, refused_append, state_of


def test_latest_brings_the_object_of_the_last_put_of_a_living_memory_only(store: Store) -> None:
    client = opened(store)
    kept, corrected, forgotten = (os.urandom(16) for _ in range(3))
    pairs = [
        client.put(kept),
        client.put(corrected),
        client.put(corrected, 2),
        client.put(forgotten),
        client.put(forgotten, 2),
        client.forget(forgotten, 3),
    ]
    store.append(client.account_id, client.append_key, pairs)
    bodies = [body for _, body in pairs]
    latest = [body for _, body in store.read_log(client.account_id, 1).entries]
    assert latest == [bodies[0], None, bodies[2], None, None, None]
    everything = [body for _, body in store.read_log(client.account_id, 1, objects="all").entries]
    assert everything == [bodies[0], bodies[1], bodies[2], None, None, None]


def test_pages_of_any_length_add_up_to_the_log(store: Store) -> None:
    client = opened(store)
    pairs = [client.put() for _ in range(10)]
    store.append(client.account_id, client.append_key, pairs)
    for limit in (1, 3, 10, 11, 1_000):
        entries, more = list[Pair](), True
        while more:
            page = store.read_log(client.account_id, len(entries), limit)
            assert len(page.entries) <= limit and page.head == client.head
            entries.extend(page.entries)
            more = page.more
        assert entries[1:] == pairs and len(entries) == 11


@pytest.mark.parametrize("limit", [0, -1, 10**9, 2**70])
def test_a_limit_out_of_range_is_cut_to_it(store: Store, limit: int) -> None:
    client = opened(store)
    store.append(client.account_id, client.append_key, [client.put()])
    assert len(store.read_log(client.account_id, 0, limit).entries) == (1 if limit < 1 else 2)


@pytest.mark.parametrize("beyond", [0, 1, 2**63, 2**70])
def test_a_page_at_or_behind_the_head_is_empty(store: Store, beyond: int) -> None:
    client = opened(store)
    page = store.read_log(client.account_id, client.seq + beyond)
    assert page.entries == () and page.head == client.head and not page.more


@pytest.mark.parametrize("question", [(-1, 10, "all"), (0, 10, "some"), (True, 10, "all"), (0, None, "all")])
def test_a_page_that_cannot_be_meant_is_malformed(store: Store, question: tuple[int, int, str]) -> None:
    client = opened(store)
    refused(store, client, "malformed", store.read_log, client.account_id, *question)


def test_a_page_ends_before_its_cap_and_the_next_one_goes_on(store: Store) -> None:
    client = opened(store)
    sizes = [65_536] * 40 + [348] * 10
    for start in (0, 25):
        batch = [client.put(body=make_object(size)) for size in sizes[start : start + 25]]
        store.append(client.account_id, client.append_key, batch)
    seen, pages = 0, 0
    while True:
        page = store.read_log(client.account_id, seen)
        assert page.entries
        assert sum(138 + len(body or b"") for _, body in page.entries) < MAX_PAGE_BYTES
        seen += len(page.entries)
        pages += 1
        if not page.more:
            break
    assert (seen, pages) == (51, 2)


def test_a_tombstone_erases_every_object_of_its_memory_and_no_other(store: Store) -> None:
    client = opened(store)
    gone, stays = os.urandom(16), os.urandom(16)
    pairs = [client.put(gone), client.put(stays), client.put(gone, 2), client.put(stays, 2)]
    store.append(client.account_id, client.append_key, pairs)
    hashes = [sha256(body or b"") for _, body in pairs]
    for digest, (_, body) in zip(hashes, pairs, strict=True):
        assert store.object(client.account_id, digest) == body  # superseded ones included
    store.append(client.account_id, client.append_key, [client.forget(gone, 3)])
    for digest in (hashes[0], hashes[2]):
        refused(store, client, "unknown_object", store.object, client.account_id, digest)
    for index in (1, 3):
        assert store.object(client.account_id, hashes[index]) == pairs[index][1]
    assert len(state_of(store, client).log) == 6  # the entries stay


def test_a_memory_put_and_forgotten_in_one_batch_leaves_no_object(store: Store) -> None:
    client = opened(store)
    memory_id = os.urandom(16)
    pairs = [client.put(memory_id), client.put(memory_id, 2), client.forget(memory_id, 3)]
    store.append(client.account_id, client.append_key, pairs)
    assert [body for _, body in state_of(store, client).log] == [None] * 4
    refused_append(store, client, "malformed", client.copy().put(body=pairs[0][1]))


def test_another_accounts_object_is_as_unknown_as_none(store: Store) -> None:
    one, other = opened(store), opened(store)
    body = make_object()
    store.append(one.account_id, one.append_key, [one.put(body=body)])
    refused(store, other, "unknown_object", store.object, other.account_id, sha256(body))
    refused(store, other, "unknown_object", store.object, other.account_id, bytes(32))
    refused(store, other, "malformed", store.object, other.account_id, bytes(31))


def test_a_deleted_account_is_gone_and_its_id_free_again(store: Store) -> None:
    client, neighbour = opened(store), opened(store)
    store.append(client.account_id, client.append_key, [client.put()])
    before = state_of(store, neighbour)
    store.delete_account(client.account_id, client.append_key)
    with pytest.raises(StoreError) as caught:
        store.account(client.account_id)
    assert caught.value.code == "unknown_account"
    assert state_of(store, neighbour) == before
    again = type(client)(account_id=client.account_id)
    store.register(again.account_id, *again.first())  # type: ignore[arg-type]
    assert len(store.read_log(again.account_id, 0).entries) == 1
