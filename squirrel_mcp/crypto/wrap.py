"""A wrap record: the DEK sealed under a key made from a passphrase or a recovery code. 164 bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from squirrel_mcp.crypto import entropy, kdf
from squirrel_mcp.crypto.keys import Dek
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
from squirrel_mcp.errors import KeySetDamaged, UpdateRequired, WrongPassphrase

WRAP_BYTES = 164
PASSPHRASE_SLOT = 1
RECOVERY_SLOT = 2

MAGIC = b"SQKW"
_VERSION = 1
_PBKDF2, _ARGON2ID, _NO_KDF = 1, 2, 3
_HEADER = struct.Struct(">4s4B4I16s16s16s")  # bytes 0..72, which the derivation covers
_COMMIT_END = _HEADER.size + KEY_BYTES
_AAD_END = _COMMIT_END + NONCE_BYTES
assert _AAD_END + KEY_BYTES + TAG_BYTES == WRAP_BYTES

Secret = str | bytes
"""What opens a wrap: a passphrase (str, slot 1) or the 20 bytes of a recovery code (slot 2)."""


@dataclass(frozen=True, slots=True)
class Wrap:
    """A wrap record whose shape and bounds are right. `raw` is the record itself."""

    raw: bytes
    slot: int
    parameters: kdf.Parameters | None
    generation: int
    account_id: bytes
    kid: bytes
    salt: bytes


def parse(raw: bytes) -> Wrap:
    """Check shape and KDF bounds; KeySetDamaged (or UpdateRequired for a later version). Opens nothing."""
    if type(raw) is not bytes or len(raw) < 5 or raw[:4] != MAGIC:
        raise KeySetDamaged("The key record is none.")
    if raw[4] != _VERSION:
        raise UpdateRequired("The key record was made by a later version: update this program.")
    if len(raw) != WRAP_BYTES:
        raise KeySetDamaged("The key record has the wrong length.")
    _, _, slot, code, flags, cost, memory, lanes, generation, account_id, kid, salt = _HEADER.unpack_from(raw)
    if flags != 0 or generation == 0:
        raise KeySetDamaged("The key record has reserved bits set.")
    parameters: kdf.Parameters | None
    if slot == PASSPHRASE_SLOT and code == _PBKDF2 and memory == lanes == 0:
        parameters = kdf.Pbkdf2(cost)
        parameters.check()
    elif slot == PASSPHRASE_SLOT and code == _ARGON2ID:
        parameters = kdf.Argon2id(cost, memory, lanes)
        parameters.check()
    elif slot == RECOVERY_SLOT and code == _NO_KDF and cost == memory == lanes == 0:
        parameters = None
    else:
        raise KeySetDamaged("The key record names a slot or key derivation that does not exist.")
    return Wrap(raw, slot, parameters, generation, account_id, kid, salt)


def seal(
    dek: Dek,
    secret: Secret,
    *,
    account_id: bytes,
    generation: int,
    parameters: kdf.Parameters = kdf.DEFAULT,
    random: entropy.Random = entropy.system,
) -> bytes:
    """A new wrap of `dek`: slot 1 for a passphrase, slot 2 for a recovery secret. 164 bytes."""
    salt = random(kdf.SALT_BYTES)
    if isinstance(secret, bytes):
        slot, code, costs = RECOVERY_SLOT, _NO_KDF, (0, 0, 0)
    elif isinstance(parameters, kdf.Pbkdf2):
        slot, code, costs = PASSPHRASE_SLOT, _PBKDF2, (parameters.iterations, 0, 0)
    else:
        slot, code = PASSPHRASE_SLOT, _ARGON2ID
        costs = (parameters.time, parameters.memory_kib, parameters.lanes)
    header = _HEADER.pack(MAGIC, _VERSION, slot, code, 0, *costs, generation, account_id, dek.kid, salt)
    kek, commit = _kek(secret, None if isinstance(secret, bytes) else parameters, header, salt)
    aad = header + commit + random(NONCE_BYTES)
    return aad + encrypt(kek, aad[_COMMIT_END:], dek.secret(), aad)


def open_wrap(wrap: Wrap, secret: Secret) -> Dek:
    """The DEK. WrongPassphrase for a wrong secret and for an altered record alike."""
    if isinstance(secret, bytes) != (wrap.slot == RECOVERY_SLOT):
        raise WrongPassphrase
    kek, commit = _kek(secret, wrap.parameters, wrap.raw[: _HEADER.size], wrap.salt)
    if not equal(commit, wrap.raw[_HEADER.size : _COMMIT_END]):
        raise WrongPassphrase
    plain = decrypt(kek, wrap.raw[_COMMIT_END:_AAD_END], wrap.raw[_AAD_END:], wrap.raw[:_AAD_END])
    if plain is None:
        raise WrongPassphrase
    dek = Dek(plain)
    if not equal(dek.kid, wrap.kid):
        raise WrongPassphrase
    return dek


def _kek(secret: Secret, parameters: kdf.Parameters | None, header: bytes, salt: bytes) -> tuple[bytes, bytes]:
    if isinstance(secret, bytes):
        stretched = kdf.from_recovery(secret)
    else:
        assert parameters is not None
        stretched = kdf.stretch(secret, salt, parameters)
    okm = derive(stretched, salt=hash_bytes(header), info=b"squirrel/v1/kek", length=2 * KEY_BYTES)
    return okm[:KEY_BYTES], okm[KEY_BYTES:]
