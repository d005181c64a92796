"""A second reader of the companion's vector file, written from docs/protocol.md, section 1.6."""

from __future__ import annotations

import base64
import hmac
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Model = tuple[str, bytes, int, int]
"""Id, SHA-256 of the weights, dimension, text format."""


def hkdf(key: bytes, salt: bytes, info: bytes, size: int = 32) -> bytes:
    extracted, okm, block = hmac.digest(salt or bytes(32), key, "sha256"), b"", b""
    while len(okm) < size:
        block = hmac.digest(extracted, block + info + bytes((len(okm) // 32 + 1,)), "sha256")
        okm += block
    return okm[:size]


def file_name(first_dek: bytes, account: bytes, model: Model) -> str:
    key = hkdf(first_dek, b"", b"squirrel/v1/file-name")
    digest = hmac.digest(key, account + model[0].encode() + struct.pack(">I", model[3]), "sha256")
    return f"memory-vectors-{base64.b32encode(digest[:10]).decode().lower()}.bin"


def read(raw: bytes, account: bytes, deks: list[bytes], model: Model) -> list[tuple[bytes, int, bytes]] | None:
    """(memory id, revision, vector as it is written) of each row; None for a file to be dropped."""
    header, at, index, rows = raw[:80], 80, 0, []
    by_kid = {hkdf(dek, b"", b"squirrel/v1/key-id", 16): dek for dek in deks}
    if len(raw) > 2**30 or len(header) < 80 or header[:8] != b"SQVC\1\0\0\0" or header[8:24] not in by_kid:
        return None
    cache_key = hkdf(by_kid[header[8:24]], b"", b"squirrel/v1/vector-cache")
    okm = hkdf(cache_key, header[24:48], b"squirrel/v1/vector-cache\0" + account, 64)
    if okm[32:] != header[48:80]:
        return None
    name = model[0].encode()
    metadata = struct.pack(">H", len(name)) + name + model[1] + struct.pack(">IBI", model[2], 1, model[3])
    while at + 4 <= len(raw):
        (length,) = struct.unpack_from(">I", raw, at)
        fits = (length - 28) % (24 + 2 * model[2]) == 0 if index else length == 28 + len(metadata)
        if not 28 <= length <= 2**22 or not fits:
            return None
        if at + 4 + length > len(raw):
            break
        nonce, sealed = raw[at + 4 : at + 16], raw[at + 16 : at + 4 + length]
        try:
            plain = AESGCM(okm[:32]).decrypt(nonce, sealed, header + struct.pack(">I", index))
        except InvalidTag:
            return None
        if index == 0 and plain != metadata:
            return None
        rows += list(struct.iter_unpack(f">16sQ{2 * model[2]}s", plain)) if index else []
        at, index = at + 4 + length, index + 1
    return rows if index else None
