"""API keys and invites as text: made, read, compared. Nothing here knows a database or HTTP.

    sqn_<12: id>_<43: 256 random bits>_<6: check>      an API key
    sqi_<43: 256 random bits>_<6: check>               an invite

All parts are base62 with the digits 0-9 A-Z a-z, most significant first and padded with 0. The check is the CRC-32
(zlib's) of everything before the last underscore: it tells a slip of the pen from a wrong key, and nothing more.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from hmac import compare_digest
from typing import NamedTuple

Random = Callable[[int], bytes]

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID, _SECRET, _CHECK = 12, 43, 6
_SECRET_BYTES = 32
KEY_ID = re.compile(rf"[0-9A-Za-z]{{{_ID}}}")
_KEY = re.compile(rf"sqn_([0-9A-Za-z]{{{_ID}}})_[0-9A-Za-z]{{{_SECRET}}}_[0-9A-Za-z]{{{_CHECK}}}")
_INVITE = re.compile(rf"sqi_[0-9A-Za-z]{{{_SECRET}}}_[0-9A-Za-z]{{{_CHECK}}}")


class Scope(Enum):
    """What a key may do; each includes the ones before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: Scope) -> bool:
        """Whether a key of this scope may do what needs the other."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made; `text` is shown once and not kept, `digest` is what a database gets."""

    text: str = field(repr=False)
    key_id: str
    digest: bytes = field(repr=False)


class Presented(NamedTuple):
    """What somebody claims to hold: the id to look for, and the hash to compare."""

    key_id: str
    digest: bytes


def make_key(random: Random) -> NewKey:
    """A new API key. random: `os.urandom`, or anything else that is as good."""
    number = int.from_bytes(random(_SECRET_BYTES))
    # 16 bytes for 71 bits: what the remainder favours is below 2**-56.
    key_id = _base62(int.from_bytes(random(16)) % 62**_ID, _ID)
    text = _checked(f"sqn_{key_id}_{_base62(number, _SECRET)}")
    return NewKey(text, key_id, _digest(text))


def read_key(text: str) -> Presented | None:
    """The key in `text`, or None if it is none by its form or its check."""
    found = _KEY.fullmatch(text)
    if found is None or not _is_checked(text):
        return None
    return Presented(found[1], _digest(text))


def fits(presented: Presented, digest: bytes | None) -> bool:
    """Whether the presented key is the one with this hash; None (no such id) takes as long as a wrong one."""
    return compare_digest(presented.digest, digest or bytes(32)) and digest is not None


def make_invite(random: Random) -> tuple[str, bytes]:
    """A new invite, to be shown once, and the hash of it to be kept."""
    text = _checked(f"sqi_{_base62(int.from_bytes(random(_SECRET_BYTES)), _SECRET)}")
    return text, _digest(text)


def read_invite(text: str) -> bytes | None:
    """The hash of the invite in `text`, or None if it is none by its form or its check."""
    return _digest(text) if _INVITE.fullmatch(text) and _is_checked(text) else None


def _checked(text: str) -> str:
    return f"{text}_{_base62(zlib.crc32(text.encode('ascii')), _CHECK)}"


def _is_checked(text: str) -> bool:
    return _checked(text[: -_CHECK - 1]) == text


def _digest(text: str) -> bytes:
    # 256 random bits need no slow hash: there is nothing to guess.
    return hashlib.sha256(text.encode("ascii")).digest()


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
