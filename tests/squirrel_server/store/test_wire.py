"""Whatever bytes come in, the parsers take them apart or say `malformed`; nothing else is ever raised."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_server.store.checks import read_batch
from squirrel_server.store.errors import Malformed, TooLarge
from squirrel_server.store.key_set_checks import read_key_change
from squirrel_server.store.wire import ObjectType, parse_entry, parse_object, parse_wrap
from tests.squirrel_server.store.builder import PUT, Client, make_entry, make_object, make_wrap

Parser = Callable[[object], object]

PARSERS: dict[str, Parser] = {
    "entry": parse_entry,
    "wrap": parse_wrap,
    "memory object": lambda raw: parse_object(raw, ObjectType.MEMORY),
    "previous keys": lambda raw: parse_object(raw, ObjectType.PREVIOUS_KEYS),
}
LENGTHS = st.sampled_from([0, 1, 137, 138, 139, 163, 164, 165, 347, 348, 349])
ANY_BYTES = st.binary(max_size=400) | LENGTHS.flatmap(lambda n: st.binary(min_size=n, max_size=n))
NO_BYTES = st.none() | st.integers() | st.text() | st.binary().map(bytearray) | st.lists(st.integers())
VALID = {
    "entry": make_entry(PUT, 1, 1, bytes(32)),
    "wrap": make_wrap(bytes(16), bytes(16)),
    "memory object": make_object(),
    "previous keys": make_object(kind=2),
}


@pytest.mark.parametrize("name", PARSERS)
@given(raw=ANY_BYTES | NO_BYTES)
def test_random_input_is_malformed_and_nothing_else(name: str, raw: object) -> None:
    with suppress(Malformed):
        PARSERS[name](raw)


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_a_valid_value_with_bytes_changed_parses_or_is_malformed(name: str, data: st.DataObject) -> None:
    raw = bytearray(VALID[name])
    for index in data.draw(st.lists(st.integers(0, min(len(raw), 76) - 1), min_size=1, max_size=4)):
        raw[index] = data.draw(st.integers(0, 255))
    with suppress(Malformed):
        PARSERS[name](bytes(raw))


@pytest.mark.parametrize("name", ["entry", "wrap"])
@given(cut=st.integers(1, 137), more=st.binary(min_size=1, max_size=8))
def test_a_value_cut_short_or_continued_is_malformed(name: str, cut: int, more: bytes) -> None:
    for raw in (VALID[name][:-cut], VALID[name] + more):
        with pytest.raises(Malformed):
            PARSERS[name](raw)


@given(raw=ANY_BYTES, body=st.none() | ANY_BYTES)
def test_a_batch_of_random_bytes_is_malformed_and_nothing_else(raw: bytes, body: bytes | None) -> None:
    for batch in ([(raw, body)], [Client().put(), (raw, body)]):
        with suppress(Malformed):
            read_batch(batch)


@given(raw=ANY_BYTES, wrap=ANY_BYTES, previous=st.none() | ANY_BYTES, verifier=st.none() | ANY_BYTES)
def test_a_key_change_of_random_bytes_is_malformed_and_nothing_else(
    raw: bytes, wrap: bytes, previous: bytes | None, verifier: bytes | None
) -> None:
    for entry in (raw, Client().first().entry):
        with suppress(Malformed):
            read_key_change([wrap], previous, entry, verifier)


@given(
    op=st.sampled_from([1, 2, 3, 4]),
    seq=st.integers(1, 2**64 - 1),
    revision=st.integers(1, 2**64 - 1),
    prev_mac=st.binary(min_size=32, max_size=32),
    memory_id=st.binary(min_size=16, max_size=16),
    digest=st.binary(min_size=32, max_size=32),
)
def test_an_entry_is_read_as_it_was_written(
    op: int, seq: int, revision: int, prev_mac: bytes, memory_id: bytes, digest: bytes
) -> None:
    memory_id = memory_id if op < 3 else bytes(16)
    digest = digest if op != 2 else bytes(32)
    raw = make_entry(op, seq, revision, prev_mac, memory_id=memory_id, digest=digest)
    entry = parse_entry(raw)
    assert entry[:6] == (op, seq, memory_id, revision, digest, prev_mac)
    assert entry.mac == raw[106:] and entry.raw == raw


@pytest.mark.parametrize(
    ("slot", "kdf"), [(slot, kdf) for slot in range(4) for kdf in range(5)], ids=lambda value: str(value)
)
def test_a_slot_takes_only_its_own_key_derivations(slot: int, kdf: int) -> None:
    raw = bytearray(make_wrap(bytes(16), bytes(16), slot=1, kdf={1: 1, 2: 2}.get(kdf, 3)))
    raw[5:7] = slot, kdf
    if (slot, kdf) in {(1, 1), (1, 2), (2, 3)}:
        assert parse_wrap(bytes(raw)).slot == slot
    else:
        with pytest.raises(Malformed):
            parse_wrap(bytes(raw))


@pytest.mark.parametrize(
    ("kdf", "offset"), [(1, 12), (1, 16), (3, 8), (3, 12), (3, 16), (1, 7), (2, 7), (1, 0), (1, 4)]
)
def test_a_field_that_must_be_zero_or_fixed_and_is_not_is_malformed(kdf: int, offset: int) -> None:
    raw = bytearray(make_wrap(bytes(16), bytes(16), slot=2 if kdf == 3 else 1, kdf=kdf))
    parse_wrap(bytes(raw))
    raw[offset] ^= 0x80
    with pytest.raises(Malformed):
        parse_wrap(bytes(raw))


def test_an_objects_kid_is_read_from_its_header() -> None:
    kid = os.urandom(16)
    assert parse_object(make_object(kid=kid, kind=2), ObjectType.PREVIOUS_KEYS) == kid


def test_only_the_length_makes_an_object_too_large() -> None:
    parse_object(make_object(65_536), ObjectType.MEMORY)
    with pytest.raises(TooLarge):
        parse_object(make_object(65_537), ObjectType.MEMORY)
