"""The local pin: what this device has seen of an account, so that nothing older is believed later.

    "SQPN" | version 1 | zeros[3] | kid[16] | account_id[16] | u64 head seq | head mac[32]
    | u32 length | key set | u16 count | count x (u16 length | origin | u16 length | API key id) | mac[32]

Big-endian; origin and API key id are UTF-8. The MAC is HMAC-SHA256 under the DEK's `local-state` key over all
bytes before it. An embedded vault's origin is the real path of its file, its API key id empty.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.primitives import equal, hash_bytes, mac
from squirrel_mcp.errors import KeySetDamaged, PinDamaged, UpdateRequired

MAX_PIN_BYTES = 1 << 20
_MAGIC = b"SQPN"
_HEADER = struct.Struct(">4sB3s16s16sQ32sI")
_MAC_BYTES = 32

Route = tuple[str, str]
"""How an account was reached: (origin, API key id)."""


@dataclass(frozen=True)
class Pin:
    """One account as this device last saw it, verified to `head`."""

    key_set: KeySet
    head: Head
    routes: tuple[Route, ...]

    @property
    def account_id(self) -> bytes:
        return self.key_set.account_id

    def with_routes(self, routes: Iterable[Route]) -> Pin:
        return replace(self, routes=tuple(dict.fromkeys((*self.routes, *routes))))


@dataclass(frozen=True, slots=True)
class SealedPin:
    """A pin as it was read: its shape is right, its MAC not checked yet (that takes the DEK)."""

    pin: Pin
    raw: bytes

    def check(self, deks: Iterable[Dek]) -> None:
        """PinDamaged unless one of these keys, the account's present and former ones, made its MAC."""
        kid = self.raw[8:24]
        body, tag = self.raw[:-_MAC_BYTES], self.raw[-_MAC_BYTES:]
        for dek in deks:
            if dek.kid == kid and equal(mac(dek.local_state, body), tag):
                return
        raise PinDamaged("This device's record of the vault was altered.")


def file_name(account_id: bytes) -> str:
    """`state-<16 characters>.bin`; the characters tell nothing about the account to who does not know its id."""
    digest = hash_bytes(b"squirrel/v1/pin" + account_id)[:10]
    return f"state-{base64.b32encode(digest).decode().lower()}.bin"  # 80 bits: no padding characters


def encode(pin: Pin, dek: Dek) -> bytes:
    """The pin's file, under the current DEK."""
    key_set = pin.key_set.raw
    parts = [
        _HEADER.pack(_MAGIC, 1, bytes(3), dek.kid, pin.account_id, *pin.head, len(key_set)),
        key_set,
        struct.pack(">H", len(pin.routes)),
    ]
    for text in (text for route in pin.routes for text in route):
        raw = text.encode("utf-8", "surrogateescape")  # a path may hold bytes that are no UTF-8
        parts += [struct.pack(">H", len(raw)), raw]
    body = b"".join(parts)
    return body + mac(dek.local_state, body)


def decode(raw: bytes) -> SealedPin:
    """Read a pin's file; PinDamaged for anything but the exact format."""
    if raw[:4] == _MAGIC and raw[4:5] not in (b"", b"\x01"):
        raise UpdateRequired("This device's record of the vault was written by a later version: update this program.")
    try:
        return SealedPin(_decode(raw), raw)
    except (struct.error, ValueError, KeySetDamaged):
        pass
    raise PinDamaged("This device's record of the vault is damaged.")


def _decode(raw: bytes) -> Pin:
    magic, version, zeros, kid, account_id, seq, head_mac, length = _HEADER.unpack_from(raw)
    if (magic, version, zeros) != (_MAGIC, 1, bytes(3)):
        raise ValueError
    at = _HEADER.size + length
    key_set = KeySet.from_bytes(raw[_HEADER.size : at])
    if (key_set.account_id, key_set.kid) != (account_id, kid):
        raise ValueError
    (count,) = struct.unpack_from(">H", raw, at)
    at += 2
    texts = []
    for _ in range(2 * count):
        (length,) = struct.unpack_from(">H", raw, at)
        texts.append(raw[at + 2 : at + 2 + length].decode("utf-8", "surrogateescape"))
        at += 2 + length
    if len(raw) != at + _MAC_BYTES:
        raise ValueError
    return Pin(key_set, Head(seq, head_mac), tuple(zip(texts[::2], texts[1::2], strict=True)))
