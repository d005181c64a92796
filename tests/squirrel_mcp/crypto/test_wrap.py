from __future__ import annotations

from typing import Any

import pytest

from squirrel_mcp.crypto import kdf, primitives, wrap
from squirrel_mcp.crypto.kdf import Argon2id, Pbkdf2
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.errors import WrongPassphrase
from tests.squirrel_mcp.crypto.conftest import CountingKdf
from tests.squirrel_mcp.crypto.log_simulator import CHEAPEST
from tests.squirrel_mcp.crypto.vector_readers import flips, outcome, read_wrap, simple
from tests.vectors.making.files import Case, unpack
from tests.vectors.making.seeded import Seeded

DEK = Dek(bytes(range(32)))
ACCOUNT_ID = bytes(range(16))


@pytest.mark.parametrize(
    "case", [each for each in simple("wrap.json") if each["step"] == "open"], ids=lambda c: c["name"]
)
def test_a_wrap_opens_exactly_as_the_vector_says(case: Case) -> None:
    if case["expect"] != "ok":
        assert outcome(lambda: read_wrap(case)) == case["expect"]
    else:
        dek, parsed = read_wrap(case), wrap.parse(unpack(case["wrap"]))
        assert isinstance(dek, Dek)
        assert (dek.secret().hex(), dek.kid.hex()) == (case["dek"], case["kid"])
        assert (parsed.account_id.hex(), parsed.generation) == (case["accountId"], case["generation"])


@pytest.mark.parametrize(
    "case", [each for each in simple("wrap.json") if each["step"] == "parse"], ids=lambda c: c["name"]
)
def test_a_wrap_of_the_wrong_shape_is_refused_before_any_kdf_is_called(counting_kdf: CountingKdf, case: Case) -> None:
    assert outcome(lambda: read_wrap(case)) == case["expect"]
    if case["expect"] != "ok":
        assert outcome(lambda: read_wrap(case | {"step": "open", "passphrase": "p"})) == case["expect"]
    assert counting_kdf.calls == []


def test_every_flipped_bit_of_a_recovery_wrap_is_refused() -> None:
    for bit, expect, case in flips("wrap.json", "wrap"):
        assert outcome(lambda case=case: read_wrap(case)) == expect, f"bit {bit}"  # type: ignore[misc]


@pytest.mark.parametrize("parameters", [Argon2id(3, 32_768, 4), Pbkdf2(700_000)], ids=str)
def test_every_flipped_bit_of_a_passphrase_wrap_is_refused(counting_kdf: CountingKdf, parameters: Any) -> None:
    raw = wrap.seal(DEK, "passphrase", account_id=ACCOUNT_ID, generation=3, parameters=parameters)
    for bit in range(8 * len(raw)):
        byte, changed = bit // 8, bytearray(raw)
        changed[byte] ^= 0x80 >> bit % 8
        costs = [int.from_bytes(changed[at : at + 4], "big") for at in (8, 12, 16)]
        if byte == 4:
            expect = "update_required"
        elif byte < 8 or (byte < 20 and not _allowed(parameters, *costs)):
            expect = "key_set_damaged"
        else:
            expect = "wrong_passphrase"
        case = {"step": "open", "wrap": changed.hex(), "passphrase": "passphrase"}
        assert outcome(lambda case=case: read_wrap(case)) == expect, f"bit {bit}"  # type: ignore[misc]


def _allowed(parameters: kdf.Parameters, time: int, memory: int, lanes: int) -> bool:
    if isinstance(parameters, Pbkdf2):
        return 600_000 <= time <= 10_000_000 and memory == lanes == 0
    return 2 <= time <= 16 and 19_456 <= memory <= 1_048_576 and 1 <= lanes <= 16 and time * memory <= 4_194_304


@pytest.mark.parametrize("length", range(164))
def test_a_truncated_wrap_is_refused(length: int) -> None:
    raw = wrap.seal(DEK, bytes(20), account_id=ACCOUNT_ID, generation=1)
    assert outcome(lambda: wrap.parse(raw[:length])) == "key_set_damaged"


