"""Contract: what an append takes, and every way in which it is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from squirrel_server.store import MAX_BATCH_BYTES, MAX_ENTRIES, HeadMoved, Store
from tests.squirrel_server.store.builder import PUT, REWRAP, TOMBSTONE, Client, Pair, make_entry, make_object, sha256
from tests.squirrel_server.store.contract import opened, refused, refused_append, state_of

USUAL = make_object()


def test_puts_corrections_and_tombstones_are_taken_in_one_batch_or_many(store: Store) -> None:
    client = opened(store)
    one, other = os.urandom(16), os.urandom(16)
    pairs = [client.put(one), client.put(other), client.put(one, 2), client.forget(other, 2)]
    head = store.append(client.account_id, client.append_key, pairs)
    assert head == client.head
    more = [client.put(one, 3), client.forget(one, 4)]
    for pair in more:
        head = store.append(client.account_id, client.append_key, [pair])
    assert head == client.head == store.account(client.account_id).head
    assert [entry for entry, _ in state_of(store, client).log[1:]] == [entry for entry, _ in pairs + more]


@pytest.mark.parametrize("size", [348, 349, 4_096, 65_536])
def test_an_object_of_any_allowed_size_comes_back_as_it_was(store: Store, size: int) -> None:
    client = opened(store)
    body = make_object(size)
    store.append(client.account_id, client.append_key, [client.put(body=body)])
    assert store.object(client.account_id, sha256(body)) == body


def test_the_same_append_again_is_told_where_the_log_is(store: Store) -> None:
    client = opened(store)
    pair = client.put()
    store.append(client.account_id, client.append_key, [pair])
    error = refused_append(store, client, "head_moved", pair)
    assert isinstance(error, HeadMoved) and error.head == client.head


@pytest.mark.parametrize("key", [b"", bytes(32), None], ids=["empty", "wrong", "absent"])
def test_without_the_append_key_nothing_is_written(store: Store, key: bytes) -> None:
    client = opened(store)
    pair, request = client.copy().put(), client.rewrap()
    refused(store, client, "append_denied", store.append, client.account_id, key, [pair])
    refused(store, client, "append_denied", store.replace_key_set, client.account_id, key, *request)
    refused(store, client, "append_denied", store.delete_account, client.account_id, key)


def test_checks_are_made_in_the_order_shape_key_head_rest(store: Store) -> None:
    client = opened(store)
    stranger = replace(client, append_key=os.urandom(32))
    stale = replace(client, mac=os.urandom(32))
    unfit = make_object()  # not the object the entry has the hash of
    entry, _ = client.copy().put()
    late, _ = stale.copy().put()
    refused_append(store, stranger, "malformed", (entry[:-1], unfit))
    refused_append(store, stranger, "append_denied", (late, unfit))
    refused_append(store, client, "head_moved", (late, unfit))
    refused_append(store, client, "malformed", (entry, unfit))


def _entry(client: Client, *, body: bytes | None = USUAL, **changes: Any) -> Pair:
    """The client's next put, but for these fields."""
    fields: dict[str, Any] = {"op": PUT, "seq": client.seq + 1, "revision": 1, "prev_mac": client.mac}
    fields |= {"memory_id": os.urandom(16), "digest": sha256(body) if body else bytes(32)}
    return make_entry(**{**fields, **changes}), body


MALFORMED_ENTRIES: dict[str, dict[str, Any]] = {
    "version 2": {"version": 2},
    "op 0": {"op": 0},
    "op 5": {"op": 5},
    "op 3, a rewrap": {"op": REWRAP, "memory_id": bytes(16), "body": None},
    "op 4, a rotate": {"op": 4, "memory_id": bytes(16), "body": None},
    "op 3 with an object": {"op": REWRAP, "memory_id": bytes(16)},
    "a gap in seq": {"seq": 3},
    "seq repeated": {"seq": 1},
    "seq of 64 bits": {"seq": 2**64 - 1},
    "revision 0": {"revision": 0},
    "revision 2 of a new memory": {"revision": 2},
    "revision of 64 bits": {"revision": 2**64 - 1},
    "a put without an object": {"body": None},
    "a tombstone with an object": {"op": TOMBSTONE, "digest": bytes(32)},
    "a tombstone with a hash": {"op": TOMBSTONE, "digest": bytes(31) + b"\1", "body": None},
    "the hash of another object": {"digest": os.urandom(32)},
    "an object too short": {"body": make_object(347)},
    "an empty object": {"body": b"", "digest": sha256(b"")},
    "an object of version 2": {"body": make_object(version=2)},
    "an object of type 2": {"body": make_object(kind=2)},
    "an object with reserved bytes set": {"body": make_object(reserved=1)},
}


