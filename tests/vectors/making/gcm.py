"""GHASH by hand, to make a GCM ciphertext that opens under several keys.

A GCM tag is linear in the ciphertext blocks once key and nonce are fixed (NIST SP 800-38D, section 6.4). So k keys
give k - 1 linear equations "my tag is the first one's", and k - 1 freely chosen blocks solve them. Grubbs et al.,
"Partitioning Oracle Attacks", USENIX Security 2021, guess passphrases that way, many with each question.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_BLOCK = 16
_REDUCTION = 0xE1 << 120  # x^128 + x^7 + x^2 + x + 1, bits reflected as GCM has them
_ONE = 1 << 127


def multiply(left: int, right: int) -> int:
    """The product of two blocks in GF(2^128), SP 800-38D algorithm 1."""
    product = 0
    for shift in range(127, -1, -1):
        if left >> shift & 1:
            product ^= right
        right = right >> 1 ^ (_REDUCTION if right & 1 else 0)
    return product


def power(base: int, exponent: int) -> int:
    result = _ONE
    while exponent:
        if exponent & 1:
            result = multiply(result, base)
        base, exponent = multiply(base, base), exponent >> 1
    return result


def invert(value: int) -> int:
    return power(value, 2**128 - 2)


def several_keys(keys: Sequence[bytes], nonce: bytes, aad: bytes) -> bytes:
    """`len(keys) - 1` ciphertext blocks and one tag that AES-GCM accepts under every one of the keys."""
    blocks = len(keys) - 1
    padded = aad + bytes(-len(aad) % _BLOCK)
    lengths = (8 * len(aad)).to_bytes(8, "big") + (8 * _BLOCK * blocks).to_bytes(8, "big")
    fixed = [*_split(padded), *[0] * blocks, int.from_bytes(lengths, "big")]

    constants, factors = [], []
    for key in keys:
        encrypt = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update
        subkey = int.from_bytes(encrypt(bytes(_BLOCK)), "big")
        constant = int.from_bytes(encrypt(nonce + b"\0\0\0\1"), "big")
        for position, block in enumerate(fixed):
            constant ^= multiply(block, power(subkey, len(fixed) - position))
        constants.append(constant)
        factors.append([power(subkey, blocks + 1 - index) for index in range(blocks)])

    rows = [
        [first ^ other for first, other in zip(factors[0], factors[index], strict=True)]
        + [constants[0] ^ constants[index]]
        for index in range(1, len(keys))
    ]
    chosen = _solve(rows)
    tag = constants[0]
    for block, factor in zip(chosen, factors[0], strict=True):
        tag ^= multiply(block, factor)
    return b"".join(block.to_bytes(_BLOCK, "big") for block in [*chosen, tag])


def _split(data: bytes) -> list[int]:
    return [int.from_bytes(data[start : start + _BLOCK], "big") for start in range(0, len(data), _BLOCK)]


def _solve(rows: list[list[int]]) -> list[int]:
    """Gauss and Jordan over GF(2^128): as many rows as unknowns, the constant last."""
    for column in range(len(rows)):
        pivot = next(index for index in range(column, len(rows)) if rows[index][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        inverse = invert(rows[column][column])
        rows[column] = [multiply(value, inverse) for value in rows[column]]
        for index, row in enumerate(rows):
            if index != column and row[column]:
                factor = row[column]
                rows[index] = [value ^ multiply(factor, base) for value, base in zip(row, rows[column], strict=True)]
    return [row[-1] for row in rows]