SEVERAL_KEYS = [each for each in simple("wrap.json") if each["name"].startswith("several_keys")]


@pytest.mark.parametrize("case", SEVERAL_KEYS, ids=lambda c: c["name"])
def test_plain_gcm_opens_one_ciphertext_under_several_keys(case: Case) -> None:
    raw = unpack(case["wrap"])
    assert primitives.decrypt(unpack(case["kek"]), raw[104:116], raw[116:], raw[:116]) is not None
    siblings = [each for each in SEVERAL_KEYS if each["wrap"] == case["wrap"]]
    assert len({each["kek"] for each in siblings}) == len(siblings) == 3


@pytest.mark.parametrize("case", SEVERAL_KEYS, ids=lambda c: c["name"])
def test_the_commitment_refuses_every_key_but_one_before_gcm_is_asked(
    monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    asked: list[bytes] = []

    def counting_decrypt(key: bytes, nonce: bytes, ciphertext: bytes, aad: bytes) -> bytes | None:
        asked.append(key)
        return primitives.decrypt(key, nonce, ciphertext, aad)

    monkeypatch.setattr(wrap, "decrypt", counting_decrypt)
    with pytest.raises(WrongPassphrase):
        read_wrap(case)
    committed = case["name"].endswith("_1")
    assert asked == ([unpack(case["kek"])] if committed else [])


def test_a_wrong_passphrase_and_an_altered_record_look_the_same(counting_kdf: CountingKdf) -> None:
    raw = wrap.seal(DEK, "passphrase", account_id=ACCOUNT_ID, generation=1)
    errors = []
    for changed, passphrase in ((raw, "another"), (raw[:-1] + bytes((raw[-1] ^ 1,)), "passphrase")):
        with pytest.raises(WrongPassphrase) as caught:
            wrap.open_wrap(wrap.parse(changed), passphrase)
        errors.append((str(caught.value), caught.value.args, caught.value.__cause__, caught.value.__context__))
    assert errors[0] == errors[1]


def test_the_wrap_is_made_of_the_bytes_that_the_table_names(counting_kdf: CountingKdf) -> None:
    raw = wrap.seal(
        DEK, "p", account_id=ACCOUNT_ID, generation=7, parameters=Argon2id(3, 65_536, 4), random=Seeded("layout")
    )
    salt_and_nonce = Seeded("layout")(28)
    expected = b"SQKW" + bytes((1, 1, 2, 0)) + b"".join(n.to_bytes(4, "big") for n in (3, 65_536, 4, 7))
    assert raw[:72] == expected + ACCOUNT_ID + DEK.kid + salt_and_nonce[:16]
    assert raw[104:116] == salt_and_nonce[16:]
    assert len(raw) == 164


def test_every_new_wrap_has_a_fresh_salt_and_nonce() -> None:
    made = [wrap.seal(DEK, bytes(20), account_id=ACCOUNT_ID, generation=1) for _ in range(200)]
    assert len({raw[56:72] for raw in made}) == len({raw[104:116] for raw in made}) == 200


def test_a_secret_of_the_other_kind_does_not_cost_a_kdf(counting_kdf: CountingKdf) -> None:
    passed = wrap.seal(DEK, "passphrase", account_id=ACCOUNT_ID, generation=1, parameters=CHEAPEST)
    counting_kdf.calls.clear()
    with pytest.raises(WrongPassphrase):
        wrap.open_wrap(wrap.parse(passed), bytes(20))
    assert counting_kdf.calls == []


@pytest.mark.parametrize("raw", [None, "SQKW" * 41, bytearray(164), 164], ids=lambda value: type(value).__name__)
def test_what_is_no_bytes_is_no_wrap(raw: Any) -> None:
    assert outcome(lambda: wrap.parse(raw)) == "key_set_damaged"
