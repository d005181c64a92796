"""PADME padding, so that a record's size tells little about the length of its text.

Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and Communication with PURBs", 2019: at most 12%
more bytes, and O(log log n) bits of the length are seen.
"""

from __future__ import annotations

MIN_PADDED = 256
_LENGTH_BYTES = 4


def padme(length: int) -> int:
    """The padded size for `length` >= 1 bytes: `length` rounded up to few significant bits."""
    exponent = length.bit_length() - 1
    if exponent < 1:
        return length
    zero_bits = exponent - exponent.bit_length()
    mask = (1 << zero_bits) - 1
    return (length + mask) & ~mask


def padded_size(payload: int) -> int:
    """Bytes of the plaintext that holds a payload of that many bytes."""
    return max(MIN_PADDED, padme(_LENGTH_BYTES + payload))


def pad(payload: bytes) -> bytes:
    """u32 length, the payload, zeros."""
    content = len(payload).to_bytes(_LENGTH_BYTES, "big") + payload
    return content.ljust(padded_size(len(payload)), b"\0")


def unpad(plaintext: bytes) -> bytes | None:
    """The payload, or None unless length, size and zeros are exactly what `pad` would have made."""
    if len(plaintext) < MIN_PADDED:
        return None
    length = int.from_bytes(plaintext[:_LENGTH_BYTES], "big")
    end = _LENGTH_BYTES + length
    if end > len(plaintext) or len(plaintext) != padded_size(length):
        return None
    if plaintext.count(0, end) != len(plaintext) - end:
        return None
    return plaintext[_LENGTH_BYTES:end]
