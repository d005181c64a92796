"""Contract: a key set is replaced by exactly one rewrap or rotate, as a whole."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from squirrel_server.store import Store
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
from tests.squirrel_server.store.contract import opened, refused, refused_append, state_of


def _replace(store: Store, client: Client, request: KeySetRequest) -> None:
    store.replace_key_set(client.account_id, client.append_key, *request)
    client.took(request)


def _rotate(store: Store, client: Client) -> Client:
    renewed, request = client.rotate()
    store.replace_key_set(client.account_id, client.append_key, *request)
    return renewed


def _holds(store: Store, client: Client) -> bool:
    record = store.account(client.account_id)
    found = (record.head, record.wraps, record.previous_keys)
    return found == (client.head, client.wraps, client.previous_keys)


def test_a_rewrap_replaces_the_slots_and_keeps_the_append_key(store: Store) -> None:
    client = opened(store, recovery=True)
    _replace(store, client, client.rewrap())
    assert _holds(store, client) and len(client.wraps) == 2
    store.append(client.account_id, client.append_key, [client.put()])
    _replace(store, client, client.rewrap(keep_recovery=False))
    assert _holds(store, client) and len(client.wraps) == 1
    assert store.account(client.account_id).head == client.head


def test_a_rotate_replaces_the_append_key_and_the_old_one_is_denied(store: Store) -> None:
    old = opened(store)
    store.append(old.account_id, old.append_key, [old.put()])
    new = _rotate(store, old)
    assert _holds(store, new)
    refused_append(store, replace(new, append_key=old.append_key), "append_denied", new.copy().put())
    store.append(new.account_id, new.append_key, [new.put()])


def test_three_rotations_and_a_rewrap_between_them_go_through(store: Store) -> None:
    client = _rotate(store, opened(store, recovery=True))
    _replace(store, client, client.rewrap())
    client = _rotate(store, _rotate(store, client))
    assert _holds(store, client)
    assert client.generation == 5 and len(state_of(store, client).log) == 5


def test_of_two_changes_of_the_key_set_the_second_is_told_that_the_head_moved(store: Store) -> None:
    client = opened(store)
    loser = client.rewrap()
    _replace(store, client, client.rewrap())
    error = refused(store, client, "head_moved", store.replace_key_set, client.account_id, client.append_key, *loser)
    assert error.head == client.head  # type: ignore[attr-defined]


def _entry_of(client: Client, request: KeySetRequest, **changes: object) -> KeySetRequest:
    fields: dict[str, object] = {
        "op": REWRAP,
        "seq": client.seq + 1,
        "revision": client.generation + 1,
        "prev_mac": client.mac,
        "digest": sha256(b"".join(request.wraps) + (request.previous_keys or b"")),
    }
    return request._replace(entry=make_entry(**{**fields, **changes}))  # type: ignore[arg-type]


def _slots(client: Client, *wraps: bytes, previous: bool = True) -> KeySetRequest:
    old = make_object(kid=client.kid, kind=2) if previous else None
    return client.key_set(REWRAP, list(wraps), old, None)


def _new(client: Client, generation: int = 1, slot: int = 1) -> bytes:
    return make_wrap(client.account_id, client.kid, client.generation + generation, slot=slot)


BAD_REWRAPS = {
    "a put": lambda c: _entry_of(c, c.rewrap(), op=1),
    "a tombstone": lambda c: _entry_of(c, c.rewrap(), op=2, digest=bytes(32)),
    "a rotate by its op only": lambda c: _entry_of(c, c.rewrap(), op=ROTATE),
    "a gap in seq": lambda c: _entry_of(c, c.rewrap(), seq=c.seq + 2),
    "the same generation": lambda c: _entry_of(c, c.rewrap(), revision=c.generation),
    "a generation left out": lambda c: _entry_of(c, _slots(c, _new(c, 2)), revision=c.generation + 2),
    "a memory id": lambda c: _entry_of(c, c.rewrap(), memory_id=os.urandom(16)),
    "the hash of another key set": lambda c: _entry_of(c, c.rewrap(), digest=os.urandom(32)),
    "the hash of the slots alone": lambda c: _entry_of(
        c, (request := c.rewrap()), digest=sha256(b"".join(request.wraps))
    ),
    "a verifier": lambda c: c.rewrap()._replace(append_verifier=bytes(32)),
    "nothing made anew": lambda c: _slots(c, *c.wraps),
    "a slot made later than now": lambda c: _slots(c, _new(c), _new(c, 2, slot=2)),
    "a kept slot with a bit changed": lambda c: _slots(c, _new(c), c.wraps[1][:-1] + bytes([c.wraps[1][-1] ^ 1])),
    "an older slot of its own": lambda c: _slots(c, _new(c), _new(c, 0, slot=2)),
    "the recovery slot alone": lambda c: _slots(c, _new(c, slot=2)),
    "slots reversed": lambda c: _slots(c, _new(c, slot=2), _new(c)),
    "no slots": lambda c: _slots(c),
    "another key": lambda c: replace(c, kid=os.urandom(16)).rewrap(keep_recovery=False),
    "another account": lambda c: replace(c, account_id=os.urandom(16)).rewrap(keep_recovery=False),
    "previous keys left out": lambda c: _slots(c, _new(c), previous=False),
    "previous keys not sealed anew": lambda c: c.key_set(REWRAP, [_new(c)], c.previous_keys, None),
    "previous keys of type 1": lambda c: c.key_set(REWRAP, [_new(c)], make_object(kid=c.kid), None),
    "previous keys of another key": lambda c: c.key_set(REWRAP, [_new(c)], make_object(kind=2), None),
    "previous keys too short": lambda c: c.key_set(REWRAP, [_new(c)], make_object(347, kid=c.kid, kind=2), None),
}


@pytest.mark.parametrize("what", BAD_REWRAPS)
def test_a_rewrap_that_does_not_fit_is_malformed(store: Store, what: str) -> None:
    client = opened(store)
    # One rotation and one rewrap with a recovery slot lie behind it, so that every rule has something to bite on.
    client = _rotate(store, client)
    _replace(store, client, _slots(client, _new(client), _new(client, slot=2)))
    request = BAD_REWRAPS[what](client)  # type: ignore[no-untyped-call]
    refused(store, client, "malformed", store.replace_key_set, client.account_id, client.append_key, *request)


def _rotated(client: Client, **changes: object) -> KeySetRequest:
    """A rotate of which some of kid, wraps, previous, verifier are another's."""
    kid = changes.get("kid", os.urandom(16))
    wraps = changes.get("wraps", [make_wrap(client.account_id, kid, client.generation + 1)])  # type: ignore[arg-type]
    previous = changes.get("previous", make_object(kid=kid, kind=2))  # type: ignore[arg-type]
    verifier = changes.get("verifier", os.urandom(32))
    return client.key_set(ROTATE, wraps, previous, verifier)  # type: ignore[arg-type]


