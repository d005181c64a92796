"""The protocol's values as JSON: hex ids, canonical base64, exact fields. Anything else is BadReply."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.errors import BadReply
from squirrel_mcp.sync.store import AccountRecord, LogPage

_HEX = re.compile(r"(?:[0-9a-f]{2})+", re.ASCII)


def encode(data: bytes) -> str:
    """Standard, padded base64."""
    return base64.b64encode(data).decode("ascii")


def key_set_fields(key_set: KeySet) -> dict[str, Any]:
    """`wraps` and `previousKeys` of a request."""
    previous = key_set.previous_keys
    return {
        "wraps": [encode(wrap.raw) for wrap in key_set.wraps],
        "previousKeys": None if previous is None else encode(previous),
    }


def items_field(items: Sequence[LogItem]) -> list[dict[str, Any]]:
    """`entries` of a request."""
    return [
        {"entry": encode(entry), "object": None if content is None else encode(content)} for entry, content in items
    ]


def read_account(reply: Mapping[str, Any]) -> AccountRecord:
    wraps = [_base64(wrap) for wrap in _list(reply, "wraps")]
    previous = _field(reply, "previousKeys")
    return AccountRecord(
        account_id=_hex(_field(reply, "accountId"), 16),
        wraps=wraps,
        previous_keys=None if previous is None else _base64(previous),
        head=read_head(_field(reply, "head")),
    )


def read_page(reply: Mapping[str, Any]) -> LogPage:
    more = _field(reply, "more")
    if type(more) is not bool:
        raise _bad("more")
    return LogPage([_item(item) for item in _list(reply, "entries")], read_head(_field(reply, "head")), more)


def read_head(value: Any) -> Head:
    if type(value) is not dict:
        raise _bad("head")
    seq = _field(value, "seq")
    if type(seq) is not int or seq < 1:
        raise _bad("seq")
    return Head(seq, _hex(_field(value, "mac"), 32))


def read_object(reply: Mapping[str, Any]) -> bytes:
    return _base64(_field(reply, "object"))


def read_string(reply: Mapping[str, Any], name: str) -> str:
    value = _field(reply, name)
    if type(value) is not str:
        raise _bad(name)
    return value


def _item(value: Any) -> LogItem:
    if type(value) is not dict:
        raise _bad("entries")
    content = _field(value, "object")
    return _base64(_field(value, "entry")), None if content is None else _base64(content)


def _field(reply: Mapping[str, Any], name: str) -> Any:
    if name not in reply:
        raise _bad(name)
    return reply[name]


def _list(reply: Mapping[str, Any], name: str) -> list[Any]:
    value = _field(reply, name)
    if type(value) is not list:
        raise _bad(name)
    return value


def _hex(value: Any, length: int) -> bytes:
    if type(value) is not str or len(value) != 2 * length or not _HEX.fullmatch(value):
        raise _bad("an id")
    return bytes.fromhex(value)


def _base64(value: Any) -> bytes:
    if type(value) is str and value.isascii():
        try:
            raw = binascii.a2b_base64(value, strict_mode=True)
        except binascii.Error:
            raw = None
        # Compared, since even the strict decoder takes bits that a canonical encoder never sets.
        if raw is not None and encode(raw) == value:
            return raw
    raise _bad("base64")


def _bad(what: str) -> BadReply:
    return BadReply(f"The server's answer is not in the protocol's form ({what}).")
