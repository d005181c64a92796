"""An account's key set: one wrap per slot and, after a rotation, the earlier keys sealed under the present one.

`KeySet` is what a store hands over, checked for shape only. `KeyRing` is what it opens to: every DEK the account
has had, with the log entry at which each one but the last went out of force.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from squirrel_mcp.crypto import entropy, envelope, kdf, log, wrap
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.errors import KeyRingFull, KeySetDamaged, PassphraseRefused

_ITEM = struct.Struct(">32sQ32s")  # dek, seq and mac of the entry just before the rotate entry
MAX_ROTATIONS = envelope.MAX_PAYLOAD_BYTES // _ITEM.size


@dataclass(frozen=True, slots=True)
class RetiredKey:
    """A former DEK; `seq` and `mac` name the last entry before the rotate entry that retired it."""

    dek: Dek
    seq: int
    mac: bytes


@dataclass(frozen=True)
class KeySet:
    """Wraps in slot order and the previous-keys object as served; shape checked, nothing opened."""

    wraps: tuple[wrap.Wrap, ...]
    previous_keys: bytes | None

    @classmethod
    def parse(cls, wraps: Sequence[bytes], previous_keys: bytes | None, account_id: bytes | None = None) -> KeySet:
        """KeySetDamaged unless it has slot 1, at most slot 2, one account and one key."""
        parsed = tuple(wrap.parse(raw) for raw in wraps)
        if [each.slot for each in parsed] not in ([1], [1, 2]):
            raise KeySetDamaged("The key set does not hold its slots in order.")
        first = parsed[0]
        if any((each.account_id, each.kid) != (first.account_id, first.kid) for each in parsed):
            raise KeySetDamaged("The key set mixes two accounts or two keys.")
        if account_id is not None and first.account_id != account_id:
            raise KeySetDamaged("The key set belongs to another account.")
        if previous_keys is not None and len(previous_keys) > envelope.MAX_RECORD_BYTES:
            raise KeySetDamaged("The list of previous keys is too long.")
        return cls(parsed, previous_keys)

    @classmethod
    def from_bytes(cls, raw: bytes) -> KeySet:
        """The inverse of `raw`: the second wrap is recognised by its magic, as a record starts with a 1."""
        count = 2 if raw[wrap.WRAP_BYTES : wrap.WRAP_BYTES + 4] == wrap.MAGIC else 1
        end = count * wrap.WRAP_BYTES
        wraps = [raw[start : start + wrap.WRAP_BYTES] for start in range(0, end, wrap.WRAP_BYTES)]
        return cls.parse(wraps, raw[end:] or None)

    @cached_property
    def raw(self) -> bytes:
        """The bytes that the log vouches for."""
        return b"".join(each.raw for each in self.wraps) + (self.previous_keys or b"")

    @cached_property
    def sha256(self) -> bytes:
        return hash_bytes(self.raw)

    @property
    def account_id(self) -> bytes:
        return self.wraps[0].account_id

    @property
    def kid(self) -> bytes:
        return self.wraps[0].kid

    @property
    def generation(self) -> int:
        return max(each.generation for each in self.wraps)

    @property
    def recovery(self) -> wrap.Wrap | None:
        return self.wraps[1] if len(self.wraps) > 1 else None

    def open(self, secret: wrap.Secret) -> KeyRing:
        """The keys. WrongPassphrase for a wrong secret; KeySetDamaged for previous keys that do not open."""
        slot = self.recovery if isinstance(secret, bytes) else self.wraps[0]
        if slot is None:
            raise PassphraseRefused("This account has no recovery code.")
        return self.open_with(wrap.open_wrap(slot, secret))

    def open_with(self, dek: Dek) -> KeyRing:
        """The keys, from a DEK already in hand. KeySetDamaged if it is not this set's, or for what `open` says."""
        if dek.kid != self.kid:
            raise KeySetDamaged("The key set names another key.")
        if self.previous_keys is None:
            return KeyRing((), dek)
        payload = envelope.open_record(dek, self._previous_context(), self.previous_keys)
        if not payload or len(payload) % _ITEM.size:
            raise KeySetDamaged("The list of previous keys does not open.")
        retired = tuple(RetiredKey(Dek(secret), seq, mac) for secret, seq, mac in _ITEM.iter_unpack(payload))
        return KeyRing(retired, dek)

    def _previous_context(self) -> envelope.Context:
        return envelope.Context(self.account_id, log.NO_MEMORY, self.generation, envelope.PREVIOUS_KEYS)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys an account has had, oldest first, and the one in force now."""

    retired: tuple[RetiredKey, ...]
    current: Dek

    def at(self, rotations: int) -> Dek | None:
        """The key in force after that many rotate entries; None past the newest."""
        if rotations < len(self.retired):
            return self.retired[rotations].dek
        return self.current if rotations == len(self.retired) else None

    def seal_previous(
        self, account_id: bytes, generation: int, random: entropy.Random = entropy.system
    ) -> bytes | None:
        """The previous-keys object for that generation; None before the first rotation.

        KeyRingFull for more earlier keys than one record holds.
        """
        if not self.retired:
            return None
        if len(self.retired) > MAX_ROTATIONS:
            raise KeyRingFull(MAX_ROTATIONS)
        payload = b"".join(_ITEM.pack(key.dek.secret(), key.seq, key.mac) for key in self.retired)
        context = envelope.Context(account_id, log.NO_MEMORY, generation, envelope.PREVIOUS_KEYS)
        return envelope.seal(self.current, context, payload, random)


def make(
    ring: KeyRing,
    account_id: bytes,
    generation: int,
    *,
    passphrase: str | None,
    recovery: bytes | None = None,
    kept: KeySet | None = None,
    parameters: kdf.Parameters = kdf.DEFAULT,
    random: entropy.Random = entropy.system,
) -> KeySet:
    """A key set for `generation`: each secret given makes its slot anew, the others are kept from `kept`.

    ValueError unless some slot is of that generation.
    """
    wraps: list[bytes] = []
    for secret, slot in ((passphrase, 1), (recovery, 2)):
        if secret is not None:
            wraps.append(
                wrap.seal(
                    ring.current,
                    secret,
                    account_id=account_id,
                    generation=generation,
                    parameters=parameters,
                    random=random,
                )
            )
        elif kept is not None:
            wraps += [each.raw for each in kept.wraps if each.slot == slot]
    key_set = KeySet.parse(wraps, ring.seal_previous(account_id, generation, random), account_id)
    if key_set.generation != generation:
        raise ValueError("a new generation makes at least one slot anew")
    return key_set
