"""The recovery code: 160 random bits as 32 Crockford base32 symbols and a check symbol.

https://www.crockford.com/base32.html: case, hyphens and spaces do not matter, I and L read as 1, O as 0; the
check symbol is the number modulo 37.
"""

from __future__ import annotations

from squirrel_mcp.crypto import entropy
from squirrel_mcp.crypto.kdf import RECOVERY_BYTES
from squirrel_mcp.errors import InvalidInput

_SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CHECK = _SYMBOLS + "*~$=U"
_LENGTH = RECOVERY_BYTES * 8 // 5  # 32 symbols of five bits
_GROUP = 4
_ALIASES = str.maketrans("ILO", "110")


def generate(random: entropy.Random = entropy.system) -> bytes:
    """20 random bytes."""
    return random(RECOVERY_BYTES)


def to_code(secret: bytes) -> str:
    """`XXXX-XXXX-...-C`: 32 symbols, a hyphen after every fourth, then the check symbol."""
    if len(secret) != RECOVERY_BYTES:
        raise ValueError("a recovery secret has 20 bytes")
    number = int.from_bytes(secret, "big")
    symbols = "".join(_SYMBOLS[number >> shift & 31] for shift in range(5 * (_LENGTH - 1), -1, -5))
    groups = [symbols[start : start + _GROUP] for start in range(0, _LENGTH, _GROUP)]
    return "-".join([*groups, _CHECK[number % 37]])


def normalise(code: str) -> str:
    """A code, or the end of one, as it is compared: without case, spaces and hyphens; I and L as 1, O as 0.

    The last symbol is the check, for which no letter stands in.
    """
    plain = "".join(code.split()).replace("-", "")
    # Before upper(), which makes ASCII of letters that no code has: a long s, a dotless i, a ligature.
    plain = plain.upper() if plain.isascii() else plain
    return plain[:-1].translate(_ALIASES) + plain[-1:]


def from_code(code: str) -> bytes:
    """The 20 bytes; InvalidInput, which does not quote the code, where a symbol or the check is wrong."""
    plain = normalise(code)
    if len(plain) != _LENGTH + 1:
        raise InvalidInput("recovery code", f"A recovery code has {_LENGTH + 1} symbols; this one does not.")
    body, check = plain[:-1], plain[-1]
    if not all(symbol in _SYMBOLS for symbol in body) or check not in _CHECK:
        raise InvalidInput("recovery code", "The recovery code holds a symbol that no such code has.")
    number = 0
    for symbol in body:
        number = number << 5 | _SYMBOLS.index(symbol)
    if _CHECK[number % 37] != check:
        raise InvalidInput("recovery code", "The recovery code has a typing error: its check symbol differs.")
    return number.to_bytes(RECOVERY_BYTES, "big")
