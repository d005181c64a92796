"""Bytes in JSON and headers: standard, padded, canonical base64, and lower-case hex. Each text has one reading."""

from __future__ import annotations

import base64
import binascii
import re

_HEX = re.compile(r"(?:[0-9a-f]{2})*")


def to_base64(data: bytes) -> str:
    """Standard alphabet, with padding."""
    return base64.b64encode(data).decode("ascii")


def from_base64(text: object) -> bytes:
    """The bytes; ValueError for anything `to_base64` would have written otherwise."""
    if type(text) is not str:
        raise ValueError("not a string")
    try:
        raw = text.encode("ascii")
        data = binascii.a2b_base64(raw)
    except ValueError:
        raise ValueError("not base64") from None
    if base64.b64encode(data) != raw:
        raise ValueError("not canonical base64")
    return data


def from_hex(text: object, length: int) -> bytes:
    """So many bytes; ValueError for upper case, spaces, or another length."""
    if type(text) is not str or len(text) != 2 * length or not _HEX.fullmatch(text):
        raise ValueError("not lower-case hex of that length")
    return bytes.fromhex(text)
