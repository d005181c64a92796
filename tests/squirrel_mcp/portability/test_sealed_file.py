"""The bytes of a sealed export, whatever stands in them."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto import kdf, key_set
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.errors import ExportDamaged, UpdateRequired
from squirrel_mcp.portability.sealed_file import SealedExport, decode, encode

KEYS = key_set.make(
    KeyRing((), Dek(bytes(range(32)))),
    b"a" * 16,
    1,
    passphrase="twelve letters",
    parameters=kdf.Argon2id(time=2, memory_kib=19_456, lanes=1),
)
MAC = b"m" * 32
LOG = ((b"first entry", None), (b"second", b"an object"), (b"third", None))


def _signed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.none() | st.binary(min_size=1, max_size=90))))
def test_what_was_written_is_read_back(items: list[tuple[bytes, bytes | None]]) -> None:
    export = SealedExport(KEYS, Head(len(items), MAC), tuple(items))
    assert decode(encode(export)) == export


def test_two_exports_of_one_state_are_the_same_bytes() -> None:
    export = SealedExport(KEYS, Head(3, MAC), LOG)
    assert encode(export) == encode(decode(encode(export)))


def test_every_flipped_bit_is_noticed() -> None:
    raw = bytearray(encode(SealedExport(KEYS, Head(3, MAC), LOG)))
    for at in range(len(raw)):
        raw[at] ^= 1
        with pytest.raises((ExportDamaged, UpdateRequired)):
            decode(bytes(raw))
        raw[at] ^= 1


def test_every_shorter_file_is_noticed() -> None:
    raw = encode(SealedExport(KEYS, Head(3, MAC), LOG))
    for length in range(len(raw)):
        with pytest.raises(ExportDamaged):
            decode(raw[:length])


def test_bytes_after_the_end_are_noticed() -> None:
    with pytest.raises(ExportDamaged):
        decode(encode(SealedExport(KEYS, Head(3, MAC), LOG)) + b"\0")


def test_a_later_version_is_not_called_damaged() -> None:
    raw = encode(SealedExport(KEYS, Head(3, MAC), LOG))
    with pytest.raises(UpdateRequired):
        decode(_signed(raw[:4] + b"\x02" + raw[5:-32]))


@pytest.mark.parametrize(
    ("what", "at", "value"),
    [
        ("reserved bytes that are not zero", 5, b"\1"),
        ("another account than the key set's", 8, b"b"),
        ("more entries than there are", 24, (4).to_bytes(8, "big")),
        ("fewer entries than there are", 24, (2).to_bytes(8, "big")),
        ("entries without number", 24, b"\xff" * 8),
        ("a key set longer than the file", 64, b"\xff" * 4),
        ("a key set of no length", 64, bytes(4)),
        ("an entry longer than the file", 68 + len(KEYS.raw), b"\xff" * 4),
        ("an entry of no length", 68 + len(KEYS.raw), bytes(4)),
    ],
)
def test_a_right_check_sum_does_not_excuse_a_wrong_form(what: str, at: int, value: bytes) -> None:
    body = bytearray(encode(SealedExport(KEYS, Head(3, MAC), LOG))[:-32])
    body[at : at + len(value)] = value
    with pytest.raises(ExportDamaged):
        decode(_signed(bytes(body)))


@given(st.binary(max_size=400))
def test_any_bytes_give_an_export_or_a_typed_error(raw: bytes) -> None:
    with pytest.raises((ExportDamaged, UpdateRequired)):
        decode(_signed(b"SQEX\1" + raw))


def test_a_key_set_is_compared_by_its_bytes() -> None:
    assert KeySet.from_bytes(KEYS.raw) == KEYS
