"""Many memories on their way into an index: `terms_of` for all of them at once.

A vault is indexed anew at every start, and nearly all of the time goes into looking up words one by one. Here a
stretch of text that came before costs one look-up, the rest is arithmetic over all of them together.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.terms import PART, WHOLE, analyse, chunks_of

# From this code on a stretch is no single word, and its terms stand in `_Codes.several`.
_SEVERAL = 1 << 31
_Keys = NDArray[np.uint64]


class _Codes(dict[str, int]):
    """What each stretch of text comes to: the number of its only term, or `_SEVERAL` and a position."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: defaultdict[str, int] = defaultdict(count().__next__)  # of terms
        # Keys (see `Batch.postings`) of memory 0, and where those of each stretch start.
        self.several = array("Q")
        self.starts = array("Q", (0,))

    def __missing__(self, chunk: str) -> int:
        wholes, parts = analyse(chunk)
        if len(wholes) == 1 and not parts:
            code = self.numbers[wholes[0]]
        else:
            self.several.extend(self.numbers[whole] << 32 for whole in wholes)
            self.several.extend(self.numbers[part] << 32 | 1 for part in parts)
            code = _SEVERAL + len(self.starts) - 1
            self.starts.append(len(self.several))
        self[chunk] = code
        return code


class Batch:
    """Collects memories, then gives their postings."""

    def __init__(self) -> None:
        self._codes = _Codes()
        self._flat = array("I")  # the codes of all stretches of all memories
        self._sizes = array("I")  # how many of them are whose
        self._keys: _Keys | None = None

    def add(self, memory: Memory) -> None:
        """One memory more: the next row."""
        chunks = chunks_of(memory)
        self._flat.extend(map(self._codes.__getitem__, chunks))
        self._sizes.append(len(chunks))

    def lengths(self) -> list[int]:
        """The length of each memory in whole words."""
        keys = self._sorted()
        rows = (keys[(keys & np.uint64(1)) == 0] & np.uint64(0xFFFFFFFF)) >> np.uint64(1)
        lengths: list[int] = np.bincount(rows.astype(np.intp), minlength=len(self._sizes)).tolist()
        return lengths

    def postings(self, first: int) -> Iterator[tuple[str, memoryview, memoryview]]:
        """(term, slots as 4-byte integers, weights as 4-byte floats) of each term; row 0 goes into slot `first`.

        Every occurrence of a term is one number: term, row, and a bit that is set for a part. Sorted they are
        the postings, and of the occurrences in one memory a whole word, if there is one, stands first.
        """
        keys = self._sorted()
        starts = np.flatnonzero(np.diff(keys >> np.uint64(1), prepend=np.uint64(0xFFFFFFFFFFFFFFFF)))
        if not len(starts):
            return
        is_part = (keys & np.uint64(1)).astype(np.bool_)
        weights = np.add.reduceat(np.where(is_part, PART, WHOLE), starts)
        weights[is_part[starts]] *= -1
        heads = keys[starts]
        slots = ((heads & np.uint64(0xFFFFFFFF)) >> np.uint64(1)) + np.uint64(first)
        slots_bytes = memoryview(slots.astype(np.uint32).tobytes())
        weights_bytes = memoryview(weights.astype(np.float32).tobytes())
        start = 0
        ends = 4 * np.cumsum(np.bincount((heads >> np.uint64(32)).astype(np.intp)))
        for term, end in zip(self._codes.numbers, ends.tolist(), strict=True):
            yield term, slots_bytes[start:end], weights_bytes[start:end]
            start = end

    def _sorted(self) -> _Keys:
        if self._keys is None:
            codes = np.frombuffer(self._flat, np.uint32).astype(np.uint64)
            sizes = np.frombuffer(self._sizes, np.uint32)
            rows = np.repeat(np.arange(len(sizes), dtype=np.uint64) << np.uint64(1), sizes)
            several = codes >= _SEVERAL
            single = codes[~several] << np.uint64(32) | rows[~several]
            self._keys = np.concatenate((single, self._several(codes[several] - np.uint64(_SEVERAL), rows[several])))
            self._keys.sort()
        return self._keys

    def _several(self, positions: _Keys, rows: _Keys) -> _Keys:
        """The keys of stretches that are not a single word, laid out one after the other."""
        starts = np.frombuffer(self._codes.starts, np.uint64).astype(np.intp)
        begins, ends = starts[positions.astype(np.intp)], starts[positions.astype(np.intp) + 1]
        sizes = ends - begins
        offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        keys: _Keys = np.frombuffer(self._codes.several, np.uint64)[np.repeat(begins, sizes) + offsets]
        keys |= np.repeat(rows, sizes)
        return keys
