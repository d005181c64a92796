from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto import envelope, key_set, padding, wrap
from squirrel_mcp.crypto.key_set import KeyRing, KeySet, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.errors import KeyRingFull, KeySetDamaged, SquirrelError, WrongPassphrase
from tests.squirrel_mcp.crypto.log_simulator import CHEAPEST
from tests.squirrel_mcp.crypto.vector_readers import outcome, read_key_set
from tests.vectors.making.files import Case, cases, unpack

pytestmark = pytest.mark.usefixtures("free_kdf")

ACCOUNT_ID = bytes(range(16))
DEK = Dek(bytes(range(32)))


def ring(retired: int = 0) -> KeyRing:
    items = (RetiredKey(Dek(bytes([n + 1]) * 32), 5 * n + 4, bytes([n]) * 32) for n in range(retired))
    return KeyRing(tuple(items), DEK)


def made(keys: KeyRing, generation: int = 1, *, passphrase: str | None = "p", recovery: bytes | None = None,
         kept: KeySet | None = None) -> KeySet:  # fmt: skip
    return key_set.make(
        keys, ACCOUNT_ID, generation, passphrase=passphrase, recovery=recovery, kept=kept, parameters=CHEAPEST
    )


@pytest.mark.parametrize("case", cases("key_set.json"), ids=lambda case: case["name"])
def test_a_key_set_opens_exactly_as_the_vector_says(case: Case) -> None:
    assert outcome(lambda: read_key_set(case)) == case["expect"]
    if case["expect"] == "ok":
        opened, parsed = read_key_set(case), read_key_set(case | {"step": "parse"})
        assert isinstance(opened, KeyRing) and isinstance(parsed, KeySet)
        assert opened.current == Dek(unpack(case["dek"]))
        assert (parsed.generation, parsed.kid.hex(), parsed.sha256.hex()) == (
            case["generation"],
            case["kid"],
            case["sha256"],
        )
        previous = [{"dek": k.dek.secret().hex(), "seq": k.seq, "mac": k.mac.hex()} for k in opened.retired]
        assert previous == case["previous"]
        assert KeySet.from_bytes(parsed.raw) == parsed


@given(retired=st.integers(0, 4), recovery=st.booleans(), generation=st.integers(1, 2**32 - 1))
def test_what_was_made_opens_with_each_secret(retired: int, recovery: bool, generation: int) -> None:
    code = bytes(20) if recovery else None
    keys = made(ring(retired), generation, recovery=code)
    assert keys.open("p") == ring(retired)
    assert keys.generation == generation
    assert KeySet.parse([each.raw for each in keys.wraps], keys.previous_keys) == keys == KeySet.from_bytes(keys.raw)
    with pytest.raises(WrongPassphrase):
        keys.open("another")
    if code:
        assert keys.open(code) == ring(retired)
        with pytest.raises(WrongPassphrase):
            keys.open(b"\1" * 20)
    else:
        with pytest.raises(SquirrelError):
            keys.open(bytes(20))


def test_a_rewrap_keeps_the_other_slot_byte_for_byte_and_seals_the_previous_keys_anew() -> None:
    first = made(ring(2), 3, recovery=bytes(20))
    second = made(ring(2), 4, kept=first)
    assert second.wraps[1].raw == first.wraps[1].raw
    assert second.wraps[0].raw != first.wraps[0].raw
    assert second.previous_keys != first.previous_keys
    assert (second.generation, second.open(bytes(20))) == (4, ring(2))
    third = made(ring(2), 5, passphrase=None, recovery=b"\1" * 20, kept=second)
    assert third.wraps[0].raw == second.wraps[0].raw
    assert (third.generation, third.open("p")) == (5, ring(2))


def test_a_slot_of_the_former_key_is_not_kept_through_a_rotation() -> None:
    first = made(ring(), recovery=bytes(20))
    rotated = KeyRing((RetiredKey(DEK, 9, bytes(32)),), Dek(bytes(32)))
    with pytest.raises(KeySetDamaged):
        key_set.make(rotated, ACCOUNT_ID, 2, passphrase="p", kept=first, parameters=CHEAPEST)


def test_a_key_set_without_a_new_slot_is_not_made() -> None:
    # Its generation would be that of the old slots, and its previous keys sealed for another.
    with pytest.raises(ValueError, match="slot"):
        made(ring(1), 2, passphrase=None, kept=made(ring(1), 1))


def test_the_previous_keys_of_another_generation_do_not_open() -> None:
    older, newer = made(ring(1), 3), made(ring(1), 4)
    mixed = KeySet.parse([newer.wraps[0].raw], older.previous_keys)
    with pytest.raises(KeySetDamaged):
        mixed.open_with(DEK)


def test_881_rotations_fit_the_list_of_earlier_keys_and_the_next_is_refused_in_a_sentence() -> None:
    longest = envelope.MAX_RECORD_BYTES - envelope.HEADER_BYTES - 16
    assert (
        padding.padded_size(envelope.MAX_PAYLOAD_BYTES) <= longest < padding.padded_size(envelope.MAX_PAYLOAD_BYTES + 1)
    )
    retired = [RetiredKey(Dek(number.to_bytes(32, "big")), number + 1, bytes(32)) for number in range(882)]
    full = KeyRing(tuple(retired[:881]), DEK)
    assert made(full, 882).open_with(DEK) == full
    with pytest.raises(KeyRingFull, match=r"^The account has had 881 rotations.*new account\.$"):
        made(KeyRing(tuple(retired), DEK), 883)


def test_a_key_that_is_not_the_sets_own_is_refused_before_anything_is_opened() -> None:
    for keys in (made(ring()), made(ring(1))):
        with pytest.raises(KeySetDamaged, match="another key"):
            keys.open_with(Dek(bytes(32)))


def test_a_second_wrap_passed_off_as_previous_keys_does_not_open() -> None:
    # The same bytes in a row, hence the same hash in the log: only the shape tells the two apart.
    honest = made(ring(), recovery=bytes(20))
    shifted = KeySet.parse([honest.wraps[0].raw], honest.wraps[1].raw)
    assert shifted.raw == honest.raw
    with pytest.raises(KeySetDamaged):
        shifted.open("p")


@given(raw=st.one_of(st.binary(max_size=400), st.binary(max_size=170).map(lambda tail: made(ring()).raw + tail)))
def test_any_bytes_are_a_key_set_or_damaged(raw: bytes) -> None:
    try:
        parsed = KeySet.from_bytes(raw)
    except KeySetDamaged:
        return
    assert parsed.raw == raw


def test_the_key_in_force_is_counted_by_rotations() -> None:
    keys = ring(2)
    assert [keys.at(number) for number in range(4)] == [keys.retired[0].dek, keys.retired[1].dek, DEK, None]
    assert wrap.WRAP_BYTES == 164
