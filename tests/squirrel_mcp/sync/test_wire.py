"""The protocol's values as JSON: what our side writes is read back, and nothing else is."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squirrel_mcp.crypto.log import Head
from squirrel_mcp.errors import BadReply
from squirrel_mcp.sync import wire
from squirrel_mcp.sync.store import AccountRecord, LogPage

_mac = st.binary(min_size=32, max_size=32)
_heads = st.builds(lambda seq, mac: {"seq": seq, "mac": mac.hex()}, st.integers(1, 2**53 - 1), _mac)
_items = st.lists(st.tuples(st.binary(max_size=150), st.none() | st.binary(max_size=50)), max_size=4)
_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def _page(items: list[tuple[bytes, bytes | None]], head: dict[str, Any], more: bool) -> dict[str, Any]:
    return {"entries": wire.items_field(items), "head": head, "more": more}


@given(_items, _heads, st.booleans())
def test_a_page_is_read_as_it_was_written(
    items: list[tuple[bytes, bytes | None]], head: dict[str, Any], more: bool
) -> None:
    assert wire.read_page(_page(items, head, more)) == LogPage(
        items, Head(head["seq"], bytes.fromhex(head["mac"])), more
    )


@given(
    st.binary(min_size=16, max_size=16), st.lists(st.binary(max_size=200), max_size=3), st.none() | st.binary(), _heads
)
def test_an_account_is_read_as_it_was_written(
    account_id: bytes, wraps: list[bytes], previous: bytes | None, head: dict[str, Any]
) -> None:
    reply = {
        "accountId": account_id.hex(),
        "wraps": [wire.encode(wrap) for wrap in wraps],
        "previousKeys": None if previous is None else wire.encode(previous),
        "head": head,
    }
    record = wire.read_account(reply)
    assert record == AccountRecord(account_id, wraps, previous, Head(head["seq"], bytes.fromhex(head["mac"])))


@given(st.text(max_size=40) | st.binary(max_size=30).map(lambda raw: base64.b64encode(raw).decode()), st.data())
@example("QUJD====", None)
@example("QUJ=", None)
@example("QUI=\n", None)
@example(" QUJD", None)
@example("QU-_", None)
@example("QUJD", None)
@example("QUI", None)
@example("=", None)
@example("\u0663\u0663\u0663\u0663", None)
def test_base64_is_canonical_or_refused(text: str, data: st.DataObject | None) -> None:
    if data is not None and text:
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(["", "A", "=", "\n", " ", "-", "é"])) + text[at:]
    try:
        raw = wire.read_object({"object": text})
    except BadReply as error:
        assert error.__context__ is None
    else:
        assert base64.b64encode(raw).decode() == text


@given(st.sampled_from(["entries", "head", "more"]), _junk, _items, _heads)
def test_a_page_with_something_else_in_a_field_is_a_bad_reply(
    name: str, junk: Any, items: list[tuple[bytes, bytes | None]], head: dict[str, Any]
) -> None:
    page = {**_page(items, head, False), name: junk}
    try:
        read = wire.read_page(page)
    except BadReply:
        return
    # Some junk is a page after all.
    assert type(read.more) is bool and all(type(raw) is bytes for raw, _ in read.items)


@given(_junk)
def test_any_json_is_read_or_a_bad_reply(junk: Any) -> None:
    for read in (wire.read_account, wire.read_page, wire.read_object, wire.read_head):
        try:
            read(junk if isinstance(junk, dict) else {"head": junk, "entries": junk, "more": junk, "object": junk})
        except BadReply as error:
            assert len(str(error)) < 100


@pytest.mark.parametrize(
    "mac", ["00" * 31, "00" * 33, "0" * 63, "AA" * 32, "zz" * 32, "00" * 31 + "0 ", "００" * 32, 0, None, ["00" * 32]]
)
def test_a_mac_of_any_other_form_is_refused(mac: object) -> None:
    with pytest.raises(BadReply):
        wire.read_head({"seq": 1, "mac": mac})


@pytest.mark.parametrize("seq", [0, -1, True, 1.0, "1", None, [1]])
def test_a_seq_of_any_other_form_is_refused(seq: object) -> None:
    with pytest.raises(BadReply):
        wire.read_head({"seq": seq, "mac": "00" * 32})


def test_what_is_written_is_json() -> None:
    assert json.loads(json.dumps(wire.items_field([(b"\xff", None)]))) == [{"entry": "/w==", "object": None}]
