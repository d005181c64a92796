"""The parts of the wire format a store must read: log entries, wrap records, and the header of an object.

Sections 1 to 3 of docs/protocol.md. Big-endian, exact lengths, reserved bytes zero. Whatever else comes in,
these functions raise `Malformed` and nothing but it (`TooLarge` for an object over its cap).
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from squirrel_server.store.errors import Malformed, TooLarge
from squirrel_server.store.interface import MAX_OBJECT_BYTES

VERSION = 1
ID_BYTES = 16
HASH_BYTES = 32
ZERO_ID = bytes(ID_BYTES)
ZERO_HASH = bytes(HASH_BYTES)

# version, op, seq, client time, memory_id, revision, hash, prev_mac, mac
_ENTRY = struct.Struct(">BBQQ16sQ32s32s32s")
ENTRY_BYTES = _ENTRY.size  # 138

# magic, version, slot, kdf, flags, three KDF numbers, generation, account_id, kid; the rest is opaque here
_WRAP = struct.Struct(">4sBBBBIIII16s16s108x")
WRAP_BYTES = _WRAP.size  # 164
_WRAP_MAGIC = b"SQKW"

# version, type, reserved, kid; then salt[24] and commit[32]
_OBJECT = struct.Struct(">BBH16s56x")
_SMALLEST_PLAINTEXT = 256  # padding goes up to this at least
_TAG_BYTES = 16
MIN_OBJECT_BYTES = _OBJECT.size + _SMALLEST_PLAINTEXT + _TAG_BYTES  # 348


class Op(IntEnum):
    """What a log entry does."""

    PUT = 1
    TOMBSTONE = 2
    REWRAP = 3
    ROTATE = 4


class Slot(IntEnum):
    """Whose secret opens a wrap record."""

    PASSPHRASE = 1
    RECOVERY = 2


class Kdf(IntEnum):
    """How a wrap record's secret is stretched."""

    PBKDF2 = 1
    ARGON2ID = 2
    NONE = 3


class ObjectType(IntEnum):
    """What a sealed record holds."""

    MEMORY = 1
    PREVIOUS_KEYS = 2


class Entry(NamedTuple):
    """A log entry, read; `raw` are its 138 bytes. The client's time in it is left alone."""

    op: Op
    seq: int
    memory_id: bytes
    revision: int
    sha256: bytes
    prev_mac: bytes
    mac: bytes
    raw: bytes


class Wrap(NamedTuple):
    """What a store can know of a wrap record; `raw` are its 164 bytes."""

    slot: Slot
    generation: int
    account_id: bytes
    kid: bytes
    raw: bytes


def parse_entry(raw: object) -> Entry:
    """Read one log entry on its own: length, version, op, and the fields that its op wants zero."""
    data = exact(raw, ENTRY_BYTES, "a log entry")
    version, op, seq, _, memory_id, revision, sha256, prev_mac, mac = _ENTRY.unpack(data)
    if version != VERSION:
        raise Malformed(f"A log entry has version {version}; this store knows version {VERSION}.")
    if not Op.PUT <= op <= Op.ROTATE:
        raise Malformed(f"A log entry has the unknown op {op}.")
    if seq < 1 or revision < 1:
        raise Malformed("A log entry's seq and revision start at 1.")
    if op >= Op.REWRAP and memory_id != ZERO_ID:
        raise Malformed("An entry of a key set names a memory.")
    if op == Op.TOMBSTONE and sha256 != ZERO_HASH:
        raise Malformed("A tombstone names an object.")
    return Entry(Op(op), seq, memory_id, revision, sha256, prev_mac, mac, data)


def parse_wrap(raw: object) -> Wrap:
    """Read one wrap record. Its KDF numbers are the clients' business, except those that must be zero."""
    data = exact(raw, WRAP_BYTES, "a wrap record")
    magic, version, slot, kdf, flags, cost, memory, lanes, generation, account_id, kid = _WRAP.unpack(data)
    if magic != _WRAP_MAGIC or version != VERSION:
        raise Malformed(f"A wrap record is not one of version {VERSION}.")
    if flags:
        raise Malformed("A wrap record has reserved bytes that are not zero.")
    if (slot, kdf) not in _SLOT_KDFS:
        raise Malformed(f"A wrap record combines slot {slot} with key derivation {kdf}.")
    if (kdf != Kdf.ARGON2ID and (memory or lanes)) or (kdf == Kdf.NONE and cost):
        raise Malformed("A wrap record has a cost that its key derivation does not take.")
    return Wrap(Slot(slot), generation, account_id, kid, data)


def parse_object(raw: object, kind: ObjectType) -> bytes:
    """Check an object's size and header; its 16-byte kid comes back."""
    if type(raw) is not bytes or len(raw) < MIN_OBJECT_BYTES:
        raise Malformed(f"An object is shorter than {MIN_OBJECT_BYTES} bytes.")
    if len(raw) > MAX_OBJECT_BYTES:
        raise TooLarge(f"An object has {len(raw):,} bytes; at most {MAX_OBJECT_BYTES:,} are taken.")
    version, found, reserved, kid = _OBJECT.unpack_from(raw)
    if version != VERSION or found != kind:
        raise Malformed(f"An object of version {version} and type {found} does not belong here.")
    if reserved:
        raise Malformed("An object has reserved bytes that are not zero.")
    return bytes(kid)


def exact(raw: object, length: int, what: str) -> bytes:
    """`raw` if it is `bytes` of exactly that length, else `Malformed`, which calls it `what`."""
    if type(raw) is not bytes or len(raw) != length:
        raise Malformed(f"{what[0].upper()}{what[1:]} has exactly {length} bytes.")
    return raw


_SLOT_KDFS = frozenset(((Slot.PASSPHRASE, Kdf.PBKDF2), (Slot.PASSPHRASE, Kdf.ARGON2ID), (Slot.RECOVERY, Kdf.NONE)))
