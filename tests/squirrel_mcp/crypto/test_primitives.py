"""The library's primitives, and our way of calling them, against published vectors."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id as LibraryArgon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto import kdf, primitives

# RFC 5869, appendix A: ikm, salt, info, okm.
HKDF_VECTORS = {
    "A.1": (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    "A.2": (
        bytes(range(0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    "A.3": (
        "0b" * 22,
        "",
        "",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
}

_GCM_KEY = "feffe9928665731c6d6a8f9467308308" * 2
_GCM_PLAIN = (
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
    "b16aedf5aa0de657ba637b39"
)
# McGrew and Viega, "The Galois/Counter Mode of Operation", cases 13, 14 and 16: key, nonce, plaintext, AAD, output.
GCM_VECTORS = {
    "13": ("00" * 32, "00" * 12, "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
    "14": (
        "00" * 32,
        "00" * 12,
        "00" * 16,
        "",
        "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
    ),
    "16": (
        _GCM_KEY,
        "cafebabefacedbaddecaf888",
        _GCM_PLAIN,
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838"
        "c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b",
    ),
}

# The reference implementation's test.c, version 0x13, password `password`, salt `somesalt`: neither secret nor data.
ARGON2ID_VECTORS = {
    (2, 256, 1): "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe",
    (2, 256, 2): "6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037",
    (1, 65_536, 1): "f6a5adc1ba723dddef9b5ac1d464e180fcd9dffc9d1cbf76cca2fed795d9ca98",
}

# RFC 7914, section 11, the first 32 of 64 bytes: PBKDF2 makes its output block by block.
PBKDF2_VECTORS = {
    (b"passwd", b"salt", 1): "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc",
    (b"Password", b"NaCl", 80_000): "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56",
}


@pytest.mark.parametrize("name", HKDF_VECTORS)
def test_hkdf_agrees_with_rfc_5869(name: str) -> None:
    ikm, salt, info, okm = map(bytes.fromhex, HKDF_VECTORS[name])
    assert HKDF(SHA256(), length=len(okm), salt=salt or None, info=info).derive(ikm) == okm
    assert hkdf_by_hand(ikm, salt, info, len(okm)) == okm


@given(key=st.binary(min_size=32, max_size=32), salt=st.binary(max_size=64), info=st.binary(max_size=80))
def test_derive_is_hkdf_with_these_arguments(key: bytes, salt: bytes, info: bytes) -> None:
    assert primitives.derive(key, salt=salt, info=info, length=64) == hkdf_by_hand(key, salt, info, 64)


@pytest.mark.parametrize("name", GCM_VECTORS)
def test_gcm_agrees_with_its_authors(name: str) -> None:
    key, nonce, plaintext, aad, output = map(bytes.fromhex, GCM_VECTORS[name])
    assert primitives.encrypt(key, nonce, plaintext, aad) == output
    assert primitives.decrypt(key, nonce, output, aad) == plaintext
    assert primitives.decrypt(key, nonce, output[:-1] + bytes((output[-1] ^ 1,)), aad) is None


@pytest.mark.parametrize("costs", ARGON2ID_VECTORS, ids=str)
def test_argon2id_agrees_with_the_reference_implementation(costs: tuple[int, int, int]) -> None:
    # Below the bounds, hence past them: what is checked is which number goes where.
    output = kdf._run_argon2id(b"password", b"somesalt", kdf.Argon2id(*costs))
    assert output.hex() == ARGON2ID_VECTORS[costs]


def test_argon2id_agrees_with_rfc_9106() -> None:
    argon2id = LibraryArgon2id(
        salt=b"\2" * 16, length=32, iterations=3, lanes=4, memory_cost=32, ad=b"\4" * 12, secret=b"\3" * 8
    )
    expected = "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659"
    assert argon2id.derive(b"\1" * 32).hex() == expected


@pytest.mark.parametrize("arguments", PBKDF2_VECTORS, ids=str)
def test_pbkdf2_agrees_with_rfc_7914(arguments: tuple[bytes, bytes, int]) -> None:
    secret, salt, iterations = arguments
    assert kdf._run_pbkdf2(secret, salt, kdf.Pbkdf2(iterations)).hex() == PBKDF2_VECTORS[arguments]


@pytest.mark.parametrize("size", [0, 8, 11, 13, 16, 128])
def test_a_nonce_of_another_length_never_reaches_the_library(size: int) -> None:
    with pytest.raises(ValueError, match="nonce must be 12 bytes"):
        primitives.encrypt(bytes(32), bytes(size), b"", b"")
    with pytest.raises(ValueError, match="nonce must be 12 bytes"):
        primitives.decrypt(bytes(32), bytes(size), bytes(16), b"")


@pytest.mark.parametrize("key", [b"", bytes(16), bytes(24), bytes(31), bytes(33), bytearray(32), "0" * 32, None])
def test_a_key_of_another_length_or_type_never_reaches_the_library(key: Any) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: primitives.encrypt(key, bytes(12), b"", b""),
        lambda: primitives.decrypt(key, bytes(12), bytes(16), b""),
        lambda: primitives.derive(key, salt=b"", info=b"", length=32),
        lambda: primitives.mac(key, b""),
    )
    for call in calls:
        with pytest.raises(ValueError, match="key must be 32 bytes"):
            call()


@pytest.mark.parametrize("size", range(16))
def test_a_ciphertext_shorter_than_its_tag_does_not_open(size: int) -> None:
    assert primitives.decrypt(bytes(32), bytes(12), bytes(size), b"") is None


def hkdf_by_hand(ikm: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, section 2, with HMAC alone."""
    key = hmac.digest(salt or bytes(32), ikm, "sha256")
    okm, block = b"", b""
    while len(okm) < length:
        block = hmac.digest(key, block + info + bytes((len(okm) // 32 + 1,)), "sha256")
        okm += block
    return okm[:length]
