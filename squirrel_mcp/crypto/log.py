"""Log entries: 138 bytes each, chained by their MACs (section 3 of the protocol)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.primitives import hash_bytes

PUT, TOMBSTONE, REWRAP, ROTATE = 1, 2, 3, 4
KEY_OPS = (REWRAP, ROTATE)

ENTRY_BYTES = 138
_VERSION = 1
_BODY = struct.Struct(">BBQQ16sQ32s32s")
_ENTRY = struct.Struct(">BBQQ16sQ32s32s32s")
assert _ENTRY.size == ENTRY_BYTES and _BODY.size == ENTRY_BYTES - 32

NO_MEMORY = bytes(16)
NO_HASH = bytes(32)


class Head(NamedTuple):
    """The last entry of a log: its seq and its MAC."""

    seq: int
    mac: bytes

    @property
    def fingerprint(self) -> str:
        """What two devices can compare: seq and the first 16 hex digits of the MAC."""
        return f"{self.seq}:{self.mac[:8].hex()}"


EMPTY = Head(0, bytes(32))


class Entry(NamedTuple):
    """One entry, its 138 bytes taken apart. `revision` is the generation where the op is 3 or 4."""

    version: int
    op: int
    seq: int
    time: int
    memory_id: bytes
    revision: int
    sha256: bytes
    prev_mac: bytes
    mac: bytes

    @property
    def head(self) -> Head:
        return Head(self.seq, self.mac)


def parse(raw: bytes) -> Entry:
    """Take 138 bytes apart; struct.error for another length. Checks nothing else."""
    return Entry._make(_ENTRY.unpack(raw))


def entry_mac(dek: Dek, account_id: bytes, raw: bytes) -> bytes:
    """The MAC that an entry of this account must carry under `dek`, from its first 106 bytes."""
    return dek.log_mac(account_id + raw[: _BODY.size])


def make(
    dek: Dek,
    account_id: bytes,
    previous: Head,
    op: int,
    *,
    time_ms: int,
    revision: int,
    memory_id: bytes = NO_MEMORY,
    content: bytes | None = None,
) -> bytes:
    """The entry after `previous`. `content` is the object (1), the key set (3, 4) or None (2)."""
    digest = NO_HASH if content is None else hash_bytes(content)
    body = _BODY.pack(_VERSION, op, previous.seq + 1, time_ms, memory_id, revision, digest, previous.mac)
    return body + entry_mac(dek, account_id, body)
