"""JSON from a server that is not trusted: one meaning or an error, and bounded work.

The standard parser takes duplicate keys, NaN, half surrogates, numbers of any length and any depth.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 16
_MAX_INTEGER = 2**53  # exclusive; beyond it other implementations lose digits
_MAX_DIGITS = 16


class NotStrict(ValueError):
    """Not the JSON that the protocol allows. Says nothing of the content."""

    def __init__(self) -> None:
        super().__init__("not the JSON that the protocol allows")


def parse(raw: bytes) -> dict[str, Any]:
    """The object in `raw`: UTF-8 without BOM, no floats. NotStrict for anything else."""
    try:
        _check_depth(raw)
        value = _DECODER.decode(raw.decode("utf-8"))
        if b"\\u" in raw:
            # Half of a surrogate pair is no text; UnicodeEncodeError is a ValueError.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        if type(value) is dict:
            return value
    except (ValueError, RecursionError):
        pass  # dropped: the error would carry the whole document
    raise NotStrict


def _check_depth(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    # Without strings: closing brackets in them would hide what is open.
    for byte in _STRING.sub(b"", raw).translate(None, delete=_NO_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        if depth > MAX_DEPTH:
            raise NotStrict


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NotStrict
    return fields


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS + 1 or abs(number := int(digits)) >= _MAX_INTEGER:
        raise NotStrict
    return number


def _refused(_: str) -> Any:
    raise NotStrict


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_refused, parse_constant=_refused
)
