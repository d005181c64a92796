"""The data encryption key (DEK) of an account, and the subkey for each purpose.

The DEK itself never encrypts anything: HKDF-SHA256 with an empty salt and one label per purpose (section 1 of
the protocol) gives the keys that do.
"""

from __future__ import annotations

from functools import cached_property

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from squirrel_mcp.crypto import entropy
from squirrel_mcp.crypto.primitives import KEY_BYTES, derive, equal

KID_BYTES = 16


class Dek:
    """256 random bits made on the client. Two are equal when their bytes are; none shows them."""

    __slots__ = ("__dict__", "_secret")

    def __init__(self, secret: bytes) -> None:
        if type(secret) is not bytes or len(secret) != KEY_BYTES:
            raise ValueError("a DEK has 32 bytes")
        self._secret = secret

    @classmethod
    def generate(cls, random: entropy.Random = entropy.system) -> Dek:
        return cls(random(KEY_BYTES))

    def secret(self) -> bytes:
        """The raw key, for sealing it into a wrap or among the previous keys, and for nothing else."""
        return self._secret

    @cached_property
    def kid(self) -> bytes:
        """16 bytes, the public name of this key."""
        return self._subkey(b"key-id", KID_BYTES)

    @cached_property
    def record(self) -> bytes:
        return self._subkey(b"record")

    @cached_property
    def log(self) -> bytes:
        return self._subkey(b"log")

    def log_mac(self, data: bytes) -> bytes:
        """HMAC-SHA256 under the log key. The keyed state is made once: a log has very many short entries."""
        keyed = self._log_hmac.copy()
        keyed.update(data)
        return keyed.finalize()

    @cached_property
    def _log_hmac(self) -> HMAC:
        return HMAC(self.log, SHA256())

    @cached_property
    def append(self) -> bytes:
        """Shown to the store with a write: proof that the writer holds the DEK."""
        return self._subkey(b"append")

    @cached_property
    def local_state(self) -> bytes:
        return self._subkey(b"local-state")

    @cached_property
    def vector_cache(self) -> bytes:
        return self._subkey(b"vector-cache")

    @cached_property
    def file_name(self) -> bytes:
        return self._subkey(b"file-name")

    def _subkey(self, purpose: bytes, length: int = KEY_BYTES) -> bytes:
        return derive(self._secret, salt=b"", info=b"squirrel/v1/" + purpose, length=length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dek) and equal(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.kid)

    def __repr__(self) -> str:
        return "Dek(...)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a DEK is not pickled")