@pytest.mark.parametrize("what", MALFORMED_ENTRIES)
def test_a_malformed_entry_is_refused_alone_and_at_the_end_of_a_batch(store: Store, what: str) -> None:
    client = opened(store)
    refused_append(store, client, "malformed", _entry(client, **MALFORMED_ENTRIES[what]))
    ahead = client.copy()
    good = [ahead.put(), ahead.put()]
    shifted = dict(MALFORMED_ENTRIES[what])
    if shifted.get("seq", 2**64) < 2**32:
        shifted["seq"] += 2
    refused_append(store, client, "malformed", *good, _entry(ahead, **shifted))


def test_a_batch_whose_entries_do_not_follow_each_other_is_refused(store: Store) -> None:
    client = opened(store)
    first, second = client.copy(), client.copy()
    pair = first.put()
    second.advance(make_entry(PUT, 2, 1, client.mac))
    refused_append(store, client, "malformed", pair, second.put())
    refused_append(store, client, "malformed")


def test_a_revision_that_is_not_the_next_is_refused(store: Store) -> None:
    client = opened(store)
    memory_id = os.urandom(16)
    store.append(client.account_id, client.append_key, [client.put(memory_id)])
    for revision in (1, 3):
        refused_append(store, client, "malformed", client.copy().put(memory_id, revision))
        refused_append(store, client, "malformed", client.copy().forget(memory_id, revision))


def test_an_object_the_account_had_before_is_refused(store: Store) -> None:
    client = opened(store)
    memory_id, body = os.urandom(16), make_object()
    store.append(client.account_id, client.append_key, [client.put(memory_id, body=body)])
    refused_append(store, client, "malformed", client.copy().put(body=body))
    ahead = client.copy()
    twice = make_object()
    refused_append(store, client, "malformed", ahead.put(body=twice), ahead.put(body=twice))
    store.append(client.account_id, client.append_key, [client.forget(memory_id, 2)])
    refused_append(store, client, "malformed", client.copy().put(body=body))  # erased, and still known


def test_nothing_follows_a_tombstone(store: Store) -> None:
    client = opened(store)
    memory_id = os.urandom(16)
    store.append(client.account_id, client.append_key, [client.put(memory_id), client.forget(memory_id, 2)])
    for revision in (1, 2, 3):
        refused_append(store, client, "forgotten", client.copy().put(memory_id, revision))
    refused_append(store, client, "forgotten", client.copy().forget(memory_id, 3))
    ahead, other = client.copy(), os.urandom(16)
    refused_append(store, client, "forgotten", ahead.put(other), ahead.forget(other, 2), ahead.put(other, 3))


@pytest.mark.parametrize("revision", [1, 2])
def test_a_tombstone_of_an_unknown_memory_is_refused(store: Store, revision: int) -> None:
    client = opened(store)
    refused_append(store, client, "unknown_memory", client.copy().forget(os.urandom(16), revision))
    ahead = client.copy()
    refused_append(store, client, "unknown_memory", ahead.put(), ahead.forget(os.urandom(16), revision))


def test_an_object_over_its_cap_is_too_large(store: Store) -> None:
    client = opened(store)
    refused_append(store, client, "too_large", client.copy().put(body=make_object(65_537)))


def test_a_batch_is_taken_up_to_its_cap_and_not_beyond(store: Store) -> None:
    client = opened(store)
    size = 65_536
    count = MAX_BATCH_BYTES // (138 + size)
    last = MAX_BATCH_BYTES - count * (138 + size) - 138
    fits = client.copy()
    pairs = [fits.put(body=make_object(size)) for _ in range(count)]
    over = fits.copy().put(body=make_object(last + 1))
    refused_append(store, client, "too_large", *pairs, over)
    assert store.append(client.account_id, client.append_key, [*pairs, fits.put(body=make_object(last))]) == fits.head


def test_a_batch_has_a_number_of_entries_at_most(store: Store) -> None:
    client = opened(store)
    pair = client.copy().forget(os.urandom(16), 2)
    refused_append(store, client, "too_large", *[pair] * (MAX_ENTRIES + 1))
