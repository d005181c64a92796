"""The sealed export: an account's key set, log and objects in one file, exactly as the store holds them.

    "SQEX" | version 1 | zeros[3] | account_id[16] | u64 head seq | head mac[32] | u32 length | key set
    | head seq x (u32 length | entry | u32 length | object) | SHA-256[32] of all bytes before

Big-endian; an object of length 0 is none (a tombstone, a change of keys, or a memory that was forgotten later).
The hash at the end finds damage; it proves nothing. What the file says is believed only after `sealed_log`
has verified the log with the account's keys.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.errors import ExportDamaged, KeySetDamaged, UpdateRequired

MAGIC = b"SQEX"
_VERSION = 1
_HEADER = struct.Struct(">4sB3s16sQ32sI")
_LENGTH = struct.Struct(">I")
_HASH_BYTES = 32


@dataclass(frozen=True)
class SealedExport:
    """An account at one moment. Nothing in it is opened or verified yet."""

    key_set: KeySet
    head: Head
    items: tuple[LogItem, ...]


def encode(export: SealedExport) -> bytes:
    """The file's bytes."""
    key_set = export.key_set.raw
    header = _HEADER.pack(MAGIC, _VERSION, bytes(3), export.key_set.account_id, *export.head, len(key_set))
    parts = [header, key_set]
    for entry, content in export.items:
        content = content or b""
        parts += [_LENGTH.pack(len(entry)), entry, _LENGTH.pack(len(content)), content]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def decode(raw: bytes) -> SealedExport:
    """Read a file's bytes; ExportDamaged for anything but the exact format, UpdateRequired for a later version."""
    if raw[:4] != MAGIC:
        raise ExportDamaged("The file is no sealed export.")
    if raw[4:5] not in (b"", b"\x01"):
        raise UpdateRequired("The export was written by a later version: update this program.")
    body = memoryview(raw)[:-_HASH_BYTES]
    if hashlib.sha256(body).digest() != raw[-_HASH_BYTES:]:
        raise ExportDamaged("The export is cut short or was altered: its check sum differs.")
    try:
        return _decode(body)
    except (struct.error, ValueError, KeySetDamaged):
        pass
    raise ExportDamaged("The export is not in the form that this version knows.")


def account_of(path: Path) -> bytes | None:
    """The id of the account that the file says it is of; None for what is no such file."""
    try:
        with open(path, "rb") as file:
            magic, _, _, account_id, *_ = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return None
    return bytes(account_id) if magic == MAGIC else None


def _decode(body: memoryview) -> SealedExport:
    _, _, zeros, account_id, seq, mac, length = _HEADER.unpack_from(body)
    key_set = KeySet.from_bytes(bytes(_slice(body, _HEADER.size, length)))
    if zeros != bytes(3) or key_set.account_id != account_id:
        raise ValueError
    fields = _fields(body, _HEADER.size + length)
    # Lengths of zero would make a count that nobody could hold; each entry has to be there before the next.
    items: list[LogItem] = []
    while len(items) < seq:
        entry, content = next(fields, b""), next(fields, None)
        if not entry or content is None:
            raise ValueError
        items.append((entry, content or None))
    if next(fields, None) is not None:
        raise ValueError
    return SealedExport(key_set, Head(seq, mac), tuple(items))


def _fields(body: memoryview, at: int) -> Iterator[bytes]:
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        yield bytes(_slice(body, at, length))
        at += length


def _slice(body: memoryview, at: int, length: int) -> memoryview:
    if at + length > len(body):
        raise ValueError
    return body[at : at + length]
