"""JSON with one meaning, or an error that holds nothing of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squirrel_mcp.sync.strict_json import MAX_DEPTH, NotStrict, parse

_text = st.text(st.characters(exclude_categories=["Cs"]))
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=30,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(st.dictionaries(_text, _values, max_size=5), st.booleans())
def test_whatever_json_can_say_strictly_is_read_as_it_is(value: dict[str, Any], ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    if depth(value) <= MAX_DEPTH:
        assert parse(raw) == value
    else:
        with pytest.raises(NotStrict):
            parse(raw)


@given(st.integers(1, 3 * MAX_DEPTH), st.booleans(), st.sampled_from(["", "]", "}", "]]]]", '\\"]', "[", "\\\\"]))
def test_depth_is_counted_whatever_the_strings_hold(levels: int, objects: bool, filler: str) -> None:
    opening, closing = (f'{{"{filler}":0,"a":', "}") if objects else (f'["{filler}",', "]")
    raw = ('{"a":' + opening * (levels - 1) + "1" + closing * (levels - 1) + "}").encode()
    if levels <= MAX_DEPTH:
        assert parse(raw)
    else:
        with pytest.raises(NotStrict):
            parse(raw)


@given(st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"\xef\xbb\xbf{}")
@example(b'{"a":1}\x00')
@example(b'{"a":"\xed\xa0\x80"}')
@example(b'"' * 101)
@example(b'{"a":"' + b"\\" * 51 + b'"}')
def test_any_bytes_are_an_object_or_the_one_error(raw: bytes) -> None:
    try:
        value = parse(raw)
    except NotStrict as error:
        assert error.__cause__ is None and error.__context__ is None
        assert str(error) == "not the JSON that the protocol allows" and error.args == (str(error),)
    else:
        assert type(value) is dict and json.loads(raw) == value


@given(st.dictionaries(_text, st.integers(0, 9), min_size=1, max_size=4), st.data())
def test_a_key_that_comes_twice_is_refused(value: dict[str, int], data: st.DataObject) -> None:
    twice = data.draw(st.sampled_from(sorted(value)))
    fields = [f"{json.dumps(key)}:{number}" for key, number in value.items()]
    fields.insert(data.draw(st.integers(0, len(fields))), f"{json.dumps(twice)}:1")
    with pytest.raises(NotStrict):
        parse(("{" + ",".join(fields) + "}").encode())


@given(st.floats() | st.integers(min_value=2**53) | st.integers(max_value=-(2**53)), st.booleans())
def test_numbers_that_others_may_read_differently_are_refused(number: float, nested: bool) -> None:
    raw = json.dumps({"a": [number] if nested else number}).encode()
    with pytest.raises(NotStrict):
        parse(raw)


@given(
    _text,
    st.integers(0xD800, 0xDFFF),
    _text,
    st.sampled_from(['{"a":"%s"}', '{"a":["%s"]}', '{"%s":1}', '{"a":[{"b":["%s"]}]}']),
)
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(before: str, half: int, after: str, form: str) -> None:
    text = json.dumps(before)[1:-1] + f"\\u{half:04x}" + "-" + json.dumps(after)[1:-1]
    with pytest.raises(NotStrict):
        parse((form % text).encode())


def test_a_whole_surrogate_pair_is_text() -> None:
    assert parse(b'{"a":"\\ud83d\\udc3f"}') == {"a": "\U0001f43f"}
