from __future__ import annotations

import hmac
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import EMPTY, Entry, Head
from squirrel_mcp.crypto.primitives import hash_bytes

DEK = Dek(bytes(range(32)))
ACCOUNT_ID = b"a" * 16
U64 = st.integers(0, 2**64 - 1)


def test_an_entry_is_made_as_the_document_says() -> None:
    previous = Head(41, b"p" * 32)
    raw = log.make(DEK, ACCOUNT_ID, previous, log.PUT, time_ms=7, revision=3, memory_id=b"m" * 16, content=b"object")
    body = b"\1\1" + (42).to_bytes(8, "big") + (7).to_bytes(8, "big") + b"m" * 16 + (3).to_bytes(8, "big")
    body += hash_bytes(b"object") + b"p" * 32
    assert raw == body + hmac.digest(DEK.log, ACCOUNT_ID + body, "sha256")
    assert len(raw) == log.ENTRY_BYTES == 138
    assert log.parse(raw) == Entry(1, 1, 42, 7, b"m" * 16, 3, hash_bytes(b"object"), b"p" * 32, raw[106:])


def test_a_tombstone_names_no_object_and_a_change_of_keys_no_memory() -> None:
    tombstone = log.parse(log.make(DEK, ACCOUNT_ID, EMPTY, log.TOMBSTONE, time_ms=0, revision=2, memory_id=b"m" * 16))
    assert tombstone.sha256 == bytes(32)
    rewrap = log.parse(log.make(DEK, ACCOUNT_ID, EMPTY, log.REWRAP, time_ms=0, revision=1, content=b"key set"))
    assert (rewrap.memory_id, rewrap.sha256, rewrap.seq, rewrap.prev_mac) == (
        bytes(16),
        hash_bytes(b"key set"),
        1,
        bytes(32),
    )


@given(seq=st.integers(0, 2**64 - 2), time=U64, revision=U64, op=st.integers(0, 255), content=st.binary(max_size=50))
def test_an_entry_reads_back(seq: int, time: int, revision: int, op: int, content: bytes) -> None:
    previous = Head(seq, hash_bytes(content))
    raw = log.make(DEK, ACCOUNT_ID, previous, op, time_ms=time, revision=revision, content=content)
    entry = log.parse(raw)
    assert (entry.seq, entry.time, entry.revision, entry.op) == (seq + 1, time, revision, op)
    assert (entry.sha256, entry.prev_mac) == (hash_bytes(content), previous.mac)
    assert entry.head == Head(seq + 1, log.entry_mac(DEK, ACCOUNT_ID, raw))


def test_the_mac_covers_every_bit_before_it_and_the_account() -> None:
    raw = log.make(DEK, ACCOUNT_ID, EMPTY, log.PUT, time_ms=0, revision=1, memory_id=b"m" * 16, content=b"o")
    right = log.entry_mac(DEK, ACCOUNT_ID, raw)
    for bit in range(8 * 106):
        changed = bytearray(raw)
        changed[bit // 8] ^= 0x80 >> bit % 8
        assert log.entry_mac(DEK, ACCOUNT_ID, bytes(changed)) != right
    assert log.entry_mac(DEK, b"b" * 16, raw) != right
    assert log.entry_mac(Dek(bytes(32)), ACCOUNT_ID, raw) != right


def test_the_fingerprint_is_seq_and_16_hex_digits() -> None:
    assert Head(12, bytes.fromhex("0123456789abcdef") + bytes(24)).fingerprint == "12:0123456789abcdef"


@pytest.mark.parametrize("size", [0, 1, 106, 137, 139, 276])
def test_an_entry_of_another_length_is_not_taken_apart(size: int) -> None:
    with pytest.raises(struct.error):
        log.parse(bytes(size))
