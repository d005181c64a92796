from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from squirrel_mcp.crypto import recovery
from squirrel_mcp.errors import InvalidInput
from tests.squirrel_mcp.crypto.vector_readers import outcome, read_recovery
from tests.vectors.making.files import Case, cases

SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CHECKS = SYMBOLS + "*~$=U"
SECRETS = st.binary(min_size=20, max_size=20)


@pytest.mark.parametrize("case", cases("recovery.json"), ids=lambda case: case["name"])
def test_a_recovery_code_reads_exactly_as_the_vector_says(case: Case) -> None:
    assert outcome(lambda: read_recovery(case)) == case["expect"]
    if case["expect"] == "ok":
        secret = bytes.fromhex(case["secret"])
        assert read_recovery(case) == secret
        assert (recovery.to_code(secret) == case["code"]) == case["canonical"]


@given(secret=SECRETS)
def test_a_code_reads_back_as_its_secret(secret: bytes) -> None:
    code = recovery.to_code(secret)
    assert re.fullmatch(r"([0-9A-HJKMNP-TV-Z]{4}-){8}[0-9A-HJKMNP-TV-Z*~$=U]", code)
    assert recovery.from_code(code) == secret


@settings(max_examples=settings().max_examples * 3 // 10)
@given(secret=SECRETS, data=st.data())
def test_a_code_reads_back_however_it_was_typed(secret: bytes, data: st.DataObject) -> None:
    plain = recovery.to_code(secret).replace("-", "")
    looks = {"0": "0Oo", "1": "1IiLl"}
    typed = ""
    for position, symbol in enumerate(plain):
        alike = looks.get(symbol, symbol + symbol.lower()) if position < 32 else symbol + symbol.lower()
        typed += data.draw(st.sampled_from(alike)) + data.draw(st.sampled_from(["", "", "-", " ", "\n", "--"]))
    assert recovery.from_code(typed) == secret


@settings(max_examples=settings().max_examples // 10)
@given(secret=SECRETS)
def test_every_substituted_symbol_is_noticed(secret: bytes) -> None:
    plain = recovery.to_code(secret).replace("-", "")
    for position, symbol in enumerate(plain):
        for other in SYMBOLS if position < 32 else CHECKS:
            if other != symbol:
                with pytest.raises(InvalidInput):
                    recovery.from_code(plain[:position] + other + plain[position + 1 :])


@settings(max_examples=settings().max_examples * 3 // 10)
@given(secret=SECRETS)
def test_every_swap_of_two_neighbours_is_noticed(secret: bytes) -> None:
    plain = recovery.to_code(secret).replace("-", "")
    for at in range(32):
        if plain[at] != plain[at + 1]:
            with pytest.raises(InvalidInput):
                recovery.from_code(plain[:at] + plain[at + 1] + plain[at] + plain[at + 2 :])


@given(secret=SECRETS, position=st.integers(0, 32), symbol=st.characters())
def test_a_symbol_of_another_alphabet_is_noticed(secret: bytes, position: int, symbol: str) -> None:
    assume(symbol.upper() not in CHECKS + "ILO" or not symbol.isascii())
    assume(symbol != "-" and not symbol.isspace())
    plain = recovery.to_code(secret).replace("-", "")
    with pytest.raises(InvalidInput):
        recovery.from_code(plain[:position] + symbol + plain[position + 1 :])


@given(text=st.text(max_size=60))
def test_any_other_text_is_refused_with_the_same_error(text: str) -> None:
    with pytest.raises(InvalidInput):
        recovery.from_code(text)


@pytest.mark.parametrize("size", [0, 19, 21])
def test_a_code_is_made_of_20_bytes_only(size: int) -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        recovery.to_code(bytes(size))


def test_a_new_secret_is_20_bytes_of_the_source() -> None:
    assert recovery.generate(lambda size: b"r" * size) == b"r" * 20
    assert recovery.generate() != recovery.generate()


@pytest.mark.parametrize(
    ("typed", "plain"), [("", ""), ("abcd-o", "ABCDO"), (" il-o0 *", "1100*"), ("a\u0131b", "a\u0131b"), ("o", "O")]
)
def test_a_part_of_a_code_is_compared_as_a_code_is_read(typed: str, plain: str) -> None:
    assert recovery.normalise(typed) == plain
