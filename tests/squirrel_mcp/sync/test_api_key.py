"""An API key is right to the last symbol or none."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from squirrel_mcp.errors import ConfigurationError, InvalidInput
from squirrel_mcp.sync.api_key import ApiKey, check_invite
from squirrel_server.api_keys import make_invite
from tests.hostile_server import make_key

KEY = make_key()
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@given(st.builds(make_key))
def test_a_key_as_a_server_makes_it_is_taken(text: str) -> None:
    key = ApiKey(f" {text}\n")
    assert key.secret() == text and key.id == text[4:16]
    assert key.header() == {"Authorization": f"Bearer {text}"}


@given(st.integers(0, len(KEY) - 1), st.sampled_from(BASE62))
def test_one_wrong_symbol_anywhere_is_noticed(at: int, symbol: str) -> None:
    assume(KEY[at] != symbol)
    with pytest.raises(ConfigurationError):
        ApiKey(KEY[:at] + symbol + KEY[at + 1 :])


@given(st.integers(0, len(KEY) - 2))
def test_two_symbols_exchanged_are_noticed(at: int) -> None:
    assume(KEY[at] != KEY[at + 1])
    with pytest.raises(ConfigurationError):
        ApiKey(KEY[:at] + KEY[at + 1] + KEY[at] + KEY[at + 2 :])


@given(st.integers(0, len(KEY)), st.text(min_size=1, max_size=3))
def test_anything_put_in_is_noticed(at: int, more: str) -> None:
    text = KEY[:at] + more + KEY[at:]
    assume(text.strip() != KEY)
    with pytest.raises(ConfigurationError) as caught:
        ApiKey(text)
    assert KEY.split("_")[2] not in str(caught.value)


@given(st.integers(0, len(KEY) - 1))
def test_a_part_of_a_key_is_none(length: int) -> None:
    with pytest.raises(ConfigurationError):
        ApiKey(KEY[:length])


@given(st.text())
def test_any_text_is_a_key_or_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigurationError):
        ApiKey(text)


INVITE = make_invite(lambda count: bytes(range(count)))[0]


@given(st.binary(min_size=32, max_size=32))
def test_an_invite_as_a_server_makes_it_is_taken(secret: bytes) -> None:
    check_invite(make_invite(lambda _: secret)[0])


@given(st.integers(0, len(INVITE) - 1), st.sampled_from(BASE62))
def test_one_wrong_symbol_of_an_invite_is_noticed(at: int, symbol: str) -> None:
    assume(INVITE[at] != symbol)
    with pytest.raises(InvalidInput) as caught:
        check_invite(INVITE[:at] + symbol + INVITE[at + 1 :])
    assert caught.value.field == "invite" and INVITE[4:20] not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "x", INVITE[:-1], INVITE + "0", KEY, f" {INVITE}"], ids=["none", "x", "short", "long", "key", "spaced"]
)
def test_what_is_no_invite_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        check_invite(text)
