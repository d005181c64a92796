"""The first of many, in an exact order, without sorting all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def best(keys: Sequence[NDArray[Any]], limit: int, id_of: Callable[[int], str]) -> list[int]:
    """The positions of the best `limit`: greatest in the first key, then in the next, then the smallest id.

    `keys` are arrays of one length, without NaN and not rounded; `id_of` gives the id at a position and decides
    only where all keys tie.
    """
    if limit <= 0:
        return []
    sure: list[int] = []
    tied = np.arange(len(keys[0]))
    for values in keys:
        need = limit - len(sure)
        if len(tied) <= need:
            break
        own = values[tied]
        border = np.partition(own, len(own) - need)[len(own) - need]
        sure += tied[own > border].tolist()
        tied = tied[own == border]
    last: list[int] = tied.tolist()
    if len(sure) + len(last) > limit:
        last = heapq.nsmallest(limit - len(sure), last, key=id_of)
    return sorted(sure + last, key=lambda i: (*(-values[i] for values in keys), id_of(i)))
