"""Bytes that look random and are the same on every run, for vectors and simulated accounts."""

from __future__ import annotations

from hashlib import sha256


class Seeded:
    """SHA-256(label || u64 counter), block after block. Stands in for `random=`; protects nothing."""

    def __init__(self, label: str) -> None:
        self._label = label.encode()
        self._counter = 0
        self._left = b""

    def __call__(self, size: int) -> bytes:
        while len(self._left) < size:
            self._left += sha256(self._label + self._counter.to_bytes(8, "big")).digest()
            self._counter += 1
        taken, self._left = self._left[:size], self._left[size:]
        return taken
