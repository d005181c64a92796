"""A sealed record: one payload under a key that is used once and commits to its place.

Each record has a random salt, hence a key of its own, so the nonce may be zero. The context (account, memory,
revision, type) is in the derivation and in the AAD: a record that was moved, replayed or taken from another
account does not open. `commit` is checked because plain GCM opens under more than one key.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from squirrel_mcp.crypto import entropy
from squirrel_mcp.crypto.keys import KID_BYTES, Dek
from squirrel_mcp.crypto.padding import MIN_PADDED, pad, padded_size, unpad
from squirrel_mcp.crypto.primitives import (
    KEY_BYTES,
    NONCE_BYTES,
    TAG_BYTES,
    decrypt,
    derive,
    encrypt,
    equal,
    hash_bytes,
)

MEMORY = 1
PREVIOUS_KEYS = 2

MAX_RECORD_BYTES = 65_536
MAX_PAYLOAD_BYTES = 63_484  # the longest that fits with length prefix, padding, header and tag
_SALT_BYTES = 24
_BOUND = 4 + KID_BYTES + _SALT_BYTES  # what the key derivation covers
HEADER_BYTES = _BOUND + KEY_BYTES
_NONCE = bytes(NONCE_BYTES)
_CONTEXT = struct.Struct(">16s16s16sQB")  # the label, then a Context


class Context(NamedTuple):
    """Where a record belongs: 16-byte ids, the revision (or generation) and the type."""

    account_id: bytes
    memory_id: bytes
    revision: int
    type: int = MEMORY

    def encode(self) -> bytes:
        if len(self.account_id) != 16 or len(self.memory_id) != 16:
            raise ValueError("ids have 16 bytes")
        return _CONTEXT.pack(b"squirrel/v1/ctx\0", *self)


def seal(dek: Dek, context: Context, payload: bytes, random: entropy.Random = entropy.system) -> bytes:
    """The record, 348 to 65,536 bytes; ValueError for a payload that does not fit."""
    if HEADER_BYTES + padded_size(len(payload)) + TAG_BYTES > MAX_RECORD_BYTES:
        raise ValueError("the payload does not fit a record")
    ctx = context.encode()
    bound = bytes((1, context.type, 0, 0)) + dek.kid + random(_SALT_BYTES)
    key, commit = _record_keys(dek, ctx, bound)
    header = bound + commit
    return header + encrypt(key, _NONCE, pad(payload), ctx + header)


def open_record(dek: Dek, context: Context, record: bytes) -> bytes | None:
    """The payload, or None if this is not exactly the record that was sealed there under this key."""
    if not HEADER_BYTES + MIN_PADDED + TAG_BYTES <= len(record) <= MAX_RECORD_BYTES:
        return None
    if record[:4] != bytes((1, context.type, 0, 0)) or record[4 : 4 + KID_BYTES] != dek.kid:
        return None
    ctx = context.encode()
    key, commit = _record_keys(dek, ctx, record[:_BOUND])
    if not equal(commit, record[_BOUND:HEADER_BYTES]):
        return None
    plaintext = decrypt(key, _NONCE, record[HEADER_BYTES:], ctx + record[:HEADER_BYTES])
    return None if plaintext is None else unpad(plaintext)


def _record_keys(dek: Dek, ctx: bytes, bound: bytes) -> tuple[bytes, bytes]:
    info = b"squirrel/v1/record\0" + hash_bytes(ctx + bound)
    okm = derive(dek.record, salt=bound[-_SALT_BYTES:], info=info, length=2 * KEY_BYTES)
    return okm[:KEY_BYTES], okm[KEY_BYTES:]
