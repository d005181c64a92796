"""Contract: an account is opened once, with a first key set that fits its entry."""

from __future__ import annotations

import os

import pytest

from squirrel_server.store import Store, StoreError
from tests.squirrel_server.store.builder import (
    REWRAP,
    ROTATE,
    Client,
    KeySetRequest,
    make_entry,
    make_object,
    make_wrap,
    sha256,
)
from tests.squirrel_server.store.contract import opened, refused, state_of


def test_a_registered_account_is_read_back_as_it_was_sent(store: Store) -> None:
    client = Client()
    request = client.first(recovery=True)
    head = store.register(client.account_id, *request)  # type: ignore[arg-type]
    client.took(request)
    record = store.account(client.account_id)
    assert head == record.head == client.head
    assert record.account_id == client.account_id
    assert record.wraps == client.wraps and len(record.wraps) == 2
    assert record.previous_keys is None
    assert store.read_log(client.account_id, 0).entries == ((request.entry, None),)


def test_registering_again_is_refused_even_with_the_same_bytes(store: Store) -> None:
    client = Client()
    request = client.first()
    store.register(client.account_id, *request)  # type: ignore[arg-type]
    refused(store, client, "account_exists", store.register, client.account_id, *request)


def test_two_accounts_do_not_see_each_other(store: Store) -> None:
    one, other = opened(store), opened(store)
    memory_id, body = os.urandom(16), make_object()
    for client in (one, other):  # the same memory id and the same object in both
        store.append(client.account_id, client.append_key, [client.put(memory_id, body=body)])
    store.append(one.account_id, one.append_key, [one.forget(memory_id, 2)])
    assert store.object(other.account_id, sha256(body)) == body
    assert state_of(store, other).account.head == other.head


@pytest.mark.parametrize("length", [0, 15, 17])
def test_an_account_id_of_another_length_is_malformed(store: Store, length: int) -> None:
    with pytest.raises(StoreError) as caught:
        store.account(bytes(length))
    assert caught.value.code == "malformed"


def test_an_unknown_account_is_unknown_to_every_call(store: Store) -> None:
    client = Client()
    client.took(client.first())
    digest, pair = bytes(32), client.copy().put()
    for call in (
        lambda: store.account(client.account_id),
        lambda: store.read_log(client.account_id, 0),
        lambda: store.object(client.account_id, digest),
        lambda: store.append(client.account_id, client.append_key, [pair]),
        lambda: store.replace_key_set(client.account_id, client.append_key, *client.rewrap()),
        lambda: store.delete_account(client.account_id, client.append_key),
    ):
        with pytest.raises(StoreError) as caught:
            call()
        assert caught.value.code == "unknown_account"


def _with_entry(client: Client, **changes: object) -> KeySetRequest:
    request = client.first()
    fields: dict[str, object] = {"op": REWRAP, "seq": 1, "revision": 1, "prev_mac": bytes(32)}
    fields |= {"digest": sha256(b"".join(request.wraps)), **changes}
    return request._replace(entry=make_entry(**fields))  # type: ignore[arg-type]


def _with_wraps(client: Client, *wraps: bytes) -> KeySetRequest:
    return client.key_set(REWRAP, list(wraps), None, sha256(client.append_key))


def _wrap(client: Client, generation: int = 1, slot: int = 1) -> bytes:
    return make_wrap(client.account_id, client.kid, generation, slot=slot)


BAD_REGISTRATIONS = {
    "a rotate": lambda c: _with_entry(c, op=ROTATE),
    "a put": lambda c: _with_entry(c, op=1),
    "seq 2": lambda c: _with_entry(c, seq=2),
    "seq 0": lambda c: _with_entry(c, seq=0),
    "revision 2": lambda c: _with_entry(c, revision=2),
    "a previous mac": lambda c: _with_entry(c, prev_mac=bytes(31) + b"\1"),
    "the hash of other wraps": lambda c: _with_entry(c, digest=bytes(32)),
    "a memory id": lambda c: _with_entry(c, memory_id=os.urandom(16)),
    "version 2": lambda c: _with_entry(c, version=2),
    "an entry too long": lambda c: c.first()._replace(entry=c.first().entry + b"\0"),
    "previous keys": lambda c: c.key_set(REWRAP, [_wrap(c)], make_object(kid=c.kid, kind=2), bytes(32)),
    "no verifier": lambda c: c.first()._replace(append_verifier=None),
    "a verifier of 31 bytes": lambda c: c.first()._replace(append_verifier=bytes(31)),
    "no wraps": lambda c: _with_wraps(c),
    "the recovery slot alone": lambda c: _with_wraps(c, _wrap(c, slot=2)),
    "slots reversed": lambda c: _with_wraps(c, _wrap(c, slot=2), _wrap(c)),
    "slot 1 twice": lambda c: _with_wraps(c, _wrap(c), _wrap(c)),
    "three slots": lambda c: _with_wraps(c, _wrap(c), _wrap(c, slot=2), _wrap(c, slot=2)),
    "generation 2": lambda c: _with_wraps(c, _wrap(c, 2)),
    "generation 0": lambda c: _with_wraps(c, _wrap(c, 0)),
    "a slot of generation 0": lambda c: _with_wraps(c, _wrap(c), _wrap(c, 0, slot=2)),
    "another account's wrap": lambda c: _with_wraps(c, make_wrap(os.urandom(16), c.kid)),
    "two keys": lambda c: _with_wraps(c, _wrap(c), make_wrap(c.account_id, os.urandom(16), slot=2)),
    "a wrap too short": lambda c: _with_wraps(c, _wrap(c)[:-1]),
    "a wrap too long": lambda c: _with_wraps(c, _wrap(c) + b"\0"),
    "slot 1 without key derivation": lambda c: _with_wraps(c, make_wrap(c.account_id, c.kid, kdf=3)),
    "slot 2 with Argon2id": lambda c: _with_wraps(c, _wrap(c), make_wrap(c.account_id, c.kid, slot=2, kdf=2)),
}


@pytest.mark.parametrize("what", BAD_REGISTRATIONS)
def test_a_first_key_set_that_does_not_fit_is_malformed_and_opens_no_account(store: Store, what: str) -> None:
    client = Client()
    with pytest.raises(StoreError) as caught:
        store.register(client.account_id, *BAD_REGISTRATIONS[what](client))  # type: ignore[no-untyped-call]
    assert caught.value.code == "malformed"
    with pytest.raises(StoreError) as caught:
        store.account(client.account_id)
    assert caught.value.code == "unknown_account"
