from __future__ import annotations

from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import assume, example, given
from hypothesis import strategies as st

from squirrel_mcp.crypto import envelope
from squirrel_mcp.crypto.envelope import Context
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.padding import pad, padded_size
from tests.squirrel_mcp.crypto.test_primitives import hkdf_by_hand
from tests.squirrel_mcp.crypto.vector_readers import context, flips, outcome, read_record, simple
from tests.vectors.making import records
from tests.vectors.making.files import Case, unpack

DEK = Dek(bytes(range(32)))
IDS = st.binary(min_size=16, max_size=16)
REVISIONS = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))
CONTEXTS = st.builds(Context, IDS, IDS, REVISIONS, st.sampled_from([envelope.MEMORY, envelope.PREVIOUS_KEYS]))
LARGEST = 63_484


@pytest.mark.parametrize("case", simple("record.json"), ids=lambda case: case["name"])
def test_a_record_opens_exactly_as_the_vector_says(case: Case) -> None:
    if case["expect"] != "ok":
        assert outcome(lambda: read_record(case)) == case["expect"]
        return
    payload = unpack(case["payload"])
    record = envelope.seal(Dek(unpack(case["dek"])), context(case), payload, lambda _: unpack(case["salt"]))
    assert sha256(record).hexdigest() == case.get("recordSha256") or record.hex() == case["record"]
    assert read_record(case | {"record": record.hex()}) == payload


def test_every_flipped_bit_of_a_record_is_refused() -> None:
    for bit, expect, case in flips("record.json", "record"):
        assert outcome(lambda case=case: read_record(case)) == expect, f"bit {bit}"  # type: ignore[misc]


@given(place=CONTEXTS, payload=st.binary(max_size=2_000))
@example(place=Context(bytes(16), bytes(16), 1), payload=b"a" * LARGEST)
@example(place=Context(bytes(16), bytes(16), 1), payload=b"")
def test_what_was_sealed_opens_where_it_was_sealed(place: Context, payload: bytes) -> None:
    record = envelope.seal(DEK, place, payload)
    assert envelope.open_record(DEK, place, record) == payload
    assert len(record) == 76 + padded_size(len(payload)) + 16 <= envelope.MAX_RECORD_BYTES


@given(place=CONTEXTS, other=CONTEXTS, payload=st.binary(max_size=100))
def test_a_record_that_was_moved_anywhere_does_not_open(place: Context, other: Context, payload: bytes) -> None:
    record = envelope.seal(DEK, place, payload)
    for moved in (
        other,
        place._replace(account_id=other.account_id),
        place._replace(memory_id=other.memory_id),
        place._replace(revision=other.revision),
        place._replace(type=3 - place.type),
        place._replace(account_id=place.memory_id, memory_id=place.account_id),
    ):
        if moved != place:
            assert envelope.open_record(DEK, moved, record) is None


@given(payload=st.binary(max_size=100), secret=st.binary(min_size=32, max_size=32))
def test_a_record_opens_under_its_own_key_only(payload: bytes, secret: bytes) -> None:
    assume(Dek(secret) != DEK)
    place = Context(bytes(16), bytes(16), 1)
    record = envelope.seal(DEK, place, payload)
    assert envelope.open_record(Dek(secret), place, record) is None
    renamed = record[:4] + Dek(secret).kid + record[20:]
    assert envelope.open_record(Dek(secret), place, renamed) is None
    assert envelope.open_record(DEK, place, renamed) is None


@given(place=CONTEXTS, raw=st.one_of(st.binary(max_size=500), st.binary(min_size=348, max_size=348)))
def test_random_bytes_are_no_record(place: Context, raw: bytes) -> None:
    assert envelope.open_record(DEK, place, raw) is None
    header = bytes((1, place.type, 0, 0)) + DEK.kid
    assert envelope.open_record(DEK, place, header + raw) is None


def test_a_truncated_or_lengthened_record_does_not_open() -> None:
    place = Context(bytes(16), bytes(16), 1)
    record = envelope.seal(DEK, place, b"payload")
    for size in range(len(record)):
        assert envelope.open_record(DEK, place, record[:size]) is None
    for tail in (b"\0", bytes(16), record):
        assert envelope.open_record(DEK, place, record + tail) is None


@pytest.mark.parametrize("size", [LARGEST + 1, 65_536, 2**20])
def test_a_payload_that_does_not_fit_is_not_sealed(size: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        envelope.seal(DEK, Context(bytes(16), bytes(16), 1), bytes(size))


def test_a_record_above_the_cap_does_not_open_however_well_it_was_sealed() -> None:
    for size, opens in ((LARGEST, True), (LARGEST + 1, False)):
        recipe = records.Recipe(plaintext=pad(b"a" * size))
        opened = envelope.open_record(records.DEK, recipe.place, recipe.raw())
        assert (opened is not None) == opens


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_id_of_another_length_is_refused(size: int) -> None:
    for place in (Context(bytes(size), bytes(16), 1), Context(bytes(16), bytes(size), 1)):
        with pytest.raises(ValueError, match="16 bytes"):
            envelope.seal(DEK, place, b"")


def test_the_record_is_made_as_the_document_says() -> None:
    place, salt = Context(b"a" * 16, b"m" * 16, 7), bytes(range(24))
    record = envelope.seal(DEK, place, b"payload", lambda _: salt)
    ctx = b"squirrel/v1/ctx\0" + b"a" * 16 + b"m" * 16 + (7).to_bytes(8, "big") + b"\1"
    bound = b"\1\1\0\0" + DEK.kid + salt
    info = b"squirrel/v1/record\0" + sha256(ctx + bound).digest()
    okm = hkdf_by_hand(DEK.record, salt, info, 64)
    assert record[:76] == bound + okm[32:]
    plaintext = AESGCM(okm[:32]).decrypt(bytes(12), record[76:], ctx + record[:76])
    assert plaintext == b"\0\0\0\7payload".ljust(256, b"\0")
