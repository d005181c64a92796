"""One line that brings a second device to an account, whole or not at all."""

from __future__ import annotations

import base64
import json
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp import join_code
from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.join_code import JoinCode
from squirrel_mcp.sync.api_key import ApiKey
from tests.hostile_server import make_key

KEY = make_key()
CODE = join_code.encode(JoinCode("https://memory.example.org:8443", ApiKey(KEY), "ab" * 32))

_origins = st.sampled_from(["https://memory.example.org", "https://h:8443", "http://127.0.0.1:80", "http://[::1]:1"])


@given(_origins, st.builds(make_key), st.none() | st.binary(min_size=32, max_size=32).map(bytes.hex))
def test_a_code_is_read_as_it_was_written(origin: str, key: str, certificate: str | None) -> None:
    text = join_code.encode(JoinCode(origin, ApiKey(key), certificate))
    assert text.isascii() and text.startswith("sqj1_") and not set(text) & set("+/= \n")
    code = join_code.decode(text)
    assert (code.origin, code.api_key.secret(), code.certificate) == (origin, key, certificate)


@given(st.lists(st.integers(0, len(CODE)), max_size=6), st.sampled_from([" ", "\n", "\r\n  ", "\t"]))
def test_a_code_that_a_terminal_or_a_mail_has_wrapped_is_read(places: list[int], space: str) -> None:
    text = CODE
    for at in sorted(places, reverse=True):
        text = text[:at] + space + text[at:]
    assert join_code.decode(text).api_key.secret() == KEY


@given(st.integers(0, len(CODE) - 1))
def test_a_part_of_a_code_is_none(length: int) -> None:
    with pytest.raises(InvalidInput):
        join_code.decode(CODE[:length])


@given(st.integers(5, len(CODE) - 1), st.sampled_from("AZaz09-_"))
def test_a_changed_code_never_leads_to_another_key(at: int, symbol: str) -> None:
    text = CODE[:at] + symbol + CODE[at + 1 :]
    try:
        code = join_code.decode(text)
    except InvalidInput as error:
        assert KEY.split("_")[2] not in "".join(traceback.format_exception(error)[-1:]) + repr(error.args)
        assert error.__context__ is None
    else:
        assert code.api_key.secret() == KEY


@given(st.text() | st.binary().map(lambda raw: "sqj1_" + base64.urlsafe_b64encode(raw).decode()))
def test_any_text_is_a_code_or_invalid_input(text: str) -> None:
    with pytest.raises(InvalidInput):
        join_code.decode(text)


def make(**fields: object) -> str:
    whole = {"api": "https://memory.example.org", "key": KEY, "certificate": None, **fields}
    return "sqj1_" + base64.urlsafe_b64encode(json.dumps(whole).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "fields",
    [
        {"api": "http://memory.example.org"}, {"api": "https://user:pass@host"}, {"api": None}, {"api": 5},
        {"api": ["https://host"]}, {"key": None}, {"key": KEY + "x"}, {"key": "\n" + KEY[:-1]}, {"key": 5},
        {"certificate": "ab"}, {"certificate": 5}, {"certificate": ""}, {"certificate": "zz" * 32}, {"more": 1},
    ],
)  # fmt: skip
def test_a_code_with_something_else_in_it_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        join_code.decode(make(**fields))


def test_a_code_is_bounded() -> None:
    with pytest.raises(InvalidInput):
        join_code.decode("sqj1_" + "A" * 5000)
    assert join_code.decode(make()).certificate is None
