"""Accounts as a client would write them, without any cryptography: a store has no keys, so any bytes will do.

`Client` knows where its log stands and builds the next entries; nothing here talks to a store.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass, field, replace
from typing import NamedTuple

ZERO_ID, ZERO_HASH = bytes(16), bytes(32)
PUT, TOMBSTONE, REWRAP, ROTATE = 1, 2, 3, 4

Pair = tuple[bytes, bytes | None]


class KeySetRequest(NamedTuple):
    """The arguments of a key set's registration or replacement."""

    wraps: list[bytes]
    previous_keys: bytes | None
    entry: bytes
    append_verifier: bytes | None


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def make_entry(
    op: int,
    seq: int,
    revision: int,
    prev_mac: bytes,
    *,
    memory_id: bytes = ZERO_ID,
    digest: bytes = ZERO_HASH,
    version: int = 1,
) -> bytes:
    mac = os.urandom(32)
    return struct.pack(
        ">BBQQ16sQ32s32s32s", version, op, seq, 1_772_357_400_000, memory_id, revision, digest, prev_mac, mac
    )


def make_object(size: int = 348, *, kid: bytes = ZERO_ID, kind: int = 1, version: int = 1, reserved: int = 0) -> bytes:
    header = struct.pack(">BBH16s", version, kind, reserved, kid)
    return header + os.urandom(size - len(header))


def make_wrap(account_id: bytes, kid: bytes, generation: int = 1, *, slot: int = 1, kdf: int | None = None) -> bytes:
    kdf = kdf if kdf is not None else {1: 2, 2: 3}[slot]
    cost = {1: (600_000, 0, 0), 2: (3, 65_536, 4), 3: (0, 0, 0)}[kdf]
    head = struct.pack(">4sBBBBIIII", b"SQKW", 1, slot, kdf, 0, *cost, generation)
    return head + account_id + kid + os.urandom(164 - 56)


@dataclass
class Client:
    """One account and its log as its owner knows them."""

    account_id: bytes = field(default_factory=lambda: os.urandom(16))
    append_key: bytes = field(default_factory=lambda: os.urandom(32))
    kid: bytes = field(default_factory=lambda: os.urandom(16))
    seq: int = 0
    mac: bytes = ZERO_HASH
    generation: int = 0
    wraps: tuple[bytes, ...] = ()
    previous_keys: bytes | None = None

    def first(self, *, recovery: bool = False) -> KeySetRequest:
        """What opens the account; `took` it when the store has it."""
        slots = (1, 2) if recovery else (1,)
        wraps = [make_wrap(self.account_id, self.kid, 1, slot=slot) for slot in slots]
        return self.key_set(REWRAP, wraps, None, sha256(self.append_key))

    def rewrap(self, *, keep_recovery: bool = True) -> KeySetRequest:
        """Another passphrase for the same key."""
        wraps = [make_wrap(self.account_id, self.kid, self.generation + 1)]
        previous = self.previous_keys and make_object(kid=self.kid, kind=2)
        return self.key_set(REWRAP, [*wraps, *self.wraps[1:]] if keep_recovery else wraps, previous, None)

    def rotate(self) -> tuple[Client, KeySetRequest]:
        """Another key: what to send, and the client as it is once the store has taken it."""
        renewed = replace(self, append_key=os.urandom(32), kid=os.urandom(16))
        wraps = [make_wrap(self.account_id, renewed.kid, self.generation + 1)]
        previous = make_object(kid=renewed.kid, kind=2)
        request = renewed.key_set(ROTATE, wraps, previous, sha256(renewed.append_key))
        renewed.took(request)
        return renewed, request

    def key_set(self, op: int, wraps: list[bytes], previous: bytes | None, verifier: bytes | None) -> KeySetRequest:
        """A key set and the entry that fits it."""
        digest = sha256(b"".join(wraps) + (previous or b""))
        entry = make_entry(op, self.seq + 1, self.generation + 1, self.mac, digest=digest)
        return KeySetRequest(wraps, previous, entry, verifier)

    def took(self, request: KeySetRequest) -> None:
        self.advance(request.entry)
        self.generation += 1
        self.wraps = tuple(request.wraps)
        self.previous_keys = request.previous_keys

    def put(self, memory_id: bytes | None = None, revision: int = 1, body: bytes | None = None) -> Pair:
        """The next entry of the log, a put; the client is one further."""
        body = body if body is not None else make_object(kid=self.kid)
        entry = make_entry(
            PUT,
            self.seq + 1,
            revision,
            self.mac,
            memory_id=memory_id if memory_id is not None else os.urandom(16),
            digest=sha256(body),
        )
        self.advance(entry)
        return entry, body

    def forget(self, memory_id: bytes, revision: int) -> Pair:
        """The next entry of the log, a tombstone; the client is one further."""
        entry = make_entry(TOMBSTONE, self.seq + 1, revision, self.mac, memory_id=memory_id)
        self.advance(entry)
        return entry, None

    def advance(self, entry: bytes) -> None:
        self.seq += 1
        self.mac = entry[106:]

    def copy(self) -> Client:
        """The same client, to build what is then not sent, or is refused."""
        return replace(self)

    @property
    def head(self) -> tuple[int, bytes]:
        return self.seq, self.mac
