"""HKDF and AES-GCM with every argument checked before the library sees it.

The library accepts nonces of 8 to 128 bytes and keys of three sizes; the protocol knows one of each.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16


def hash_bytes(data: bytes) -> bytes:
    """SHA-256, 32 bytes."""
    return sha256(data).digest()


def derive(key: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    """HKDF-SHA256 (RFC 5869) of a 32-byte key; an empty salt means the RFC's default."""
    _check(key, KEY_BYTES, "key")
    return HKDF(algorithm=SHA256(), length=length, salt=salt or None, info=info).derive(key)


def mac(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA256, 32 bytes."""
    _check(key, KEY_BYTES, "key")
    return hmac.digest(key, data, "sha256")


def equal(left: bytes, right: bytes) -> bool:
    """Compare in a time that does not depend on where they differ."""
    return hmac.compare_digest(left, right)


def encrypt(key: bytes, nonce: bytes, plaintext: bytes, aad: bytes) -> bytes:
    """AES-256-GCM: ciphertext followed by the 16-byte tag."""
    _check(key, KEY_BYTES, "key")
    _check(nonce, NONCE_BYTES, "nonce")
    return AESGCM(key).encrypt(nonce, plaintext, aad)


def decrypt(key: bytes, nonce: bytes, ciphertext: bytes, aad: bytes) -> bytes | None:
    """The plaintext, or None when the tag does not fit. The caller's error says what that means."""
    _check(key, KEY_BYTES, "key")
    _check(nonce, NONCE_BYTES, "nonce")
    if len(ciphertext) < TAG_BYTES:
        return None
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, aad)
    except InvalidTag:
        return None


def _check(value: bytes, length: int, name: str) -> None:
    if type(value) is not bytes or len(value) != length:
        raise ValueError(f"{name} must be {length} bytes")
