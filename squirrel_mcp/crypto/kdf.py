"""From a passphrase to 32 bytes, with the cost of doing so bounded before it is paid.

The numbers in a wrap come from a file or a server. They are checked here, on real integers, before any KDF is
called: too low would make guessing cheap, too high would hang or exhaust the machine that opens it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id as _Argon2id
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.errors import KeySetDamaged, NewPassphraseRefused, PassphraseRefused

SALT_BYTES = 16
OUTPUT_BYTES = 32
RECOVERY_BYTES = 20
MIN_NEW_PASSPHRASE = 12  # characters, after NFC

PBKDF2_ITERATIONS = (600_000, 10_000_000)  # OWASP's floor for SHA-256, and about 2.5 s here
ARGON2_TIME = (2, 16)
ARGON2_MEMORY_KIB = (19_456, 1_048_576)  # OWASP's smallest profile, and 1 GiB
ARGON2_LANES = (1, 16)
ARGON2_TIME_X_MEMORY = 4_194_304  # KiB passes: about 20 s here


@dataclass(frozen=True, slots=True)
class Pbkdf2:
    """PBKDF2-HMAC-SHA-256 (RFC 8018)."""

    iterations: int

    def check(self) -> None:
        _within([(self.iterations, PBKDF2_ITERATIONS)])


@dataclass(frozen=True, slots=True)
class Argon2id:
    """Argon2id version 0x13 (RFC 9106), no secret, no associated data."""

    time: int
    memory_kib: int
    lanes: int

    def check(self) -> None:
        _within([(self.time, ARGON2_TIME), (self.memory_kib, ARGON2_MEMORY_KIB), (self.lanes, ARGON2_LANES)])
        if self.time * self.memory_kib > ARGON2_TIME_X_MEMORY:
            raise _out_of_bounds()


Parameters = Pbkdf2 | Argon2id

# What a new wrap takes, always; never numbers that came from elsewhere. 64 MiB, 3 passes, 4 lanes: RFC 9106's
# second recommended option.
DEFAULT = Argon2id(time=3, memory_kib=65_536, lanes=4)


def normalise(passphrase: str) -> bytes:
    """NFC in UTF-8, so that both spellings of an accent open the same vault; PassphraseRefused otherwise."""
    if type(passphrase) is not str or not passphrase:
        raise PassphraseRefused("The passphrase is empty.")
    if passphrase.startswith("${"):
        raise PassphraseRefused("The passphrase is a placeholder that was never filled in: set the variable it names.")
    try:
        return unicodedata.normalize("NFC", passphrase).encode("utf-8")
    except UnicodeEncodeError:
        pass  # the error holds the passphrase, so it does not travel on as a context
    raise PassphraseRefused("The passphrase is not valid Unicode text.")


def check_new(passphrase: str) -> None:
    """NewPassphraseRefused for a passphrase that opens nothing yet and has not the form, or the length, for it."""
    try:
        normalise(passphrase)
    except PassphraseRefused as error:
        raise NewPassphraseRefused(str(error)) from None
    if len(unicodedata.normalize("NFC", passphrase)) < MIN_NEW_PASSPHRASE:
        raise NewPassphraseRefused(f"The passphrase is too short: take {MIN_NEW_PASSPHRASE} characters or more.")


def stretch(passphrase: str, salt: bytes, parameters: Parameters) -> bytes:
    """32 bytes. KeySetDamaged for parameters or a salt outside the bounds, before any work is done."""
    parameters.check()
    if type(salt) is not bytes or len(salt) != SALT_BYTES:
        raise KeySetDamaged("The key record has a salt of the wrong length.")
    secret = normalise(passphrase)
    if isinstance(parameters, Pbkdf2):
        return _run_pbkdf2(secret, salt, parameters)
    return _run_argon2id(secret, salt, parameters)


def from_recovery(secret: bytes) -> bytes:
    """32 bytes from the 20 of a recovery code: they are uniform already, so one hash is enough."""
    if type(secret) is not bytes or len(secret) != RECOVERY_BYTES:
        raise ValueError("a recovery secret has 20 bytes")
    return hash_bytes(secret)


def _run_pbkdf2(secret: bytes, salt: bytes, parameters: Pbkdf2) -> bytes:
    kdf = PBKDF2HMAC(algorithm=SHA256(), length=OUTPUT_BYTES, salt=salt, iterations=parameters.iterations)
    return kdf.derive(secret)


def _run_argon2id(secret: bytes, salt: bytes, parameters: Argon2id) -> bytes:
    kdf = _Argon2id(
        salt=salt,
        length=OUTPUT_BYTES,
        iterations=parameters.time,
        lanes=parameters.lanes,
        memory_cost=parameters.memory_kib,
    )
    return kdf.derive(secret)


def _within(ranges: Iterable[tuple[object, tuple[int, int]]]) -> None:
    for value, (low, high) in ranges:
        # `type(...) is int`: True is an int, and a float or a string would reach the library.
        if type(value) is not int or not low <= value <= high:
            raise _out_of_bounds()


def _out_of_bounds() -> KeySetDamaged:
    return KeySetDamaged("The key record asks for key derivation outside the allowed bounds.")
