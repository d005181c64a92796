"""The vectors of the memories in an index, by slot, in blocks: growing copies nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 8_192  # vectors; 12 MB at 384 dimensions


class VectorTable:
    """Not for several threads at once: its owner sees to that."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._blocks: list[NDArray[np.float32]] = []
        self._has = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        """How many slots hold a vector."""
        return int(np.count_nonzero(self._has))

    def has(self, slots: int) -> NDArray[np.bool_]:
        """For the first `slots` slots whether there is a vector."""
        found = np.zeros(slots, np.bool_)
        known = self._has[:slots]
        found[: len(known)] = known
        return found

    def has_one(self, slot: int) -> bool:
        """Whether a slot holds a vector."""
        return slot < len(self._has) and bool(self._has[slot])

    def put(self, slot: int, vector: NDArray[np.floating]) -> None:
        """Set the vector of a slot; of length 1, so that a product is a cosine."""
        while slot >= len(self._has):
            self._blocks.append(np.zeros((_BLOCK, self._dimension), np.float32))
            self._has = np.concatenate((self._has, np.zeros(_BLOCK, np.bool_)))
        self._blocks[slot // _BLOCK][slot % _BLOCK] = vector
        self._has[slot] = True

    def half(self, slot: int) -> NDArray[np.float16]:
        """The vector of a slot that has one, in the precision of the file."""
        vector: NDArray[np.float32] = self._blocks[slot // _BLOCK][slot % _BLOCK]
        return vector.astype(np.float16)

    def clear(self, slot: int) -> None:
        """Let go of the vector of a slot, if there is one."""
        if slot < len(self._has):
            self._has[slot] = False
            self._blocks[slot // _BLOCK][slot % _BLOCK] = 0.0

    def cosines(self, vector: NDArray[np.float32], slots: int) -> NDArray[np.float32]:
        """The cosine of `vector`, of length 1, with each of the first `slots` slots; NaN where there is none."""
        found = np.full(slots, np.nan, np.float32)
        for number, block in enumerate(self._blocks):
            start = number * _BLOCK
            count = min(_BLOCK, slots - start)
            if count <= 0:
                break
            found[start : start + count] = block[:count] @ vector
        found[~self.has(slots)] = np.nan
        return found