BAD_ROTATES = {
    "no verifier": lambda c: _rotated(c, verifier=None),
    "the old verifier": lambda c: _rotated(c, verifier=sha256(c.append_key)),
    "a verifier of 33 bytes": lambda c: _rotated(c, verifier=bytes(33)),
    "no previous keys": lambda c: _rotated(c, previous=None),
    "the old key": lambda c: _rotated(c, kid=c.kid),
    "a slot kept": lambda c: _rotated(c, kid=c.kid, wraps=[_new(c), c.wraps[1]]),
    "a slot of an older generation": lambda c: _rotated(
        c,
        kid=(kid := os.urandom(16)),
        wraps=[make_wrap(c.account_id, kid, 2), make_wrap(c.account_id, kid, 1, slot=2)],
    ),
    "previous keys under the old key": lambda c: _rotated(c, previous=make_object(kid=c.kid, kind=2)),
}


@pytest.mark.parametrize("what", BAD_ROTATES)
def test_a_rotate_that_does_not_fit_is_malformed(store: Store, what: str) -> None:
    client = opened(store, recovery=True)
    request = BAD_ROTATES[what](client)
    refused(store, client, "malformed", store.replace_key_set, client.account_id, client.append_key, *request)


def test_previous_keys_before_the_first_rotation_are_malformed(store: Store) -> None:
    client = opened(store)
    request = _slots(client, _new(client), previous=True)
    refused(store, client, "malformed", store.replace_key_set, client.account_id, client.append_key, *request)


def test_previous_keys_over_the_cap_of_an_object_are_too_large(store: Store) -> None:
    client = opened(store)
    kid = os.urandom(16)
    request = _rotated(client, kid=kid, previous=make_object(65_537, kid=kid, kind=2))
    refused(store, client, "too_large", store.replace_key_set, client.account_id, client.append_key, *request)
