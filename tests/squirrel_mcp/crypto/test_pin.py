from __future__ import annotations

import base64
import re
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto import pin
from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.errors import ForeignKey, PinDamaged, UpdateRequired
from squirrel_mcp.sync.pins import PinFolder, check_ring
from tests.squirrel_mcp.crypto.log_simulator import Account
from tests.squirrel_mcp.crypto.vector_readers import flips, outcome, read_pin, simple
from tests.vectors.making.files import Case, unpack

pytestmark = pytest.mark.usefixtures("free_kdf")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
# What os.fsdecode makes of bytes that are no UTF-8: lone surrogates from U+DC80 on.
PATHS = st.binary(max_size=30).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
ROUTES = st.lists(st.tuples(st.one_of(TEXTS, PATHS), TEXTS), max_size=4).map(tuple)


def account() -> Account:
    made = Account("a pinned account")
    made.save()
    made.rotate()
    made.save()
    return made


def pin_of(known: Account, seq: int | None = None, routes: tuple[pin.Route, ...] = (("origin", "key"),)) -> Pin:
    seq = len(known.entries) if seq is None else seq
    return Pin(known.keys_at(seq).key_set, known.head_at(seq), routes)


@pytest.mark.parametrize("case", simple("pin.json"), ids=lambda case: case["name"])
def test_a_pin_reads_exactly_as_the_vector_says(case: Case, tmp_path: Path) -> None:
    if case["expect"] == "foreign_account":
        # Whose pin it is follows from its route: the folder of all pins looks it up.
        sealed = pin.decode(unpack(case["pin"]))
        path = tmp_path / pin.file_name(sealed.pin.account_id)
        path.write_bytes(unpack(case["pin"]))
        path.chmod(0o600)
        served = KeySet.parse([unpack(raw) for raw in case["wraps"]], None)
        origin, key_id = case["route"]
        assert outcome(lambda: PinFolder(tmp_path).check((origin, key_id), served)) == case["expect"]
        assert outcome(lambda: PinFolder(tmp_path).check((origin, "another key"), served)) == "ok"
        return
    assert outcome(lambda: read_pin(case)) == case["expect"]
    if case["expect"] == "ok" and case["step"] == "read":
        read = read_pin(case).pin
        assert (read.account_id.hex(), read.key_set.kid.hex()) == (case["accountId"], case["kid"])
        assert read.head == Head(case["headSeq"], unpack(case["headMac"]))
        assert [list(route) for route in read.routes] == case["routes"]
        assert pin.file_name(read.account_id) == case["fileName"]


def test_every_flipped_bit_of_a_pin_is_refused() -> None:
    for bit, expect, case in flips("pin.json", "pin"):
        assert outcome(lambda case=case: read_pin(case)) == expect, f"bit {bit}"  # type: ignore[misc]


@given(routes=ROUTES, seq=st.integers(0, 2**64 - 1), mac=st.binary(min_size=32, max_size=32))
def test_a_pin_comes_back_from_its_bytes(routes: tuple[pin.Route, ...], seq: int, mac: bytes) -> None:
    known = account()
    kept = Pin(known.keys[-1].key_set, Head(seq, mac), routes)
    sealed = pin.decode(pin.encode(kept, known.dek))
    sealed.check([known.dek])
    assert sealed.pin == kept


def test_a_truncated_pin_is_damaged_wherever_it_ends() -> None:
    known = account()
    raw = pin.encode(pin_of(known), known.dek)
    for size in range(len(raw)):
        with pytest.raises(PinDamaged):
            pin.decode(raw[:size]).check(known.deks)


@given(raw=st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda tail: b"SQPN\1\0\0\0" + tail)))
def test_random_bytes_are_a_damaged_pin_and_nothing_worse(raw: bytes) -> None:
    with pytest.raises((PinDamaged, UpdateRequired)):
        pin.decode(raw)


@given(tail=st.binary(max_size=200))
def test_random_bytes_after_an_honest_start_are_a_damaged_pin(tail: bytes) -> None:
    known = account()
    raw = pin.encode(pin_of(known), known.dek)
    for size in (84, 84 + 164, len(raw) - 32 - 15):
        with pytest.raises((PinDamaged, UpdateRequired)):
            pin.decode(raw[:size] + tail).check(known.deks)


def test_the_mac_is_checked_under_the_key_that_was_in_force_and_no_other() -> None:
    known = account()
    old = pin.decode(pin.encode(pin_of(known, 2), known.deks[0]))
    old.check(known.deks)
    with pytest.raises(PinDamaged):
        old.check(known.deks[1:])
    with pytest.raises(PinDamaged):
        old.check([])
    # Sealed by who holds the later key, but naming the former one: the pinned key is asked and nobody else.
    mixed = pin.encode(pin_of(known), known.dek)[:-32]
    former = pin.encode(pin_of(known, 2), known.dek)
    with pytest.raises(PinDamaged):
        pin.decode(mixed + former[-32:]).check(known.deks)


def test_a_pin_whose_key_is_not_the_accounts_is_foreign_before_its_mac_is_looked_at() -> None:
    known, other = account(), Account("another account")
    sealed = pin.decode(pin.encode(pin_of(known), known.dek)[:-1] + b"\0")
    with pytest.raises(ForeignKey):
        check_ring(sealed, other.keys[-1].ring)


def test_the_file_name_tells_the_account_only_to_who_knows_it() -> None:
    account_id = bytes(range(16))
    name = pin.file_name(account_id)
    assert re.fullmatch(r"state-[a-z2-7]{16}\.bin", name)
    digest = sha256(b"squirrel/v1/pin" + account_id).digest()[:10]
    assert base64.b32decode(name[6:22].upper()) == digest


def test_routes_are_added_once_and_in_order() -> None:
    kept = pin_of(account(), routes=(("a", "1"),)).with_routes([("b", "2"), ("a", "1"), ("b", "2")])
    assert kept.routes == (("a", "1"), ("b", "2"))


def test_the_pin_shows_no_key() -> None:
    known = account()
    raw = pin.encode(pin_of(known), known.dek)
    for dek in (known.dek, Dek(known.deks[0].secret())):
        for secret in (dek.secret(), dek.local_state, dek.log, dek.record, dek.append):
            assert secret not in raw
