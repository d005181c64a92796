"""API keys and invites as text."""

from __future__ import annotations

import os
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_server.api_keys import NewKey, Scope, fits, make_invite, make_key, read_invite, read_key

BYTES = st.binary(min_size=32, max_size=32)
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _number(text: str) -> int:
    number = 0
    for digit in text:
        number = number * 62 + ALPHABET.index(digit)
    return number


@given(BYTES)
def test_a_key_has_its_three_parts_and_is_read_back(data: bytes) -> None:
    key = make_key(lambda count: data[:count])
    prefix, key_id, secret, check = key.text.split("_")
    assert (prefix, key_id) == ("sqn", key.key_id)
    assert [len(part) for part in (key_id, secret, check)] == [12, 43, 6]
    assert _number(secret) == int.from_bytes(data)
    assert _number(check) == zlib.crc32(f"sqn_{key_id}_{secret}".encode())
    presented = read_key(key.text)
    assert presented == (key.key_id, key.digest) and fits(presented, key.digest)


@given(BYTES)
def test_an_invite_is_read_back(data: bytes) -> None:
    token, digest = make_invite(lambda count: data[:count])
    assert token.startswith("sqi_") and read_invite(token) == digest
    assert read_key(token) is None and read_invite(make_key(os.urandom).text) is None


def test_a_fixed_key_stays_what_it_is() -> None:
    key = make_key(lambda count: bytes(range(count)))
    assert key.text == "sqn_xkEgOGusQGwp_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf_3C8pNS"
    assert make_invite(lambda count: bytes(range(count)))[0] == "sqi_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf_0SmFLz"


@pytest.mark.parametrize("position", range(4, 67))
def test_a_slip_of_the_pen_is_noticed_anywhere(position: int) -> None:
    text = make_key(os.urandom).text
    if text[position] == "_":
        return
    other = "A" if text[position] != "A" else "B"
    assert read_key(text[:position] + other + text[position + 1 :]) is None


@pytest.mark.parametrize("change", ["\n", " ", "\x00", "é", "_"])
def test_anything_before_or_behind_a_key_is_too_much(change: str) -> None:
    text = make_key(os.urandom).text
    assert read_key(text + change) is None and read_key(change + text) is None


@given(st.text(max_size=80))
def test_other_texts_are_no_keys(text: str) -> None:
    assert read_key(text) is None and read_invite(text) is None


def test_a_key_fits_only_its_own_hash() -> None:
    key, other = make_key(os.urandom), make_key(os.urandom)
    presented = read_key(key.text)
    assert presented is not None
    assert fits(presented, key.digest)
    assert not fits(presented, other.digest)
    assert not fits(presented, None)


def test_no_key_is_shown_by_accident() -> None:
    key = make_key(os.urandom)
    assert key.text not in repr(key) and key.text.split("_")[2] not in repr(key)
    assert isinstance(key, NewKey)


def test_scopes_include_those_below_them() -> None:
    included = {(one.value, other.value) for one in Scope for other in Scope if one.includes(other)}
    assert included == {
        ("read", "read"),
        ("write", "read"),
        ("write", "write"),
        ("admin", "read"),
        ("admin", "write"),
        ("admin", "admin"),
    }


def test_keys_do_not_repeat() -> None:
    keys = [make_key(os.urandom) for _ in range(10_000)]
    assert len({key.key_id for key in keys}) == len({key.text for key in keys}) == 10_000
