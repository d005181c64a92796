from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto import kdf, key_set, wrap
from squirrel_mcp.crypto.kdf import Argon2id, Parameters, Pbkdf2
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.errors import KeySetDamaged, PassphraseRefused
from tests.squirrel_mcp.crypto.conftest import CountingKdf
from tests.squirrel_mcp.crypto.log_simulator import CHEAPEST

SALT = bytes(range(16))

ON_THE_BOUNDS = [
    Pbkdf2(600_000),
    Pbkdf2(10_000_000),
    Argon2id(2, 19_456, 1),
    Argon2id(16, 19_456, 1),
    Argon2id(2, 1_048_576, 1),
    Argon2id(2, 19_456, 16),
    Argon2id(4, 1_048_576, 16),
    Argon2id(16, 262_144, 16),
]
BEYOND = [
    *map(Pbkdf2, (-1, 0, 1, 5_000, 599_999, 10_000_001, 10**12, 2**32, 2**63)),
    *(Argon2id(time, 19_456, 1) for time in (-1, 0, 1, 17, 2**32, 2**63)),
    *(Argon2id(2, memory, 1) for memory in (-1, 0, 8, 19_455, 1_048_577, 2**32, 2**63)),
    *(Argon2id(2, 19_456, lanes) for lanes in (-1, 0, 17, 2**24, 2**63)),
    Argon2id(5, 1_048_576, 1),
    Argon2id(16, 262_145, 1),
]
NO_INTEGERS: list[Any] = [True, False, "600000", "3", 6e5, 3.0, None, b"3", [3], float("nan"), float("inf")]


@pytest.mark.parametrize("parameters", ON_THE_BOUNDS, ids=str)
def test_numbers_on_a_bound_are_allowed(counting_kdf: CountingKdf, parameters: Parameters) -> None:
    kdf.stretch("passphrase", SALT, parameters)
    assert counting_kdf.calls == [parameters]


# kdf_low and kdf_huge: that no KDF is called is what keeps a hostile number from costing time, whatever the machine.
@pytest.mark.parametrize("parameters", BEYOND, ids=str)
def test_numbers_beyond_a_bound_are_refused_before_any_kdf_is_called(
    counting_kdf: CountingKdf, parameters: Parameters
) -> None:
    with pytest.raises(KeySetDamaged):
        kdf.stretch("passphrase", SALT, parameters)
    assert counting_kdf.calls == []


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_only_real_integers_are_numbers(counting_kdf: CountingKdf, value: Any) -> None:
    for parameters in (
        Pbkdf2(value),
        Argon2id(value, 65_536, 4),
        Argon2id(3, value, 4),
        Argon2id(3, 65_536, value),
    ):
        with pytest.raises(KeySetDamaged):
            kdf.stretch("passphrase", SALT, parameters)
    assert counting_kdf.calls == []


@pytest.mark.parametrize("salt", [b"", bytes(15), bytes(17), bytearray(16), "0" * 16, None], ids=repr)
def test_a_salt_of_another_length_or_type_is_refused(counting_kdf: CountingKdf, salt: Any) -> None:
    for parameters in (CHEAPEST, Pbkdf2(600_000)):
        with pytest.raises(KeySetDamaged):
            kdf.stretch("passphrase", salt, parameters)
    assert counting_kdf.calls == []


@given(time=st.integers(0, 2**32 - 1), memory=st.integers(0, 2**32 - 1), lanes=st.integers(0, 2**32 - 1))
def test_no_numbers_of_a_wrap_cost_more_than_the_caps(time: int, memory: int, lanes: int) -> None:
    try:
        Argon2id(time, memory, lanes).check()
    except KeySetDamaged:
        return
    assert 2 <= time <= 16 and 19_456 <= memory <= 1_048_576 and 1 <= lanes <= 16 and time * memory <= 4_194_304


@pytest.mark.parametrize("passphrase", ["${X}", "${SQUIRREL_PASSPHRASE}", "${", "${X} and more", ""], ids=repr)
def test_a_placeholder_or_nothing_is_no_passphrase(counting_kdf: CountingKdf, passphrase: str) -> None:
    with pytest.raises(PassphraseRefused):
        kdf.stretch(passphrase, SALT, CHEAPEST)
    with pytest.raises(PassphraseRefused):
        kdf.check_new(passphrase)
    assert counting_kdf.calls == []


@pytest.mark.parametrize("passphrase", ["$X", "{X}", " ${X}", "pa${X}", "$ {X}"])
def test_a_dollar_sign_elsewhere_is_part_of_a_passphrase(passphrase: str) -> None:
    assert kdf.normalise(passphrase) == passphrase.encode()


@pytest.mark.parametrize("passphrase", ["half \ud800 a pair", "\udcff", "\udc3f\ud83d"], ids=ascii)
def test_a_passphrase_that_is_no_unicode_is_refused_and_not_quoted(passphrase: str) -> None:
    with pytest.raises(PassphraseRefused) as caught:
        kdf.normalise(passphrase)
    assert caught.value.__context__ is None  # an encoding error would hold the passphrase


@pytest.mark.parametrize("passphrase", [None, 7, b"passphrase", True])
def test_what_is_no_text_is_no_passphrase(passphrase: Any) -> None:
    with pytest.raises(PassphraseRefused):
        kdf.normalise(passphrase)


@pytest.mark.parametrize(
    ("one", "other"),
    [("caf\u00e9", "cafe\u0301"), ("\u00c5", "\u212b"), ("\uac00", "\u1100\u1161"), ("\u1e69", "s\u0307\u0323")],
    ids=ascii,
)
def test_both_spellings_of_a_letter_are_one_passphrase(one: str, other: str) -> None:
    assert one != other and kdf.normalise(one) == kdf.normalise(other)


@pytest.mark.parametrize(
    ("one", "other"), [("\ufb01", "fi"), ("\uff41", "a"), ("A", "a"), ("a ", "a"), ("\u2460", "1")]
)
def test_what_only_looks_alike_is_another_passphrase(one: str, other: str) -> None:
    assert kdf.normalise(one) != kdf.normalise(other)


def test_a_new_passphrase_is_measured_in_composed_characters() -> None:
    kdf.check_new("\u00e9" * 12)
    with pytest.raises(PassphraseRefused, match="too short"):
        kdf.check_new("e\u0301" * 11)


def test_a_rewrap_takes_the_clients_own_numbers_and_a_fresh_salt(counting_kdf: CountingKdf) -> None:
    # The wrap that is replaced came from a server, which chose the cheapest numbers that are allowed.
    dek, account_id = Dek(bytes(32)), bytes(16)
    served = wrap.seal(dek, "passphrase", account_id=account_id, generation=1, parameters=CHEAPEST)
    kept = KeySet.parse([served], None)
    made = key_set.make(KeyRing((), dek), account_id, 2, passphrase="passphrase", kept=kept)
    assert made.wraps[0].parameters == kdf.DEFAULT == Argon2id(time=3, memory_kib=65_536, lanes=4)
    assert made.wraps[0].salt != kept.wraps[0].salt


@pytest.mark.parametrize("secret", [b"", bytes(19), bytes(21), bytearray(20), "0" * 20])
def test_a_recovery_secret_has_20_bytes(secret: Any) -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        kdf.from_recovery(secret)
